package supervisor_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// TestEvents: watchers hear everything in order, until they stop.
func TestEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var seen, second []string // written by the one goroutine that calls the watchers
		say := func(e messages.Lifecycle) string {
			switch e := e.(type) {
			case messages.ChildChanged:
				return fmt.Sprintf("%s#%d %s>%s", e.Path, e.Epoch, e.From, e.To)
			case messages.Decided:
				return fmt.Sprintf("%s: %s", e.Path, e.Directive)
			default:
				return e.Type()
			}
		}
		sys := startOnly(t, supervisor.SystemOptions{
			Strategy: strategy.RestartOnce(),
			OnEvent:  func(e messages.Lifecycle) { seen = append(seen, say(e)) },
			Children: []supervisor.Spec{supervise("s", supervisor.Options{Strategy: strategy.RestartOnce(), Children: []supervisor.Spec{
				{Key: "a", New: of(behaviour{handle: func(*supervisor.Ctx, any) error { return errTest }})},
			}})},
		})
		synctest.Wait()
		unwatch := sys.Watch(func(e messages.Lifecycle) { second = append(second, say(e)) })
		require.True(t, sys.Ref("s", "a").Tell(1))
		synctest.Wait()
		unwatch()
		unwatch()
		stop(t, sys)
		require.Equal(t, []string{
			"s#1 >starting", "s/a#1 >starting", "s/a#1 starting>idle", "s#1 starting>idle",
			"s/a#1 idle>suspended", "s/a: restart", "s/a#1 suspended>restarting", "s/a#2 restarting>starting", "s/a#2 starting>idle",
			"s#1 idle>stopping", "s/a#2 idle>stopping", "s/a#2 stopping>gone", "s#1 stopping>gone",
		}, seen)
		require.Equal(t, seen[4:9], second)
	})
}

// TestWatcherFails: a watcher that panics, or ends the goroutine it is called from, is
// not called again, and the log says so once. The others hear every event, the one that
// it failed on too.
func TestWatcherFails(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(){"panic": func() { panic("on purpose") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				var first, last []string // written by the one goroutine that calls the watchers
				failed := 0
				sys := startOnly(t, supervisor.SystemOptions{
					Logger:   slog.New(slog.NewTextHandler(&log, nil)),
					OnEvent:  func(e messages.Lifecycle) { first = append(first, e.Type()) },
					Children: []supervisor.Spec{supervise("gate", supervisor.Options{Handler: dynamic(echo)})},
				})
				synctest.Wait()
				sys.Watch(func(messages.Lifecycle) { failed++; fail() })
				first = nil
				sys.Watch(func(e messages.Lifecycle) { last = append(last, e.Type()) })
				answer(t, submit(t, sys.Ref("gate"), "a", 1))
				synctest.Wait()
				require.Equal(t, 1, failed)
				require.NotEmpty(t, last)
				stop(t, sys)
				require.Equal(t, 1, failed)
				require.Equal(t, first, last)
				require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
				require.Contains(t, log.String(), "is not called again")
			})
		})
	}
}

// TestEscalationFails: an OnEscalate that panics costs a line in the log, and the tree
// ends as it would have.
func TestEscalationFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		sys := startOnly(t, supervisor.SystemOptions{
			Logger:     slog.New(slog.NewTextHandler(&log, nil)),
			OnEscalate: func(supervisor.Exit) { panic("on purpose") },
			Strategy:   strategy.EscalateAfter(0, time.Minute),
			Children:   []supervisor.Spec{{Key: "a", New: of(behaviour{handle: func(*supervisor.Ctx, any) error { return errTest }})}},
		})
		ended := sys.Monitor()
		require.True(t, sys.Ref("a").Tell(1))
		require.Equal(t, messages.ExitEscalated, (<-ended).Kind)
		synctest.Wait()
		stop(t, sys)
		require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
	})
}

// TestSlowWatcher: what does not fit is counted, nothing blocks.
func TestSlowWatcher(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		var events, dropped int
		sys := startOnly(t, supervisor.SystemOptions{
			OnEvent: func(e messages.Lifecycle) {
				<-hold
				if d, ok := e.(messages.Dropped); ok {
					require.Equal(t, "events", d.What)
					dropped += d.Count
					return
				}
				events++
			},
			Children: []supervisor.Spec{supervise("gate", supervisor.Options{Handler: dynamic(echo)})},
		})
		const works = 35_000 // two events each, and a few
		for i := range works {
			answer(t, submit(t, sys.Ref("gate"), "a", i))
		}
		close(hold)
		synctest.Wait()
		stop(t, sys)
		require.Positive(t, dropped)
		require.InDelta(t, 2*works, events+dropped, 20)
	})
}

// TestExplain: what Terminate says is in the reason of the exit, after the one that there
// was.
func TestExplain(t *testing.T) {
	t.Parallel()
	for want, exit := range map[string]supervisor.Exit{
		"it is kept":                  {Kind: messages.ExitEvicted},
		"no room is left; it is kept": strategy.Exitf(messages.ExitEvicted, "no room is left"),
	} {
		synctest.Test(t, func(t *testing.T) {
			var gone []messages.Exit // written by the one goroutine that calls the watchers
			var given string
			sys := startOnly(t, supervisor.SystemOptions{
				OnEvent: func(e messages.Lifecycle) {
					if c, ok := e.(messages.ChildChanged); ok && c.To == messages.ChildGone && c.Key == "a" {
						gone = append(gone, *c.Exit)
					}
				},
				Children: []supervisor.Spec{supervise("s", supervisor.Options{Handler: &handler{}, Children: []supervisor.Spec{
					{Key: "a", New: of(behaviour{terminate: func(c *supervisor.Ctx, e supervisor.Exit) {
						given = e.Value().Reason
						c.Explain("it is lost")
						c.Explain("it is kept")
					}})},
				}})},
			})
			in(t, sys.Ref("s"), func(s *supervisor.Supervisor) { s.End("a", exit) })
			synctest.Wait()
			stop(t, sys)
			require.Equal(t, []messages.Exit{{Kind: messages.ExitEvicted, Reason: want}}, gone)
			require.Equal(t, exit.Value().Reason, given)
		})
	}
}

// TestSnapshot: the whole tree, nested supervisors included, each in its state.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		g := newGated("a", "b")
		sys := startOnly(t, supervisor.SystemOptions{Name: "root", Children: []supervisor.Spec{
			{Key: "plain", Kind: "sink", New: of(behaviour{init: func(c *supervisor.Ctx) error { c.Note(supervisor.Facts{Detail: "writes"}); return nil }})},
			supervise("s", supervisor.Options{Children: []supervisor.Spec{supervise("gate", supervisor.Options{
				Handler: dynamic(g.behaviour()), Strategy: strategy.Chain(strategy.RestartOnce(), strategy.IdleTTL(time.Hour), strategy.LRUQueue(2, 2)),
			})}}),
		}})
		gate := sys.Ref("s", "gate")
		submitWork(t, gate, "a", 1, func(w *supervisor.Work) { w.Owner = "ann" })
		submit(t, gate, "a", 2)
		submit(t, gate, "b", 1)
		submit(t, gate, "c", 1)
		g.open["a"] <- errTest
		g.open["b"] <- nil
		synctest.Wait()
		in(t, gate, func(s *supervisor.Supervisor) { s.Pin("a", true) })
		got, err := sys.Snapshot(t.Context())
		require.NoError(t, err)
		node := func(name, kind string, state messages.ChildState, children ...messages.Node) messages.Node {
			return messages.Node{Name: name, Kind: kind, State: state, Epoch: 1, Since: began, StartedAt: began, Children: children}
		}
		a := node("a", "", messages.ChildBusy)
		a.Epoch, a.Restarts, a.Pinned, a.Owner = 2, 1, true, "ann"
		a.LastExit = &messages.Exit{Kind: messages.ExitFailed, Reason: "on purpose"}
		c := node("c", "", messages.ChildBusy)
		plain := node("plain", "sink", messages.ChildIdle)
		plain.Detail = "writes"
		want := node("root", "supervisor", messages.ChildIdle, plain,
			node("s", "supervisor", messages.ChildIdle, node("gate", "supervisor", messages.ChildIdle, a, c)))
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
		stop(t, sys)
	})
}

// TestSnapshotHung: a supervisor that does not answer is shown as such, in time.
func TestSnapshotHung(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		d := deaf(release)
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			supervise("hung", supervisor.Options{Handler: d, Children: []supervisor.Spec{{Key: "below", New: of(echo)}}}),
			supervise("fine", supervisor.Options{Children: []supervisor.Spec{{Key: "below", New: of(echo)}}}),
		}})
		require.True(t, sys.Ref("hung").Tell("hang"))
		synctest.Wait()
		began := time.Now()
		n, err := sys.Snapshot(t.Context())
		require.NoError(t, err)
		require.Equal(t, time.Second, time.Since(began))
		require.Equal(t, "did not answer", n.Children[0].Detail)
		require.Empty(t, n.Children[0].Children)
		require.Empty(t, n.Children[1].Detail)
		require.Len(t, n.Children[1].Children, 1)

		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		began = time.Now()
		_, err = sys.Snapshot(ctx)
		require.NoError(t, err)
		require.Equal(t, 10*time.Millisecond, time.Since(began))
		close(release)
		synctest.Wait()
		require.Empty(t, n.Children[0].Children, "an answer that comes late changes nothing")
		stop(t, sys)
	})
}

// TestChild: one child is described without its siblings, and one that a supervisor does
// not tell of in time is not said to be missing.
func TestChild(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		d := deaf(release)
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			supervise("s", supervisor.Options{Handler: d, Children: []supervisor.Spec{
				{Key: "a", New: of(echo)},
				{Key: "b", Kind: "sink", New: of(echo)},
				supervise("below", supervisor.Options{Children: []supervisor.Spec{{Key: "c", New: of(echo)}}}),
			}}),
		}})
		tree, err := sys.Snapshot(t.Context())
		require.NoError(t, err)
		s := tree.Children[0]
		for _, want := range s.Children {
			got, found, err := sys.Child(t.Context(), "s", want.Name)
			require.NoError(t, err)
			require.True(t, found)
			want.Children = nil
			got.Detail = ""
			require.Equal(t, want, got)
		}
		c, found, err := sys.Child(t.Context(), "s", "below", "c")
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, s.Children[2].Children[0], c)
		for _, path := range [][]string{nil, {"none"}, {"s", "none"}, {"s", "a", "none"}, {"s", "none", "c"}} {
			_, found, err := sys.Child(t.Context(), path...)
			require.NoError(t, err)
			require.False(t, found, path)
		}
		require.True(t, sys.Ref("s").Tell("hang"))
		synctest.Wait()
		_, found, err = sys.Child(t.Context(), "s", "a")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.False(t, found)
		close(release)
		stop(t, sys)
		_, _, err = sys.Child(t.Context(), "s", "a")
		require.ErrorIs(t, err, supervisor.ErrStopped)
	})
}

// TestRefs: places, by their names from the root.
func TestRefs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGated("k")
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			supervise("s", supervisor.Options{Children: []supervisor.Spec{supervise("gate", supervisor.Options{Handler: dynamic(g.behaviour())})}}),
		}})
		require.Equal(t, "s/gate", sys.Ref("s", "gate").Path())
		require.False(t, sys.Ref("s", "gate", "k").Valid())
		r := submit(t, sys.Ref("s", "gate"), "k", 1)
		synctest.Wait()
		k := sys.Ref("s", "gate", "k")
		require.Equal(t, "s/gate/k", k.Path())
		g.open["k"] <- nil
		answer(t, r)
		in(t, sys.Ref("s", "gate"), func(s *supervisor.Supervisor) {
			require.Equal(t, k, s.Ref("k"))
			s.End("k", supervisor.Exit{})
		})
		synctest.Wait()
		require.False(t, k.Tell(1), "the key is forgotten")
		require.False(t, sys.Ref("s", "gate", "k").Valid())
		stop(t, sys)
	})
}

// TestAfterShutdown: after the end nothing is taken, and nothing hangs.
func TestAfterShutdown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{supervise("gate", supervisor.Options{Handler: dynamic(echo)})}})
		gate := sys.Ref("gate")
		stop(t, sys)
		require.False(t, gate.Tell(1))
		_, err := supervisor.Ask[int](t.Context(), gate, question(1))
		require.ErrorIs(t, err, supervisor.ErrNoProcess)
		exit := <-sys.Monitor("gate")
		require.ErrorIs(t, exit, supervisor.ErrNoProcess)
	})
}
