package launcher_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// TestTimesAreTold: which limit has passed, and how long the run really took. A run
// that does not end takes its limit and the grace, and no longer.
func TestTimesAreTold(t *testing.T) {
	for name, tc := range map[string]struct {
		deaf    bool
		timeout time.Duration // of the request
		after   time.Duration // when the caller's time is up, and how long it was
		limit   time.Duration
		message string
		took    time.Duration
	}{
		"the tool's": {
			message: "ResourceLimitExceeded: runtime (max_runtime_seconds is 10): it was ended after 10s", took: 10 * time.Second,
		},
		"the tool's, and it is deaf": {
			deaf: true, message: "ResourceLimitExceeded: runtime (max_runtime_seconds is 10): it was ended after 15s", took: 15 * time.Second,
		},
		"the request's": {
			timeout: 1500 * time.Millisecond, message: "the run did not end within the 1.5s that the caller gave it: it was ended after 1.5s", took: 1500 * time.Millisecond,
		},
		"the request's, and it is deaf": {
			deaf: true, timeout: 300 * time.Millisecond, message: "the run did not end within the 300ms that the caller gave it: it was ended after 5.3s", took: 5300 * time.Millisecond,
		},
		"the context's": {
			after: 500 * time.Millisecond, limit: 500*time.Millisecond - 300*time.Nanosecond,
			message: "the run did not end within the 500ms that the caller gave it: it was ended after 500ms", took: 500 * time.Millisecond,
		},
		"the context's, and not the request's": {
			timeout: 20 * time.Second, after: 500 * time.Millisecond, limit: 500 * time.Millisecond,
			message: "the run did not end within the 500ms that the caller gave it: it was ended after 500ms", took: 500 * time.Millisecond,
		},
		"not known": {
			after: 500 * time.Millisecond, message: "the run did not end in the time that the caller gave it: it was ended after 500ms", took: 500 * time.Millisecond,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, launcher.Options{}, func(w *world) {
				w.tool("a", func(k *kind) { k.MaxRuntime, k.deaf, k.hangs = 10*time.Second, tc.deaf, true })
				w.run("a", "")
				began := time.Now()
				_, reply, err := supervisor.Begin[messages.ToolResult](w.launcher(), launcher.Launch{
					ToolRun: messages.ToolRun{ID: "r", Tool: "a", Inputs: messages.RawJSON("for 1h"), Timeout: tc.timeout}, Plan: w.kinds["a"].Plan,
				})
				require.NoError(t, err)
				if tc.after > 0 {
					time.Sleep(tc.after)
					w.launcher().Tell(messages.ToolCancel{Run: "r", Cause: messages.CauseTimeout, Limit: tc.limit})
				}
				r, err := reply.Wait(context.Background())
				require.NoError(t, err)
				require.Equal(t, messages.OutcomeTimeout, r.Outcome)
				require.Equal(t, messages.ToolErrorRuntime, r.Error.Kind)
				require.Equal(t, tc.message, r.Error.Message)
				require.Equal(t, tc.took, time.Since(began))
				require.Equal(t, tc.deaf, r.Hard)
			})
		})
	}
}

// TestAToolWithoutAProcessorHasItsGrace: what a process that is asked to end waits for a
// processor is not counted, neither by its own grace nor by the supervisor; it is not
// waited for for ever.
func TestAToolWithoutAProcessorHasItsGrace(t *testing.T) {
	for name, tc := range map[string]struct {
		starved, ends time.Duration
		inOrder       bool
		took          time.Duration // about
	}{
		"it has one":                       {ends: 4 * time.Second, inOrder: true, took: 4 * time.Second},
		"it has one, and hangs":            {ends: time.Hour, took: 5 * time.Second},
		"it has none for a while":          {starved: 20 * time.Second, ends: 24 * time.Second, inOrder: true, took: 24 * time.Second},
		"it hangs when it has one":         {starved: 20 * time.Second, ends: time.Hour, took: 25 * time.Second},
		"it never gets a processor":        {starved: time.Hour, ends: time.Hour, took: 30 * time.Second},
		"a deaf run, in which it has none": {starved: 5 * time.Second, ends: 5500 * time.Millisecond, inOrder: true, took: 5500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, launcher.Options{WarmMax: 1}, func(w *world) {
				deaf := strings.HasPrefix(name, "a deaf run")
				w.tool("a", func(k *kind) { k.deaf, k.ends, k.starved = deaf, tc.ends, tc.starved })
				w.tool("b", nil)
				w.run("a", "")
				began := time.Now()
				if deaf {
					id, reply := w.begin("a", "for 1h")
					synctest.Wait()
					w.launcher().Tell(messages.ToolCancel{Run: id, Cause: messages.CauseCancelled})
					_, err := reply.Wait(context.Background())
					require.NoError(t, err)
					began = began.Add(4 * time.Second) // of its grace it gets a second to end in
				} else {
					require.Equal(t, messages.OutcomeOK, w.run("b", "").Outcome, "it takes the place of the other")
				}
				const early = time.Second // how much later than need be it may come to see that a wait was over
				require.InDelta(t, tc.took+early/2, time.Since(began), float64(early/2))
				require.Equal(t, tc.inOrder, slices.Contains(w.events, "in order a"), "%v", w.events)
			})
		})
	}
}

// TestTimeThatIsUpBeforeARun is told with what it was.
func TestTimeThatIsUpBeforeARun(t *testing.T) {
	inBubble(t, launcher.Options{}, func(w *world) {
		w.tool("a", func(k *kind) { k.startTakes = time.Second })
		id, reply := w.begin("a", "")
		w.launcher().Tell(messages.ToolCancel{Run: id, Cause: messages.CauseTimeout, Limit: 500 * time.Millisecond})
		r, err := reply.Wait(context.Background())
		require.NoError(t, err)
		require.Equal(t, messages.OutcomeTimeout, r.Outcome)
		require.Equal(t, "the 500ms that the caller gave the run were up before it began", r.Error.Message)
	})
}

// TestAnIdleToolOverItsMemory is ended, and both the state and the events have why.
func TestAnIdleToolOverItsMemory(t *testing.T) {
	inBubble(t, launcher.Options{}, func(w *world) {
		var mu sync.Mutex
		var exits []messages.Exit
		stop := w.system.Watch(func(ev messages.Lifecycle) {
			mu.Lock()
			defer mu.Unlock()
			if c, ok := ev.(messages.ChildChanged); ok && c.Kind == "tool" && c.Exit != nil {
				exits = append(exits, *c.Exit)
			}
		})
		defer stop()
		w.tool("a", func(k *kind) { k.MemoryMB = 100 })
		w.run("a", "")
		w.mu.Lock()
		w.kinds["a"].memory = 101 << 20
		w.mu.Unlock()
		time.Sleep(10 * time.Second)
		require.Empty(t, w.warm())
		failure := ask[messages.ToolsState](w, messages.ToolsQuery{}).Tools[0].Failure
		require.NotNil(t, failure)
		require.Equal(t, messages.ToolErrorMemory, failure.Error.Kind)
		require.Equal(t, "ResourceLimitExceeded: memory (max_memory_mb is 100): 101 MiB were in use while the tool was idle", failure.Error.Message)
		require.Equal(t, "stderr of 1000", failure.Error.Stderr)
		mu.Lock()
		require.NotEmpty(t, exits)
		require.Contains(t, exits[0].Reason, "101 MiB were in use while the tool was idle")
		mu.Unlock()
		w.mu.Lock()
		w.kinds["a"].memory = 0
		w.mu.Unlock()
		require.Equal(t, messages.OutcomeOK, w.run("a", "").Outcome, "the next run starts it again")
	})
}

// broken is a logger's handler that panics.
type broken struct{ slog.Handler }

func (broken) Enabled(context.Context, slog.Level) bool  { return true }
func (broken) Handle(context.Context, slog.Record) error { panic("the log is broken") }

// TestALoggerThatPanics costs a tool at most, and not the program.
func TestALoggerThatPanics(t *testing.T) {
	inBubble(t, launcher.Options{Logger: slog.New(broken{slog.DiscardHandler})}, func(w *world) {
		w.tool("a", func(k *kind) { k.deaf = true })
		id, reply := w.begin("a", "for 1h")
		synctest.Wait()
		w.launcher().Tell(messages.ToolCancel{Run: id})
		_, err := reply.Wait(context.Background())
		require.NoError(t, err)
		require.Equal(t, messages.OutcomeOK, w.run("a", "").Outcome)
	})
}
