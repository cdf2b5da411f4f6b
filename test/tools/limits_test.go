//go:build linux

package tools_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/toolbox"
)

// TestTheRuntimeOfARun is a limit by the clock on the wall: soft when the tool
// takes a cancel, hard when it does not.
func TestTheRuntimeOfARun(t *testing.T) {
	t.Parallel()
	set := map[string]any{"max_runtime_seconds": 1}
	h := start(t, launcher.Options{CancelGrace: patience}, toolbox.Tool{ID: "x", Set: set}, toolbox.Tool{ID: "s", Set: set, Stream: true})
	r := h.run("x", "sleep", 30)
	require.Equal(t, messages.OutcomeTimeout, r.Outcome)
	require.Equal(t, messages.ToolErrorRuntime, r.Error.Kind)
	require.Regexp(t, `^ResourceLimitExceeded: runtime \(max_runtime_seconds is 1\): it was ended after [\d.m]+s$`, r.Error.Message)
	require.Contains(t, r.Error.Hint, "view stderr")
	require.False(t, r.Hard)
	h.again("x")
	require.Equal(t, 1, h.tool("x").Spawns)
	r = h.run("s", "stream_slow")
	require.Regexp(t, `^ResourceLimitExceeded: runtime \(max_runtime_seconds is 1\): it was ended after [\d.m]+s$`, r.Error.Message)
	require.NotEmpty(t, r.Outputs, "what came is there")
	h = start(t, launcher.Options{CancelGrace: 300 * time.Millisecond}, toolbox.Tool{ID: "x", Set: set})
	r = h.run("x", "sleep_hard", 600)
	require.Regexp(t, `^ResourceLimitExceeded: runtime \(max_runtime_seconds is 1\): it was ended after [\d.m]+s$`, r.Error.Message)
	require.True(t, r.Hard)
	require.Less(t, r.Duration, 5*time.Minute)
	h.again("x")
	require.Equal(t, 2, h.tool("x").Spawns)
}

// TestProcessorTimeDoesNotAddUp: the limit of a run is none of the process, which
// may use as much processor time as its runs need together.
func TestProcessorTimeDoesNotAddUp(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{}, toolbox.Tool{ID: "x", Set: map[string]any{"max_runtime_seconds": 30}})
	for range 3 {
		h.ok("x", "burn", 0.2)
	}
	limits, err := os.ReadFile(filepath.Join("/proc", itoa(h.tool("x").PID), "limits"))
	require.NoError(t, err)
	require.Regexp(t, `(?m)^Max cpu time\s+unlimited\s+unlimited\s`, string(limits))
	require.Equal(t, 1, h.tool("x").Spawns)
}

// TestTheMemoryOfATool is a limit of the system where Python sees it, and of the
// launcher where what it started takes it.
func TestTheMemoryOfATool(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{}, toolbox.Tool{ID: "x", Set: map[string]any{"max_memory_mb": 300}})
	h.ok("x", "memory", 50)
	r := h.run("x", "memory", 400)
	require.Equal(t, messages.OutcomeError, r.Outcome)
	require.Equal(t, messages.ToolErrorMemory, r.Error.Kind)
	require.Equal(t, "ResourceLimitExceeded: memory (max_memory_mb is 300)", r.Error.Message)
	require.Contains(t, r.Error.Hint, "view stderr")
	require.Contains(t, r.Error.Stderr, "MemoryError")
	h.ok("x", "echo", 1)
	require.Equal(t, 1, h.tool("x").Spawns, "a tool that survives its limit stays")
}

// TestMemoryThatEndsATool names the limit, whoever ended the process: the tool
// itself when the system gave it no more, or the launcher when all its processes
// together have taken more than one may. Nothing is left of them, and the next
// run gets a new process.
func TestMemoryThatEndsATool(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{}, toolbox.Tool{ID: "x", Set: map[string]any{"max_memory_mb": 300}})
	r := h.run("x", "memory_die", 400)
	require.Equal(t, messages.OutcomeError, r.Outcome)
	require.Equal(t, messages.ToolErrorMemory, r.Error.Kind)
	require.Equal(t, "ResourceLimitExceeded: memory (max_memory_mb is 300)", r.Error.Message)
	require.Contains(t, r.Error.Hint, "view stderr")
	require.Contains(t, r.Error.Stderr, "MemoryError")
	r = h.run("x", "memory_spawn", 200)
	require.Equal(t, messages.OutcomeError, r.Outcome, "%+v", r.Error)
	require.Equal(t, messages.ToolErrorMemory, r.Error.Kind)
	require.Equal(t, "ResourceLimitExceeded: memory (max_memory_mb is 300)", r.Error.Message)
	h.eventually(func() bool { return len(left(h.Box)) == 0 }, "the end of what it had started")
	require.Equal(t, 2, h.Lines("x", "spawned.log"))
	h.ok("x", "echo", 1)
	require.Equal(t, 3, h.tool("x").Spawns)
}

// TestTheFilesOfARunHaveAQuota of bytes and of files.
func TestTheFilesOfARunHaveAQuota(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{ArtifactBytes: 10 << 20, ArtifactFiles: 20}, toolbox.Tool{ID: "x"})
	for _, what := range []map[string]any{
		{"files": 1, "bytes": 11 << 20, "then": 30},
		{"files": 21, "bytes": 1, "then": 30},
		{"files": 21, "bytes": 1, "then": 0}, // over before anybody looked
	} {
		r := h.run("x", "write", what)
		require.NotNil(t, r.Error)
		require.Equal(t, messages.ToolErrorArtifacts, r.Error.Kind)
		require.Equal(t, "ResourceLimitExceeded: artifacts (a run may write 10 MiB in 20 files)", r.Error.Message)
		require.False(t, r.Hard)
	}
	h.ok("x", "write", map[string]any{"files": 20, "bytes": 1})
	require.Equal(t, 1, h.tool("x").Spawns)
}

// TestTheOpenFilesOfATool are limited by the lower of what the host and the tool say.
func TestTheOpenFilesOfATool(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{MaxOpenFiles: 100}, toolbox.Tool{ID: "own", Set: map[string]any{"max_open_files": 64}},
		toolbox.Tool{ID: "none"}, toolbox.Tool{ID: "more", Set: map[string]any{"max_open_files": 512}})
	for id, want := range map[string]string{"own": "64", "none": "100", "more": "100"} {
		h.ok(id, "echo", 1)
		limits, err := os.ReadFile(filepath.Join("/proc", itoa(h.tool(id).PID), "limits"))
		require.NoError(t, err)
		require.Regexp(t, `(?m)^Max open files\s+`+want+`\s+`+want+`\s`, string(limits), id)
	}
}
