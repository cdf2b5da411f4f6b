//go:build unix

// Package mcp_test starts coppice mcp as a host of agents does.
package mcp_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/test/testpython"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

	bin := t.TempDir()
	said, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(bin, "coppice"), "../../cmd/coppice").CombinedOutput()
	require.NoError(t, err, "%s", said)
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
