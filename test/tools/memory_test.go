//go:build linux

package tools_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/toolbox"
)

// TestATextAboutMemoryIsNoLimit: what a tool says is not taken for what happened to it.
func TestATextAboutMemoryIsNoLimit(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{}, toolbox.Tool{ID: "x", Set: map[string]any{"max_memory_mb": 512}})
	for _, arg := range [][]string{
		{"nothing", "the note says: out of memory is fine"},
		{"CUDA out of memory", "it broke"},
		{"MemoryError: is a line of the log", "std::bad_alloc\nMemoryError: no"},
	} {
		r := h.run("x", "say", arg)
		require.Equal(t, messages.ToolErrorTool, r.Error.Kind, "%+v", r.Error)
		require.Contains(t, r.Error.Message, "the tool failed (status 500): ValueError: "+arg[1])
	}
	r := h.run("x", "memory", 600)
	require.Equal(t, messages.ToolErrorMemory, r.Error.Kind, "%+v", r.Error)
}

// manyAtOnce makes n runs at once and returns how each went.
func manyAtOnce(h host, n int, do string, arg any) []messages.ToolResult {
	h.t.Helper()
	ended := make([]<-chan messages.ToolResult, n)
	for i := range ended {
		ended[i] = h.begin(messages.NewID(), "x", do, arg)
	}
	results := make([]messages.ToolResult, n)
	for i := range ended {
		results[i] = await(h.t, ended[i])
	}
	return results
}

// TestThreadsThatHaveNoRoom: the stacks of a tool's threads count in its memory, and
// whoever is left without an answer for that learns so.
func TestThreadsThatHaveNoRoom(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{}, toolbox.Tool{ID: "x", Set: map[string]any{"max_memory_mb": 200}})
	h.ok("x", "echo", 1)
	failed := 0
	for _, r := range manyAtOnce(h, 64, "sleep", 3) {
		if r.Error == nil {
			continue
		}
		failed++
		require.Equal(t, messages.ToolErrorMemory, r.Error.Kind, "%+v", r.Error)
		require.Equal(t, "ResourceLimitExceeded: memory (max_memory_mb is 200)", r.Error.Message)
		require.Contains(t, r.Error.Hint, "threading.stack_size")
		require.Contains(t, r.Error.Stderr, "can't start new thread")
		require.Less(t, len(r.Error.Stderr), 9<<10)
	}
	require.Positive(t, failed, "there is room for a few stacks only")
}

// TestANewToolTakesManyRunsAtOnce, with the limits that it is written with and those
// of a launcher.
func TestANewToolTakesManyRunsAtOnce(t *testing.T) {
	t.Parallel()
	o := launcher.Options{Dir: t.TempDir(), Home: home, Artifacts: t.TempDir()}
	box, err := launcher.OpenToolbox(o)
	require.NoError(t, err)
	dir, err := box.New("shout")
	require.NoError(t, err)
	python, err := exec.LookPath("python3")
	require.NoError(t, err)
	_, err = box.Setup(t.Context(), dir, python, false, nil)
	require.NoError(t, err)
	l, err := launcher.Start(t.Context(), o)
	require.NoError(t, err)
	defer l.Shutdown(t.Context())
	for _, how := range []string{"cold", "warm", "warm again"} {
		ended := make(chan error, 100)
		for i := range cap(ended) {
			go func() { // ends with the run
				r, err := l.Run(t.Context(), launcher.Request{Tool: "shout", Inputs: json.RawMessage(fmt.Sprintf(`{"text":"run %d"}`, i))})
				switch want := fmt.Sprintf(`{"result": "RUN %d"}`, i); {
				case err != nil:
				case r.Error != nil:
					err = fmt.Errorf("%+v", *r.Error)
				case !equalJSON(want, r.Outputs):
					err = fmt.Errorf("run %d returned %s", i, r.Outputs)
				}
				ended <- err
			}()
		}
		for range cap(ended) {
			require.NoError(t, <-ended, how)
		}
	}
}

func equalJSON(want string, got []byte) bool {
	var a, b map[string]string
	return json.Unmarshal([]byte(want), &a) == nil && json.Unmarshal(got, &b) == nil && a["result"] == b["result"] && len(b) == 1
}
