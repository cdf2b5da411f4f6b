package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/proc"
	"github.com/coppice-run/coppice/test/testpython"
)

// replaceMarker is in the environment of all that a test of a replacement starts.
const replaceMarker = "COPPICE_TEST_REPLACE"

// place is where servers of one home run, one after the other.
type place struct {
	t          *testing.T
	home, mark string
	// env is what servers have of their own in their environments, and forgets that they keep no
	// sessions.
	env     []string
	forgets bool
}

func newReplaced(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, home: t.TempDir(), mark: messages.NewID()}
	t.Cleanup(func() {
		require.Eventually(t, func() bool { return len(proc.WithEnv(replaceMarker, p.mark)) == 0 }, patience, 20*time.Millisecond, "something is left")
		left, err := filepath.Glob(filepath.Join(p.home, ".coppice", "run", "left-*"))
		require.NoError(t, err)
		require.Empty(t, left)
	})
	return p
}

// replaced is one of them.
type replaced struct {
	place *place
	cmd   *exec.Cmd
	said  struct {
		sync.Mutex
		strings.Builder
	}
	told  chan map[string]any // what it says of itself, once it serves
	ended chan struct{}
}

// start starts a server.
func (p *place) start(args ...string) *replaced {
	p.t.Helper()
	bin, err := exec.LookPath("coppice")
	require.NoError(p.t, err)
	return p.startOf(bin, args...)
}

// startOf starts a server of a program.
func (p *place) startOf(bin string, args ...string) *replaced {
	p.t.Helper()
	s := &replaced{place: p, told: make(chan map[string]any, 1), ended: make(chan struct{})}
	serve := []string{"serve", "--json", "--python", testpython.Path(p.t), "--max-sessions", "200"}
	if !p.forgets {
		serve = append(serve, "--keep-sessions")
	}
	s.cmd = exec.Command(bin, append(serve, args...)...)
	s.cmd.Env = append(append(os.Environ(), "HOME="+p.home, "COPPICE_HOME="+p.home, replaceMarker+"="+p.mark, "GORACE=atexit_sleep_ms=0"), p.env...)
	s.cmd.Dir = p.home
	out, err := s.cmd.StdoutPipe()
	require.NoError(p.t, err)
	told, err := s.cmd.StderrPipe()
	require.NoError(p.t, err)
	require.NoError(p.t, s.cmd.Start())
	var read sync.WaitGroup
	read.Go(func() {
		from := bufio.NewScanner(told)
		for from.Scan() {
			s.said.Lock()
			s.said.WriteString(from.Text() + "\n")
			s.said.Unlock()
		}
	})
	read.Go(func() {
		var one map[string]any
		if json.NewDecoder(out).Decode(&one) == nil {
			s.told <- one
		}
		_, _ = io.Copy(io.Discard, out)
	})
	go func() {
		read.Wait()
		_ = s.cmd.Wait()
		close(s.ended)
	}()
	p.t.Cleanup(func() {
		s.kill()
		if p.t.Failed() {
			p.t.Logf("server %d said: %s", s.cmd.Process.Pid, s.words())
		}
	})
	return s
}

func (s *replaced) words() string {
	s.said.Lock()
	defer s.said.Unlock()
	return s.said.String()
}

func (s *replaced) kill() {
	_ = s.cmd.Process.Kill()
	<-s.ended
}

// serves waits until it serves.
func (s *replaced) serves() *client.Client {
	s.place.t.Helper()
	select {
	case <-s.told:
	case <-s.ended:
		require.Fail(s.place.t, "it has ended", s.words())
	}
	return s.place.client()
}

// over waits until it has ended, and wants its exit code.
func (s *replaced) over(code int) {
	s.place.t.Helper()
	<-s.ended
	require.Equal(s.place.t, code, s.cmd.ProcessState.ExitCode(), s.words())
}

// ends interrupts it.
func (s *replaced) ends() {
	s.place.t.Helper()
	require.NoError(s.place.t, s.cmd.Process.Signal(os.Interrupt))
	s.over(0)
}

func (p *place) client() *client.Client {
	p.t.Helper()
	c, err := client.Find(client.FindOptions{Env: []string{"COPPICE_HOME=" + p.home}, Client: client.Options{Patience: patience}})
	require.NoError(p.t, err)
	p.t.Cleanup(c.Close)
	return c
}

// run runs a cell, and returns what it has printed, and its result.
func run(ctx context.Context, c *client.Client, e client.Execute) (string, messages.Result, error) {
	return follow(ctx, c, e, func() {})
}

// follow is run, and calls each for each piece of text.
func follow(ctx context.Context, c *client.Client, e client.Execute, each func()) (string, messages.Result, error) {
	var text strings.Builder
	for event, err := range c.Run(ctx, e) {
		if err != nil {
			return text.String(), messages.Result{}, err
		}
		switch e := event.(type) {
		case messages.Stream:
			each()
			text.WriteString(e.Text)
		case messages.Final:
			return text.String(), e.Result, e.Result.Err()
		}
	}
	return text.String(), messages.Result{}, errors.New("there was no end")
}

// difference shows where two texts begin to differ.
func difference(got, want string) string {
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	around := func(s string) string { return s[max(0, i-40):min(len(s), i+80)] }
	return fmt.Sprintf("at byte %d %q in place of %q", i, around(got), around(want))
}

// numbered is what a cell prints that prints numbered lines.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

// lasting is a cell that prints lines until there is a file, and then how many.
func lasting(gate string) string {
	return fmt.Sprintf(`
import os, time
n = 0
while not os.path.exists(%q):
    print('line', n, flush=True)
    n += 1
    time.sleep(.002)
`, gate)
}
