package launcher_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

func TestCallersShareAStart(t *testing.T) {
	inBubble(t, launcher.Options{}, func(w *world) {
		w.tool("a", func(k *kind) { k.startTakes = time.Second })
		var replies []supervisor.Reply[messages.ToolResult]
		for range 200 {
			_, reply := w.begin("a", "for 1s")
			replies = append(replies, reply)
		}
		for _, reply := range replies {
			r, err := reply.Wait(context.Background())
			require.NoError(t, err)
			require.Equal(t, messages.OutcomeOK, r.Outcome)
		}
		require.Equal(t, 1, w.kinds["a"].starts)
		require.Equal(t, 64, w.kinds["a"].most, "no more than so many at once")
	})
}

func TestRunsInTurn(t *testing.T) {
	inBubble(t, launcher.Options{MaxWaiting: 5}, func(w *world) {
		w.tool("a", func(k *kind) { k.Concurrent = false })
		w.run("a", "")
		began := time.Now()
		var replies []supervisor.Reply[messages.ToolResult]
		for range 6 {
			_, reply := w.begin("a", "for 1s")
			replies = append(replies, reply)
			synctest.Wait()
		}
		require.Equal(t, messages.ToolErrorOverloaded, w.run("a", "").Error.Kind, "no more may wait")
		for i, reply := range replies {
			_, err := reply.Wait(context.Background())
			require.NoError(t, err)
			require.Equal(t, time.Duration(i+1)*time.Second, time.Since(began))
		}
		require.Equal(t, 1, w.kinds["a"].most)
	})
}

func TestAFailedStartIsTold(t *testing.T) {
	inBubble(t, launcher.Options{}, func(w *world) {
		w.tool("a", func(k *kind) { k.startFails, k.startTakes = errors.New("no such thing"), time.Second })
		_, one := w.begin("a", "")
		_, two := w.begin("a", "")
		for _, reply := range []supervisor.Reply[messages.ToolResult]{one, two} {
			r, err := reply.Wait(context.Background())
			require.NoError(t, err)
			require.Equal(t, messages.OutcomeNotStarted, r.Outcome)
			require.Contains(t, r.Error.Message, "no such thing")
		}
		require.Equal(t, 1, w.kinds["a"].starts)
		w.mu.Lock()
		w.kinds["a"].startFails = nil
		w.mu.Unlock()
		require.Equal(t, messages.OutcomeOK, w.run("a", "").Outcome, "it is not held against it")
		require.Contains(t, ask[messages.ToolsState](w, messages.ToolsQuery{}).Tools[0].Failure.Error.Message, "no such thing")
	})
}

func TestACrashLosesWhatRanAndNothingElse(t *testing.T) {
	inBubble(t, launcher.Options{MaxParallel: 2}, func(w *world) {
		w.tool("a", nil)
		_, lost := w.begin("a", "for 1h")
		synctest.Wait()
		_, crash := w.begin("a", "crash")
		_, waits := w.begin("a", "for 1s")
		r, err := crash.Wait(context.Background())
		require.NoError(t, err)
		require.Equal(t, messages.OutcomeLost, r.Outcome)
		require.Equal(t, "stderr of 1000", r.Error.Stderr)
		r, err = lost.Wait(context.Background())
		require.NoError(t, err)
		require.Equal(t, messages.OutcomeLost, r.Outcome)
		r, err = waits.Wait(context.Background())
		require.NoError(t, err)
		require.Equal(t, messages.OutcomeOK, r.Outcome)
		require.JSONEq(t, `{"pid":1001}`, string(r.Outputs))
		require.Equal(t, launcher.Log{Text: "stderr of 1001", Live: true, Known: true}, ask[launcher.Log](w, launcher.Logs{Tool: "a"}))
	})
}

func TestACancelInTwoSteps(t *testing.T) {
	inBubble(t, launcher.Options{}, func(w *world) {
		w.tool("soft", nil)
		w.tool("deaf", func(k *kind) { k.deaf, k.hangs = true, true })
		for tool, want := range map[string]time.Duration{"soft": 0, "deaf": 5 * time.Second} {
			id, reply := w.begin(tool, "for 1h")
			synctest.Wait()
			began := time.Now()
			require.True(t, w.launcher().Tell(messages.ToolCancel{Tool: tool, Run: id}))
			require.True(t, w.launcher().Tell(messages.ToolCancel{Tool: tool, Run: id}), "twice is once")
			r, err := reply.Wait(context.Background())
			require.NoError(t, err)
			require.Equal(t, messages.OutcomeCancelled, r.Outcome)
			require.Equal(t, want, time.Since(began))
			require.Equal(t, want > 0, r.Hard)
		}
		require.Equal(t, "soft", w.warm())
	})
}

func TestTheLimitsOfARun(t *testing.T) {
	inBubble(t, launcher.Options{ArtifactBytes: 1 << 20}, func(w *world) {
		w.tool("a", func(k *kind) { k.MaxRuntime, k.MemoryMB = 10*time.Second, 100 })
		began := time.Now()
		r := w.run("a", "for 1h")
		require.Equal(t, messages.OutcomeTimeout, r.Outcome)
		require.Equal(t, "ResourceLimitExceeded: runtime (max_runtime_seconds is 10): it was ended after 10s", r.Error.Message)
		require.Equal(t, 10*time.Second, time.Since(began))
		for range 5 {
			require.Equal(t, messages.OutcomeOK, w.run("a", "for 9s").Outcome, "the time of runs does not add up")
		}
		require.Equal(t, 1, w.kinds["a"].starts)
		set := func(change func(*kind)) { w.mu.Lock(); defer w.mu.Unlock(); change(w.kinds["a"]) }
		set(func(k *kind) { k.written = 1<<20 + 1 })
		r = w.run("a", "for 1h")
		require.Equal(t, "ResourceLimitExceeded: artifacts (a run may write 1 MiB in 10000 files)", r.Error.Message)
		set(func(k *kind) { k.written, k.memory = 0, 101<<20 })
		_, one := w.begin("a", "for 8s")
		_, two := w.begin("a", "for 8s")
		for _, reply := range []supervisor.Reply[messages.ToolResult]{one, two} {
			r, err := reply.Wait(context.Background())
			require.NoError(t, err)
			require.Equal(t, "ResourceLimitExceeded: memory (max_memory_mb is 100)", r.Error.Message)
		}
		set(func(k *kind) { k.memory = 0 })
		require.Equal(t, messages.OutcomeOK, w.run("a", "").Outcome)
		require.Equal(t, 2, w.kinds["a"].starts)
	})
}

func TestAStopAnswersEverybody(t *testing.T) {
	inBubble(t, launcher.Options{}, func(w *world) {
		w.tool("a", func(k *kind) { k.Concurrent, k.hangs = false, true })
		require.False(t, ask[bool](w, messages.ToolStop{Tool: "a"}))
		_, running := w.begin("a", "for 1h")
		_, waits := w.begin("a", "for 1h")
		synctest.Wait()
		began := time.Now()
		require.True(t, ask[bool](w, messages.ToolStop{Tool: "a"}))
		require.Equal(t, 5*time.Second, time.Since(began))
		for _, reply := range []supervisor.Reply[messages.ToolResult]{running, waits} {
			r, err := reply.Wait(context.Background())
			require.NoError(t, err)
			require.Equal(t, messages.OutcomeCancelled, r.Outcome)
		}
		require.Empty(t, w.warm())
	})
}

func TestAStopDuringTheStart(t *testing.T) {
	inBubble(t, launcher.Options{}, func(w *world) {
		w.tool("a", func(k *kind) { k.startTakes = time.Minute })
		_, waits := w.begin("a", "")
		synctest.Wait()
		began := time.Now()
		require.True(t, ask[bool](w, messages.ToolStop{Tool: "a"}))
		r, err := waits.Wait(context.Background())
		require.NoError(t, err)
		require.Equal(t, messages.OutcomeCancelled, r.Outcome)
		require.Zero(t, time.Since(began))
	})
}

func TestDriftIsToldOnce(t *testing.T) {
	inBubble(t, launcher.Options{}, func(w *world) {
		w.tool("a", func(k *kind) { k.drift = []string{"name: differs"} })
		require.Equal(t, []string{"schema drift: name: differs"}, w.run("a", "").Warnings)
		require.Empty(t, w.run("a", "").Warnings)
	})
}

func TestAnIDIsInUse(t *testing.T) {
	inBubble(t, launcher.Options{}, func(w *world) {
		w.tool("a", nil)
		_, first := w.begin("a", "for 1s")
		w.mu.Lock()
		w.ids--
		w.mu.Unlock()
		require.Equal(t, messages.ToolErrorInput, w.run("a", "").Error.Kind)
		r, err := first.Wait(context.Background())
		require.NoError(t, err)
		require.Equal(t, messages.OutcomeOK, r.Outcome)
	})
}

// TestEveryRunIsAnswered under random schedules of runs, crashes, cancels,
// stops, pins and pauses; the cap is never passed, and no tool that runs in
// turn has two runs.
func TestEveryRunIsAnswered(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.IntRange(0, 9999), 1, 60).Draw(rt, "steps")
		synctest.Test(t, func(t *testing.T) {
			w := &world{t: t, kinds: map[string]*kind{}}
			var err error
			w.system, err = supervisor.Start(context.Background(), supervisor.SystemOptions{Name: "root", Drain: -1, Children: []supervisor.Spec{
				{Key: "launcher", New: func() supervisor.Behaviour {
					return launcher.New(launcher.Options{WarmMax: 2})
				}},
			}})
			require.NoError(t, err)
			for i, id := range []string{"a", "b", "c"} {
				w.tool(id, func(k *kind) {
					k.Concurrent, k.deaf, k.hangs = i != 0, i == 1, i == 2
					k.startTakes, k.WarmKeep, k.MaxRuntime = time.Duration(i)*time.Second, 5*time.Second, 20*time.Second
				})
			}
			var replies []supervisor.Reply[messages.ToolResult]
			for _, n := range steps {
				tool, what := string(rune('a'+n%3)), n/3%9
				switch what {
				case 0, 1, 2:
					_, reply := w.begin(tool, fmt.Sprintf("for %dms", n%7*500))
					replies = append(replies, reply)
				case 3:
					_, reply := w.begin(tool, "crash")
					replies = append(replies, reply)
				case 4:
					w.launcher().Tell(messages.ToolCancel{Run: fmt.Sprint("run", n%20)})
				case 5:
					_, _, _ = supervisor.Begin[bool](w.launcher(), messages.ToolStop{Tool: tool})
				case 6:
					ask[bool](w, messages.ToolPin{Tool: tool, Pinned: n%2 == 0})
				case 7:
					synctest.Wait()
				default:
					time.Sleep(time.Duration(n%5) * 700 * time.Millisecond)
				}
				s := ask[messages.ToolsState](w, messages.ToolsQuery{})
				require.LessOrEqual(t, s.Warm, 2)
			}
			for _, reply := range replies {
				ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
				r, err := reply.Wait(ctx)
				cancel()
				require.NoError(t, err)
				require.Equal(t, r.Outcome == messages.OutcomeOK, r.Error == nil, "%+v", r)
			}
			require.True(t, w.system.Shutdown(context.Background()).Clean())
			require.Empty(t, w.system.Bugs())
			require.LessOrEqual(t, w.kinds["a"].most, 1)
			for id, k := range w.kinds {
				require.Zero(t, k.live, "processes of %s are left", id)
			}
		})
	})
}
