package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
)

// pauses is the longest time between two signs of life.
type pauses struct {
	mu      sync.Mutex
	last    time.Time
	longest time.Duration
}

func (p *pauses) sign() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if !p.last.IsZero() {
		p.longest = max(p.longest, now.Sub(p.last))
	}
	p.last = now
}

// TestReplacedUnderLoad: a server is replaced by another build, and that by this one, again and
// again while clients run cells, others wait their turn, and a reader follows a cell that does
// not end. No result is lost, no line is missing or twice, and nobody is refused.
func TestReplacedUnderLoad(t *testing.T) {
	clients, times := 6, 2
	if full {
		clients, times = 100, 10
	}
	bin, err := exec.LookPath("coppice")
	require.NoError(t, err)
	programs := []string{bin, build(t, "9.0.0", otherProgram)}
	p := newReplaced(t)
	s := p.startOf(programs[0], "--addr", "127.0.0.1:0")
	c := s.serves()
	ctx, cancel := context.WithTimeout(t.Context(), 10*patience)
	defer cancel()
	gate := filepath.Join(p.home, "gate")
	stop := make(chan struct{})
	var all sync.WaitGroup
	var calls atomic.Int64
	progress := make(chan struct{}, 1<<16) // a call each
	start := time.Now()
	failed := make(chan error, clients+2)
	var answers, lines pauses
	all.Go(func() {
		text, result, err := follow(ctx, c, client.Execute{ID: "lasting", Session: "lasting", Cells: []messages.Cell{{Code: lasting(gate)}, {Code: "print('n', n)"}}}, lines.sign)
		text, end, _ := strings.Cut(text, "n ")
		n := strings.Count(text, "\n")
		if err != nil || text != numbered(n) || end != fmt.Sprintf("%d\n", n) {
			failed <- fmt.Errorf("the lasting cell: %w: %s, after %d lines %q: %s", err, result.Outcome, n, end, difference(text, numbered(n)))
		}
	})
	var waits sync.Mutex
	var longest time.Duration
	for i := range clients {
		own := p.client()
		all.Go(func() {
			session := fmt.Sprintf("s%d", i)
			for n := 1; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				code := "n = 1"
				if n > 1 {
					code = "n += 1"
				}
				began := time.Now()
				text, result, err := run(ctx, own, client.Execute{Session: session, Cells: []messages.Cell{{Code: code}, {Code: "for i in range(20): print('line', i)"}, {Code: "print('n', n)"}}})
				waits.Lock()
				longest = max(longest, time.Since(began))
				waits.Unlock()
				if want := numbered(20) + fmt.Sprintf("n %d\n", n); err != nil || text != want {
					failed <- fmt.Errorf("call %d of %s: %w: %s: %q", n, session, err, result.Reason, text)
					return
				}
				calls.Add(1)
				answers.sign()
				progress <- struct{}{}
			}
		})
	}
	var health time.Duration
	all.Go(func() { // as curl would: a connection for each
		for {
			select {
			case <-stop:
				return
			default:
			}
			began := time.Now()
			if _, err := c.Health(ctx); err != nil {
				failed <- fmt.Errorf("health: %w", err)
				return
			}
			health = max(health, time.Since(began))
		}
	})
	goOn := func() { // until each client has made two calls, about
		for len(progress) > 0 {
			<-progress
		}
		for range 2 * clients {
			select {
			case <-progress:
			case err := <-failed:
				require.NoError(t, err)
			}
		}
	}
	for n := range times {
		goOn()
		next := p.startOf(programs[(n+1)%2], "--replace", "--addr", "127.0.0.1:0")
		next.serves()
		h, err := c.Health(ctx)
		require.NoError(t, err)
		require.Equal(t, next.cmd.Process.Pid, h.PID)
		t.Logf("%v: %d calls, %s serves", time.Since(start), calls.Load(), h.Version)
		s.over(0)
		require.Contains(t, s.words(), "has replaced this server", "replacement %d", n)
		s = next
	}
	for goOn(); full && time.Since(start) < 30*time.Second; { // the cell lasts for as long
		goOn()
	}
	close(stop)
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	all.Wait()
	close(failed)
	for err := range failed {
		require.NoError(t, err)
	}
	t.Logf("%d replacements, %d clients, %d calls: %v at most without any answer, %v without a line of the lasting cell; the longest call took %v, the longest look %v",
		times, clients, calls.Load(), answers.longest, lines.longest, longest, health)
	s.ends()
}

// TestReplacedKilled: whichever of the two servers is killed, and whenever, something owns
// everything: the other one, or the process that keeps sessions, for the next.
func TestReplacedKilled(t *testing.T) {
	moments := 3
	if full {
		moments = 20
	}
	took := 400 * time.Millisecond // of a replacement; as it was the last time
	for n := range moments {
		for _, who := range []string{"old", "new"} {
			t.Run(fmt.Sprintf("%s, moment %d", who, n), func(t *testing.T) {
				p := newReplaced(t)
				old := p.start("--addr", "127.0.0.1:0")
				c := old.serves()
				ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
				defer cancel()
				_, _, err := run(ctx, c, client.Execute{Session: "x", Cells: []messages.Cell{{Code: "x = 41"}}})
				require.NoError(t, err)
				gate := filepath.Join(p.home, "gate")
				_, err = c.Start(ctx, client.Execute{ID: "lasting", Session: "lasting", Cells: []messages.Cell{{Code: lasting(gate)}}})
				require.NoError(t, err)
				for e, err := range c.Events(ctx, "lasting", 0) { // what waits ends with a server that is killed
					require.NoError(t, err)
					if _, printed := e.(messages.Stream); printed {
						break
					}
				}
				began := time.Now()
				next := p.start("--replace", "--addr", "127.0.0.1:0")
				last := next
				select {
				case <-time.After(took * time.Duration(n) / time.Duration(moments-1)):
				case <-old.ended:
				}
				if who == "old" {
					old.kill()
					next.serves()
				} else {
					next.kill()
					select {
					case <-old.ended: // it was replaced before
						last = p.start("--replace", "--addr", "127.0.0.1:0")
						last.serves()
					case <-time.After(lastOf(t, old)):
						last = old
					}
				}
				if who == "old" {
					took = max(took, time.Since(began))
				}
				c = p.client()
				text, result, err := run(ctx, c, client.Execute{Session: "x", Cells: []messages.Cell{{Code: "x += 1; print(x)"}}})
				require.NoError(t, err)
				require.Equal(t, messages.StateKept, result.State)
				require.Equal(t, "42\n", text)
				require.NoError(t, os.WriteFile(gate, nil, 0o600))
				var lines strings.Builder
				for e, err := range c.Events(ctx, "lasting", 0) {
					require.NoError(t, err)
					switch e := e.(type) {
					case messages.Stream:
						lines.WriteString(e.Text)
					case messages.Final:
						require.Equal(t, messages.OutcomeOK, e.Result.Outcome, e.Result.Text)
					}
				}
				require.Equal(t, numbered(strings.Count(lines.String(), "\n")), lines.String())
				last.ends()
			})
		}
	}
}

// lastOf is how long to wait for a server to end that was replaced: not at all when it has
// not been.
func lastOf(t *testing.T, old *replaced) time.Duration {
	t.Helper()
	if strings.Contains(old.words(), "has replaced this server") {
		return patience
	}
	return 3 * time.Second
}

// TestReplacedBySignal: SIGUSR2 has a server start its successor.
func TestReplacedBySignal(t *testing.T) {
	p := newReplaced(t)
	s := p.start("--addr", "127.0.0.1:0")
	c := s.serves()
	_, _, err := run(t.Context(), c, client.Execute{ID: "first", Session: "x", Cells: []messages.Cell{{Code: "x = 41"}}})
	require.NoError(t, err)
	require.NoError(t, c.Pin(t.Context(), messages.SessionKey{Session: "x"}, true))
	first, err := c.Execution(t.Context(), "first")
	require.NoError(t, err)
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGUSR2))
	require.Eventually(t, func() bool { h, err := c.Health(t.Context()); return err == nil && h.PID != s.cmd.Process.Pid }, patience, 20*time.Millisecond)
	text, result, err := run(t.Context(), c, client.Execute{Session: "x", Cells: []messages.Cell{{Code: "print(x)"}}})
	require.NoError(t, err)
	require.Equal(t, "41\n", text)
	require.Equal(t, messages.StateKept, result.State)
	again, err := c.Execution(t.Context(), "first") // one that has ended goes from server to server
	require.NoError(t, err)
	require.Equal(t, first, again)
	all, err := c.Sessions(t.Context())
	require.NoError(t, err)
	require.True(t, all[0].Pinned)
	h, err := c.Health(t.Context())
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(h.PID, syscall.SIGINT))
	s.over(0)
}

// TestNotReplaced: what cannot be handed over is named, and the server goes on.
func TestNotReplaced(t *testing.T) {
	p := newReplaced(t)
	s := p.start("--addr", "127.0.0.1:0")
	c := s.serves()
	for args, want := range map[string]string{
		"--replace --addr 127.0.0.1:1":                   "--replace takes the address of the server that runs, 127.0.0.1:",
		"--replace --e2b":                                "--replace: nothing takes over what --e2b serves or keeps",
		"--replace --jupyter --hibernate lossy":          "--replace: nothing takes over what --jupyter serves or keeps",
		"--replace --keep-sessions=false":                "--replace needs --keep-sessions",
		"--replace --backend gateway":                    "--backend runner",
		"--addr 127.0.0.1:0":                             "replace it with --keep-sessions --replace",
		"--replace --isolation strongest --backend auto": "--keep-sessions: the walls around sessions",
	} {
		other := p.start(strings.Fields(args)...)
		<-other.ended
		require.NotZero(t, other.cmd.ProcessState.ExitCode(), args)
		require.Contains(t, other.words(), want)
		_, err := c.Health(t.Context())
		require.NoError(t, err, args)
	}
	_, _, err := run(t.Context(), c, client.Execute{Session: "x", Cells: []messages.Cell{{Code: "x = 41"}}})
	require.NoError(t, err)
	mark, err := c.Checkpoint(t.Context(), messages.SessionKey{Session: "x"})
	require.NoError(t, err)
	other := p.start("--replace", "--addr", "127.0.0.1:0")
	<-other.ended
	require.Contains(t, other.words(), "nothing takes over 1 checkpoint:")
	require.NoError(t, c.DropCheckpoint(t.Context(), mark.ID))
	next := p.start("--replace", "--addr", "127.0.0.1:0")
	next.serves()
	s.over(0)
	next.ends()
}
