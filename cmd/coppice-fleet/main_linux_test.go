package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/cli"
	"github.com/coppice-run/coppice/fleet/natskv/embed"
	"github.com/coppice-run/coppice/test/testpython"
)

// asNode has this program be coppice-fleet in place of the tests of it.
const asNode = "COPPICE_TEST_AS_FLEET"

func TestMain(m *testing.M) {
	if os.Getenv(asNode) != "" {
		os.Exit(run())
	}
	if words := strings.Fields(os.Getenv(asEngine)); len(words) > 2 {
		os.Exit(beEngine(words))
	}
	os.Exit(m.Run())
}

// token is that of the nodes of these tests.
const token = "a-token-of-these-nodes-0123456789"

// ttl is long enough for a machine that does a lot beside, and what a failover costs.
const ttl = 10 * time.Second

// patience is how long a test waits for what it expects.
const patience = 5 * time.Minute

// nodes are processes that are nodes of one fleet.
type nodes struct {
	t    *testing.T
	work string
	// servers is their directory, as --fleet names it; stop and start have it away for a while.
	servers     string
	stop, start func()
	// more are further flags of each; nil: there are none.
	more func() []string
}

// newNodes are nodes whose directory runs in the test.
func newNodes(t *testing.T) *nodes {
	t.Helper()
	dir, port := t.TempDir(), 0
	var engine *embed.Server
	start := func() {
		t.Helper()
		var err error
		engine, err = embed.Start(t.Context(), embed.Options{Dir: dir, Port: port, Token: secret(cli.DirectoryOptions{Secret: token})})
		require.NoError(t, err)
		port = engine.Port()
	}
	start()
	t.Cleanup(func() { engine.Stop() })
	return &nodes{
		t: t, work: t.TempDir(), servers: "nats://127.0.0.1:" + strconv.Itoa(port),
		stop: func() { engine.Stop() }, start: start,
	}
}

// node is one process.
type node struct {
	t    *testing.T
	cmd  *exec.Cmd
	url  string
	pid  int
	home string
	out  bytes.Buffer
	gone chan struct{}
}

// node starts one, and returns when it serves.
func (n *nodes) node(name string, more ...string) *node {
	n.t.Helper()
	args := append([]string{
		"serve", "--addr", "127.0.0.1:0", "--cwd", n.work, "--backend", "runner", "--fleet-name", name, "--fleet-ttl", ttl.String(), "--fleet-placement", "here",
		"--fleet", n.servers,
	}, more...)
	if n.more != nil {
		args = append(args, n.more()...)
	}
	return launch(n.t, name, args, "COPPICE_PYTHON="+testpython.Path(n.t))
}

// launch starts a server of this program, and returns when it serves.
func launch(t *testing.T, name string, args []string, env ...string) *node {
	t.Helper()
	one := &node{t: t, home: t.TempDir(), gone: make(chan struct{})}
	program, err := os.Executable()
	require.NoError(t, err)
	one.cmd = exec.Command(program, args...)
	one.cmd.Env = append(os.Environ(), append(env, asNode+"=1", "COPPICE_HOME="+one.home, "COPPICE_TOKEN="+token)...)
	one.cmd.Stdout, one.cmd.Stderr = &one.out, &one.out
	require.NoError(t, one.cmd.Start())
	one.pid = one.cmd.Process.Pid
	go func() { // ends with the process, which the cleanup ends
		_ = one.cmd.Wait()
		close(one.gone)
	}()
	t.Cleanup(func() {
		_ = one.cmd.Process.Signal(syscall.SIGCONT)
		_ = one.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-one.gone:
		case <-time.After(time.Minute):
			_ = one.cmd.Process.Kill()
			<-one.gone
		}
		if t.Failed() {
			t.Logf("%s:\n%s", name, one.out.String())
		}
	})
	require.Eventually(t, func() bool {
		select {
		case <-one.gone:
			t.Fatalf("%s ended:\n%s", name, one.out.String())
		default:
		}
		data, err := os.ReadFile(filepath.Join(one.home, ".coppice", "serve.json"))
		var r client.Record
		if err != nil || json.Unmarshal(data, &r) != nil {
			return false
		}
		one.url = r.URL
		return one.get("/readyz").status == http.StatusOK
	}, patience, 50*time.Millisecond)
	return one
}

func (n *node) signal(s syscall.Signal) {
	n.t.Helper()
	require.NoError(n.t, n.cmd.Process.Signal(s))
}

// stopped reports whether the process stands still.
func (n *node) stopped() bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(n.pid) + "/stat")
	_, state, ok := strings.Cut(string(data), ") ")
	return err == nil && ok && strings.HasPrefix(state, "T")
}

// answer is one of a node; status 0: it gave none.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

func (a answer) code() string {
	var p struct{ Error struct{ Code string } }
	_ = json.Unmarshal([]byte(a.body), &p)
	return p.Error.Code
}

func (n *node) ask(method, path, body string, epoch int) answer {
	n.t.Helper()
	return n.once(method, path, body, epoch, patience)
}

// once asks for so long at most. Any goroutine may call it.
func (n *node) once(method, path, body string, epoch int, wait time.Duration) answer {
	ctx, cancel := context.WithTimeout(n.t.Context(), wait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, n.url+path, strings.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	if epoch > 0 {
		req.Header.Set("Coppice-Epoch", strconv.Itoa(epoch))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(data), err}
}

func (n *node) get(path string) answer {
	n.t.Helper()
	return n.ask(http.MethodGet, path, "", 0)
}

// settled asks until the answer is another one than that the fleet is busy with itself.
func (n *node) settled(method, path, body string, epoch int) answer {
	n.t.Helper()
	for end := time.Now().Add(patience); ; {
		a := n.ask(method, path, body, epoch)
		if a.status != 0 && a.status != http.StatusServiceUnavailable || time.Now().After(end) {
			return a
		}
		n.t.Logf("%s %s is not answered yet: %d %s %v", method, path, a.status, a.body, a.err)
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // between two questions to other processes
	}
}

// run starts an execution of the session s.
func (n *node) run(id, code string, epoch int) answer {
	n.t.Helper()
	body, err := json.Marshal(map[string]any{"id": id, "session": "s", "cells": []map[string]string{{"code": code}}})
	require.NoError(n.t, err)
	return n.settled(http.MethodPost, "/api/executions", string(body), epoch)
}

// result waits for the end of an execution.
func (n *node) result(id string) (a answer, outcome, state, text string) {
	n.t.Helper()
	for {
		a = n.settled(http.MethodGet, "/api/executions/"+id+"?wait=30", "", 0)
		var x client.Execution
		if a.status != http.StatusOK {
			return a, "", "", ""
		}
		require.NoError(n.t, json.Unmarshal([]byte(a.body), &x))
		if x.Result != nil {
			return a, string(x.Result.Outcome), string(x.Result.State), x.Result.Text
		}
	}
}

// metric is a value that a node shows, "" when it does not.
func (n *node) metric(name string) string {
	n.t.Helper()
	for line := range strings.SplitSeq(n.get("/metrics").body, "\n") {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return value
		}
	}
	return ""
}

// freePorts are some that were free a moment ago, with one 2000 above each that was, too.
func freePorts(t *testing.T, count int) []int {
	t.Helper()
	var ports []int
	for len(ports) < count {
		var lc net.ListenConfig
		a, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer a.Close()
		u, err := url.Parse("tcp://" + a.Addr().String())
		require.NoError(t, err)
		port, err := strconv.Atoi(u.Port())
		require.NoError(t, err)
		if port+routes > 65535 {
			continue
		}
		b, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:"+strconv.Itoa(port+routes))
		if err != nil {
			continue
		}
		defer b.Close()
		ports = append(ports, port)
	}
	return ports
}
