//go:build unix

// Package mcp_test starts coppice mcp as a host of agents does.
package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/test/gobuild"
	"github.com/coppice-run/coppice/test/testpython"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(command.dir)
		os.Exit(code)
	}))
}

// command is where the program is, once a test has made it.
var command struct {
	sync.Once
	dir string
	err error
}

// built returns a folder with the command.
func built(t *testing.T) string {
	t.Helper()
	command.Do(func() {
		if command.dir, command.err = os.MkdirTemp("", "coppice-mcp-"); command.err == nil { //nolint:usetesting // it stays for the other tests
			_, command.err = gobuild.Coppice(context.Background(), command.dir)
		}
	})
	require.NoError(t, command.err)
	return command.dir
}

// TestTheConfigurationOfTheREADME is read as a host reads it; the command is taken
// from the PATH, and runs a cell.
func TestTheConfigurationOfTheREADME(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	at := strings.Index(string(readme), `{"mcpServers"`)
	require.Positive(t, at, "the README has the configuration")
	var config struct {
		Servers map[string]struct {
			Command string            `json:"command"`
			Args    []string          `json:"args"`
			Env     map[string]string `json:"env"`
		} `json:"mcpServers"`
	}
	require.NoError(t, json.NewDecoder(strings.NewReader(string(readme)[at:])).Decode(&config))
	require.Len(t, config.Servers, 1)

	bin := built(t)
	t.Setenv("PATH", strings.Join([]string{bin, filepath.Dir(testpython.Path(t)), os.Getenv("PATH")}, string(os.PathListSeparator)))
	t.Setenv("COPPICE_HOME", t.TempDir())
	for name, s := range config.Servers {
		cmd := exec.CommandContext(t.Context(), s.Command, s.Args...)
		cmd.Env, cmd.Dir = os.Environ(), t.TempDir()
		for k, v := range s.Env {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
		require.Equal(t, filepath.Join(bin, "coppice"), cmd.Path)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		cs, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
		require.NoError(t, err)
		for _, row := range [][2]string{{"x = 40", "(no output)"}, {"x + 2", "42"}} {
			r, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: map[string]any{"cells": []any{map[string]any{"code": row[0]}}}})
			require.NoError(t, err)
			require.Equal(t, row[1], r.Content[0].(*mcp.TextContent).Text)
		}
		require.NoError(t, cs.Close())
		require.True(t, cmd.ProcessState.Success(), "%v", cmd.ProcessState)
	}
}

// TestTheServerEndsWithoutItsClient: one that dies in the middle of a call, and one
// whose server is stopped in the middle, leave no process behind.
func TestTheServerEndsWithoutItsClient(t *testing.T) {
	bin := built(t)
	for name, end := range map[string]func(*exec.Cmd, ...io.Closer){
		"the client dies": func(_ *exec.Cmd, pipes ...io.Closer) {
			for _, p := range pipes {
				require.NoError(t, p.Close())
			}
		},
		"the server is stopped": func(cmd *exec.Cmd, _ ...io.Closer) { require.NoError(t, cmd.Process.Signal(syscall.SIGTERM)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "coppice"), "mcp", "--backend", "runner", "--python", testpython.Path(t), "--cwd", dir)
			cmd.Env = append(os.Environ(), "COPPICE_HOME="+t.TempDir())
			in, err := cmd.StdinPipe()
			require.NoError(t, err)
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			code, err := json.Marshal("import os, time\nopen('pid.tmp', 'w').write(str(os.getpid()))\nos.rename('pid.tmp', 'pid')\ntime.sleep(500)")
			require.NoError(t, err)
			_, err = io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"python","arguments":{"timeout":600,"cells":[{"code":`+string(code)+`}]}}}
`)
			require.NoError(t, err)
			var pid []byte
			require.Eventually(t, func() bool {
				pid, err = os.ReadFile(filepath.Join(dir, "pid"))
				return err == nil
			}, time.Minute, 10*time.Millisecond, "the call runs")
			end(cmd, in, out)
			done := make(chan struct{})
			go func() { _ = cmd.Wait(); close(done) }()
			select {
			case <-done:
			case <-time.After(time.Minute):
				t.Fatal("the server lives on")
			}
			kernel, err := strconv.Atoi(string(pid))
			require.NoError(t, err)
			require.Eventually(t, func() bool { return errors.Is(syscall.Kill(kernel, 0), syscall.ESRCH) }, time.Minute, 10*time.Millisecond, "the kernel lives on")
		})
	}
}
