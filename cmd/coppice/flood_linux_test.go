//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/test/testpython"
)

// TestFlood opens more connections than a server has descriptors, each of which sends
// half a request. The owner is answered all the while, and the server ends at once.
func TestFlood(t *testing.T) {
	for name, args := range map[string][]string{
		"serve": {"serve", "--addr", "127.0.0.1:0", "--json"},
		"mcp":   {"mcp", "--http", "127.0.0.1:0"},
	} {
		for _, known := range []bool{false, true} {
			if !full && known != (name == "mcp") { // each door once, and both kinds of clients
				continue
			}
			t.Run(fmt.Sprintf("%s, with the token %v", name, known), func(t *testing.T) {
				f := startFlooded(t, args)
				alone := f.slowest()
				watched := f.watch()
				halves := f.flood(known)
				f.ownerIsServed(alone)
				watched(alone)
				if !known {
					f.areRefused(halves)
					f.flood(false)
				}
				f.ends()
			})
		}
	}
}

// flooded is a server with few descriptors.
type flooded struct {
	t          *testing.T
	cmd        *exec.Cmd
	env        []string
	mcp        bool
	files      uint64
	addr       string
	token      string
	conns      []net.Conn
	said       *strings.Builder
	saidJoined sync.WaitGroup
}

// startFlooded starts a command that serves HTTP, and reads where and with which token.
func startFlooded(t *testing.T, args []string) *flooded {
	t.Helper()
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	most := uint64(400)
	if full {
		most = 1024
	}
	f := &flooded{t: t, mcp: args[0] == "mcp", files: min(most, limit.Cur/2), said: &strings.Builder{}}
	f.env = append(os.Environ(), "HOME="+t.TempDir(), "COPPICE_HOME="+t.TempDir())
	bin, err := exec.LookPath("coppice")
	require.NoError(t, err)
	line := append([]string{"-c", `ulimit -n "$1" && shift && exec "$@"`, "sh", fmt.Sprint(f.files), bin}, args...)
	f.cmd = exec.Command("sh", append(line, "--backend", "runner", "--python", testpython.Path(t))...)
	f.cmd.Env, f.cmd.Dir = f.env, t.TempDir()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	f.cmd.Stdout, f.cmd.Stderr = write, write
	require.NoError(t, f.cmd.Start())
	require.NoError(t, write.Close())
	t.Cleanup(func() {
		for _, c := range f.conns {
			_ = c.Close()
		}
		if f.cmd.ProcessState == nil {
			_ = f.cmd.Process.Kill()
			_ = f.cmd.Wait() // it was killed
		}
		f.saidJoined.Wait()
		_ = read.Close()
		if t.Failed() {
			t.Log(f.said.String())
		}
	})
	out := bufio.NewReader(read)
	where := regexp.MustCompile(`http://([0-9.:]+)`)
	file := regexp.MustCompile(`"token_file":\s*"([^"]+)"|the token is in (\S+)`)
	for f.addr == "" || f.token == "" {
		text, err := out.ReadString('\n')
		f.said.WriteString(text)
		require.NoError(t, err, f.said.String())
		if at := where.FindStringSubmatch(text); at != nil {
			f.addr = at[1]
		}
		if at := file.FindStringSubmatch(text); at != nil {
			f.token = tokenIn(t, at[1]+at[2])
		}
	}
	f.saidJoined.Go(func() { _, _ = io.Copy(f.said, out) })
	return f
}

// tokenIn reads the token of either command's file.
func tokenIn(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var record struct {
		Token string `json:"token"`
	}
	if json.Unmarshal(data, &record) == nil {
		return record.Token
	}
	return strings.TrimSpace(string(data))
}

func (f *flooded) path() string {
	if f.mcp {
		return "/mcp"
	}
	return "/api/executions"
}

// flood opens connections that each send the head of a request, or a part of it, and
// nothing more.
func (f *flooded) flood(known bool) []net.Conn {
	head := "POST " + f.path() + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
	if known {
		head += "Authorization: Bearer " + f.token + "\r\n"
	}
	head += "Content-Length: 100\r\n"
	var opened []net.Conn
	for i := range int(f.files) + 76 {
		c, err := net.DialTimeout("tcp", f.addr, patience)
		require.NoError(f.t, err)
		f.conns = append(f.conns, c)
		if i%4 != 3 { // the others stop within the head
			opened = append(opened, c)
			_, err = io.WriteString(c, head+"\r\n")
		} else {
			_, err = io.WriteString(c, head)
		}
		if err != nil { // it was closed for a newer one
			require.True(f.t, errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET), err)
		}
	}
	return opened
}

// soon is how long an answer may take at most among all the others: a second, and what
// it takes alone. Beside other tests the processors are elsewhere for longer; there it is less
// than half of what those others may keep a place that they do not use.
func soon(alone time.Duration) time.Duration {
	if full {
		return time.Second + 2*alone
	}
	return 4*time.Second + 2*alone
}

// slowest asks as the owner does, a few times, and is how long it took at most.
func (f *flooded) slowest() time.Duration {
	longest := time.Duration(0)
	for range 3 {
		took, err := f.ask(f.t.Context())
		require.NoError(f.t, err)
		longest = max(longest, took)
	}
	return longest
}

// ask asks once as the owner does, over a connection of its own, and says how long the
// answer took.
func (f *flooded) ask(ctx context.Context) (time.Duration, error) {
	method, path, body := http.MethodGet, "/api/health", ""
	if f.mcp {
		method, path = http.MethodPost, "/mcp"
		body = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"owner","version":"1"}}}`
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+f.addr+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + f.token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream"} {
		req.Header.Set(name, value)
	}
	began := time.Now()
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", resp.StatusCode)
	}
	return time.Since(began), err
}

// watch asks one time after the other, as the others come and stay. What it returns ends
// that, and holds each answer to its time.
func (f *flooded) watch() func(alone time.Duration) {
	ctx, stop := context.WithCancel(f.t.Context())
	var took []time.Duration
	var failed error
	var asks sync.WaitGroup
	asks.Go(func() { // ends with ctx
		for ctx.Err() == nil {
			one, err := f.ask(context.WithoutCancel(ctx))
			took, failed = append(took, one), errors.Join(failed, err)
		}
	})
	end := sync.OnceFunc(func() { stop(); asks.Wait() })
	f.t.Cleanup(end)
	return func(alone time.Duration) {
		end()
		require.NoError(f.t, failed)
		f.t.Logf("%d answers took %v at most; alone it was %v", len(took), slices.Max(took), alone)
		require.Less(f.t, slices.Max(took), soon(alone))
	}
}

// ownerIsServed asks as the owner does, while all the others are connected, also by way
// of the command.
func (f *flooded) ownerIsServed(alone time.Duration) {
	t := f.t
	longest := f.slowest()
	t.Logf("among all of them an answer took %v, alone %v", longest, alone)
	require.Less(t, longest, soon(alone))
	if f.mcp {
		return
	}
	run := func(env []string) time.Duration {
		began := time.Now()
		bin, err := exec.LookPath("coppice")
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, bin, "run", "--session", "work", "-c", "print(40 + 2)")
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "42")
		return time.Since(began)
	}
	run(f.env) // Python has to start
	quiet := startFlooded(t, []string{"serve", "--addr", "127.0.0.1:0", "--json"})
	run(quiet.env)
	beside := max(run(quiet.env), run(quiet.env))
	took := max(run(f.env), run(f.env))
	t.Logf("coppice run took %v, and %v at a server that nobody floods", took, beside)
	require.Less(t, took, soon(beside))
	quiet.ends()
}

// areRefused reads what strangers get: no, and the end of the connection; those that
// newer ones took the place of may have had no answer.
func (f *flooded) areRefused(conns []net.Conn) {
	refused := 0
	for _, c := range conns {
		require.NoError(f.t, c.SetReadDeadline(time.Now().Add(patience)))
		in := bufio.NewReader(c)
		resp, err := http.ReadResponse(in, nil)
		if err == nil {
			refused++
			require.Equal(f.t, http.StatusUnauthorized, resp.StatusCode)
			require.True(f.t, resp.Close)
			_, err = io.Copy(io.Discard, in)
		}
		require.NotErrorIs(f.t, err, os.ErrDeadlineExceeded)
	}
	require.Greater(f.t, refused, len(conns)/2)
	f.t.Logf("%d of %d were told no", refused, len(conns))
}

// ends stops the server while all are connected.
func (f *flooded) ends() {
	began := time.Now()
	require.NoError(f.t, f.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(f.t, f.cmd.Wait())
	f.t.Logf("the end took %v", time.Since(began))
}
