//go:build linux

package tools_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/toolbox"
)

// warm are the tools that have a process.
func (h host) warm() []string {
	h.t.Helper()
	s, err := h.State(h.t.Context())
	require.NoError(h.t, err)
	require.LessOrEqual(h.t, s.Warm, s.Cap)
	var ids []string
	for _, t := range s.Tools {
		if t.State == messages.ChildIdle || t.State == messages.ChildBusy {
			ids = append(ids, t.ID)
		}
	}
	return ids
}

func three(set map[string]any) []toolbox.Tool {
	return []toolbox.Tool{{ID: "a", Set: set}, {ID: "b", Set: set}, {ID: "c", Set: set}}
}

// TestTheCapEndsTheLeastRecentlyUsed, and no pinned one; when all are pinned it
// is the new one that is refused, in words.
func TestTheCapEndsTheLeastRecentlyUsed(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{WarmMax: 2}, three(nil)...)
	h.ok("a", "echo", 1)
	h.ok("b", "echo", 1)
	h.ok("a", "echo", 1)
	h.ok("c", "echo", 1)
	require.Equal(t, []string{"a", "c"}, h.warm())
	require.NoError(t, h.Pin(t.Context(), "a", true))
	h.ok("b", "echo", 1)
	require.Equal(t, []string{"a", "b"}, h.warm())
	require.NoError(t, h.Pin(t.Context(), "b", true))
	r := h.run("c", "echo", 1)
	require.Equal(t, messages.OutcomeNotStarted, r.Outcome)
	require.Equal(t, messages.ToolErrorOverloaded, r.Error.Kind)
	require.Equal(t, "overloaded: 2 tools are warm, which is the limit, and each of them is busy or pinned", r.Error.Message)
	require.Contains(t, r.Error.Hint, "unpin")
	require.Equal(t, []string{"a", "b"}, h.warm())
	require.NoError(t, h.Pin(t.Context(), "b", false))
	h.ok("c", "echo", 1)
	require.Equal(t, []string{"a", "c"}, h.warm())
}

// TestARunIsNeverEndedForAnother: neither to make room nor because of its age.
func TestARunIsNeverEndedForAnother(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{WarmMax: 1}, three(map[string]any{"warm_keep_seconds": 1})...)
	long := h.begin("long", "a", "sleep", 3)
	h.inFlight("a", 1)
	r := h.run("b", "echo", 1)
	require.Equal(t, messages.ToolErrorOverloaded, r.Error.Kind)
	require.Equal(t, "overloaded: 1 tool is warm, which is the limit, and it is busy or pinned", r.Error.Message)
	r = await(t, long)
	require.Equal(t, messages.OutcomeOK, r.Outcome, "three times its time to be kept: %+v", r.Error)
	require.Equal(t, false, result(t, r)["cancelled"])
	h.ok("b", "echo", 1)
}

// TestEachToolHasItsOwnTime to be kept, and a pin does not lengthen it.
func TestEachToolHasItsOwnTime(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{},
		toolbox.Tool{ID: "short", Set: map[string]any{"warm_keep_seconds": 1}},
		toolbox.Tool{ID: "pinned", Set: map[string]any{"warm_keep_seconds": 1, "pinned_warm": true}},
		toolbox.Tool{ID: "long"})
	for _, id := range []string{"short", "pinned", "long"} {
		h.ok(id, "echo", 1)
	}
	require.True(t, h.tool("pinned").Pinned)
	require.WithinDuration(t, time.Now().Add(300*time.Second), h.tool("long").Expires, time.Minute)
	h.eventually(func() bool { return len(h.warm()) == 1 }, "the end of two")
	require.Equal(t, []string{"long"}, h.warm())
	require.Nil(t, h.tool("short").Failure, "its end is no failure")
}

// TestPinsAreKept for the next host of the folder.
func TestPinsAreKept(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{}, three(nil)...)
	require.NoError(t, h.Pin(t.Context(), "a", true))
	require.NoError(t, h.Pin(t.Context(), "b", true))
	require.NoError(t, h.Pin(t.Context(), "b", false))
	require.Error(t, h.Pin(t.Context(), "none", true))
	next, err := launcher.Start(t.Context(), launcher.Options{Dir: h.Box.Dir, Home: t.TempDir()})
	require.NoError(t, err)
	defer next.Shutdown(context.Background())
	s, err := next.State(t.Context())
	require.NoError(t, err)
	require.Len(t, s.Tools, 1)
	require.Equal(t, "a", s.Tools[0].ID)
	require.True(t, s.Tools[0].Pinned)
}

// TestAPrewarmEndsNothing.
func TestAPrewarmEndsNothing(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{WarmMax: 2}, append(three(nil), toolbox.Tool{ID: "broken", Env: "START=raise"})...)
	q, err := h.Prewarm(t.Context(), "a")
	require.NoError(t, err)
	require.True(t, q.Queued)
	h.eventually(func() bool { return h.tool("a").State == messages.ChildIdle }, "a warm tool")
	require.False(t, h.run("a", "echo", 1).Cold)
	used := h.tool("a").LastUsed
	q, err = h.Prewarm(t.Context(), "a")
	require.NoError(t, err)
	require.True(t, q.Queued)
	h.eventually(func() bool { return h.tool("a").LastUsed.After(used) }, "a warm tool was used")
	q, err = h.Prewarm(t.Context(), "broken")
	require.NoError(t, err)
	require.True(t, q.Queued)
	h.eventually(func() bool { return h.tool("broken").Failure != nil }, "the failure")
	h.eventually(func() bool { return h.tool("broken").State == messages.ChildGone }, "its end")
	h.ok("b", "echo", 1)
	q, err = h.Prewarm(t.Context(), "c")
	require.NoError(t, err)
	require.False(t, q.Queued)
	require.Contains(t, q.Reason, "prewarming ends none of them")
	require.Equal(t, []string{"a", "b"}, h.warm())
	_, err = h.Prewarm(t.Context(), "none")
	require.Error(t, err)
}

// TestTheMemoryBudget counts what warm tools may use.
func TestTheMemoryBudget(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{MemoryBudgetMB: 1000},
		toolbox.Tool{ID: "small", Set: map[string]any{"max_memory_mb": 300}},
		toolbox.Tool{ID: "big", Set: map[string]any{"max_memory_mb": 600}},
		toolbox.Tool{ID: "next", Set: map[string]any{"max_memory_mb": 500}},
		toolbox.Tool{ID: "huge", Set: map[string]any{"max_memory_mb": 1001}})
	h.ok("big", "echo", 1)
	h.ok("small", "echo", 1)
	h.ok("next", "echo", 1)
	require.Equal(t, []string{"next", "small"}, h.warm(), "the heaviest makes room, though it is not the oldest use")
	r := h.run("huge", "echo", 1)
	require.Equal(t, "overloaded: the tool may use 1001 MB, and all warm tools together 1000 MB", r.Error.Message)
}

// TestAChangedToolIsStartedAnew by its next run.
func TestAChangedToolIsStartedAnew(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{}, toolbox.Tool{ID: "x", Env: "WHAT=old"})
	require.Equal(t, "old", h.ok("x", "env")["WHAT"])
	h.Write("x", ".env", "TOOLBOX_MARK="+h.Mark+"\nWHAT=newer\n")
	require.Equal(t, "newer", h.ok("x", "env")["WHAT"])
	require.Equal(t, 2, h.Lines("x", "starts.log"))
}

// TestAStop ends the process and its runs; one that is not there is no error.
func TestAStop(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{}, toolbox.Tool{ID: "x", Set: map[string]any{"concurrent": false}})
	there, err := h.Launcher.Stop(t.Context(), "x")
	require.NoError(t, err)
	require.False(t, there)
	running := h.begin("a", "x", "sleep", 30)
	h.inFlight("x", 1)
	waits := h.begin("b", "x", "echo", 1)
	h.eventually(func() bool { return h.tool("x").Waiting == 1 }, "one that waits")
	pid := h.tool("x").PID
	there, err = h.Launcher.Stop(t.Context(), "x")
	require.NoError(t, err)
	require.True(t, there)
	_, err = os.Stat(fmt.Sprintf("/proc/%d", pid))
	require.ErrorIs(t, err, os.ErrNotExist, "it is reaped when Stop returns")
	for _, c := range []<-chan messages.ToolResult{running, waits} {
		r := await(t, c)
		require.Equal(t, messages.OutcomeCancelled, r.Outcome)
		require.Contains(t, r.Error.Message, "the tool was stopped")
	}
	h.ok("x", "echo", 1)
}

// TestAToolThatIsDeafToTheRequestToEnd is killed after the grace, with what it
// has started.
func TestAToolThatIsDeafToTheRequestToEnd(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{StopGrace: 300 * time.Millisecond}, toolbox.Tool{ID: "deaf", Env: "START=deaf"}, toolbox.Tool{ID: "spawn", Env: "START=spawn"})
	h.ok("deaf", "echo", 1)
	h.ok("spawn", "echo", 1)
	require.Len(t, left(h.Box), 3)
	for _, id := range []string{"deaf", "spawn"} {
		there, err := h.Launcher.Stop(t.Context(), id)
		require.NoError(t, err)
		require.True(t, there)
	}
	h.eventually(func() bool { return len(left(h.Box)) == 0 }, "the end of all")
}

// TestTheEndOfAHost ends all tools at the same time.
func TestTheEndOfAHost(t *testing.T) {
	t.Parallel()
	deaf := func(id string) toolbox.Tool { return toolbox.Tool{ID: id, Env: "START=deaf"} }
	var mu sync.Mutex
	ending, most := map[string]bool{}, 0
	hear := func(e messages.Lifecycle) {
		if c, ok := e.(messages.ChildChanged); ok && c.Kind == "tool" {
			mu.Lock()
			defer mu.Unlock()
			if ending[c.Key] = c.To == messages.ChildStopping; !ending[c.Key] {
				delete(ending, c.Key)
			}
			most = max(most, len(ending))
		}
	}
	h := start(t, launcher.Options{StopGrace: 10 * time.Second, OnEvent: hear}, deaf("a"), deaf("b"), deaf("c"), deaf("d"))
	for _, id := range []string{"a", "b", "c"} {
		h.ok(id, "echo", 1)
	}
	running := h.begin("r", "d", "sleep", 30)
	h.inFlight("d", 1)
	report := h.Shutdown(context.Background())
	require.True(t, report.Clean(), "%+v", report.Leftovers)
	mu.Lock()
	require.Equal(t, 4, most, "they were ending at the same time")
	mu.Unlock()
	require.Equal(t, messages.OutcomeCancelled, await(t, running).Outcome)
	require.Empty(t, left(h.Box))
	_, err := h.Run(t.Context(), launcher.Request{Tool: "a"})
	require.ErrorIs(t, err, launcher.ErrClosed)
	_, err = h.State(t.Context())
	require.ErrorIs(t, err, launcher.ErrClosed)
}
