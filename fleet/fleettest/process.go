package fleettest

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Process is a real server that a test runs: it can be killed, and started again over what it
// has kept. It ends with the test.
type Process struct {
	name  string
	args  []string
	ready func(context.Context) bool

	mu   sync.Mutex
	said bytes.Buffer
	cmd  *exec.Cmd
	gone chan struct{}
}

// program returns the path in a variable of the environment.
func program(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Fatalf("%s names no program: make test-engines builds it, and runs the tests that need it", variable)
	}
	return path
}

// finish ends the server with its test, and shows what it said if that has failed.
func (p *Process) finish(t *testing.T) {
	p.Kill()
	if t.Failed() {
		p.mu.Lock()
		defer p.mu.Unlock()
		t.Logf("%s said at the end:\n%s", p.name, p.said.Bytes()[max(0, p.said.Len()-8<<10):])
	}
}

// Write takes what the server says.
func (p *Process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.Write(b)
}

// Start starts the server again after Kill, and returns when it is ready.
func (p *Process) Start(t *testing.T) {
	t.Helper()
	p.Launch(t)
	p.Ready(t)
}

// Launch starts it without waiting: the first of several members waits for the others.
func (p *Process) Launch(t *testing.T) {
	t.Helper()
	p.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), p.args[0], p.args[1:]...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", p.name, err)
	}
	gone := make(chan struct{})
	p.gone = gone
	go func() { // ends with the process, which Kill ends
		_ = p.cmd.Wait() // why it ends is in what it says
		close(gone)
	}()
}

// Ready waits until the server does what it is for.
func (p *Process) Ready(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*Patience)
	defer cancel()
	for !p.ready(ctx) {
		select {
		case <-p.gone:
			t.Fatalf("%s has ended", p.name)
		case <-ctx.Done():
			t.Fatalf("%s is not ready", p.name)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Kill ends the server as a machine does that fails, and returns when it is gone.
func (p *Process) Kill() {
	if p.gone == nil {
		return
	}
	_ = p.cmd.Process.Kill() // it may be gone
	<-p.gone
}

// ports returns some that nobody listens at, on the loopback interface. They are none of those
// that connections are given, so that they stay free.
func ports(t *testing.T, count int) []string {
	t.Helper()
	var free []string
	for range 1000 {
		if len(free) == count {
			return free
		}
		at := net.JoinHostPort("127.0.0.1", strconv.Itoa(15000+rand.IntN(15000)))
		var lc net.ListenConfig
		l, err := lc.Listen(t.Context(), "tcp", at)
		if err != nil {
			continue
		}
		defer l.Close()
		free = append(free, at)
	}
	t.Fatal("no port is free")
	return nil
}

// write makes a file that its owner alone reads.
func write(t *testing.T, data []byte, parts ...string) string {
	t.Helper()
	path := filepath.Join(parts...)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
