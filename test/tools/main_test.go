//go:build linux

// Package tools_test runs real tools through package coppice, as a host does,
// and looks at the machine afterwards.
package tools_test

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/proc"
	"github.com/coppice-run/coppice/test/toolbox"
)

func TestMain(m *testing.M) {
	os.Exit(testMain(m))
}

// home is of all hosts of these tests, so that Python compiles what their tools
// import only once.
var home string

func testMain(m *testing.M) (code int) {
	var err error
	if home, err = os.MkdirTemp("", "coppice-tools-"); err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(home) }()
	// These tests wait for processes more than they compute.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	if code = m.Run(); code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	return code
}

// patience bounds every wait.
const patience = 3 * time.Minute

// tick is how often something that is waited for is looked at.
const tick = 10 * time.Millisecond

// host is a launcher over a box of tools.
type host struct {
	*launcher.Launcher
	*toolbox.Box
	t *testing.T
}

// start makes a launcher that is shut down at the end of the test, which then
// proves that no process of it is left.
func start(t *testing.T, o launcher.Options, tools ...toolbox.Tool) host {
	t.Helper()
	box := toolbox.New(t)
	for _, tool := range tools {
		box.Add(tool)
	}
	o.StartTimeout = cmp.Or(o.StartTimeout, 5*time.Minute) // many start at the same time
	o.Dir, o.Home, o.Artifacts = box.Dir, home, filepath.Join(t.TempDir(), "tool-runs")
	ts, err := launcher.Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		report := ts.Shutdown(ctx)
		require.True(t, report.Clean(), "leftovers: %+v", report.Leftovers)
		require.Eventually(t, func() bool { return len(left(box)) == 0 }, patience, 20*time.Millisecond, "processes were left behind")
	})
	return host{ts, box, t}
}

// left are the processes of a box that live.
func left(b *toolbox.Box) []proc.Process { return proc.WithEnv("TOOLBOX_MARK", b.Mark) }

// run makes a run that must be possible.
func (h host) run(tool, do string, arg ...any) messages.ToolResult {
	h.t.Helper()
	r, err := h.Run(h.t.Context(), launcher.Request{Tool: tool, Inputs: toolbox.Inputs(do, arg...)})
	require.NoError(h.t, err)
	return r
}

// ok makes a run that ends well, and returns its result.
func (h host) ok(tool, do string, arg ...any) map[string]any {
	h.t.Helper()
	r := h.run(tool, do, arg...)
	require.Equal(h.t, messages.OutcomeOK, r.Outcome, "%+v", r.Error)
	return result(h.t, r)
}

// again makes runs until one ends well: a second may be too little for any on a busy machine.
func (h host) again(tool string) {
	h.t.Helper()
	h.eventually(func() bool { return h.run(tool, "echo", 1).Outcome == messages.OutcomeOK }, "a run that ends well")
}

func result(t *testing.T, r messages.ToolResult) map[string]any {
	t.Helper()
	var outputs struct {
		Result map[string]any `json:"result"`
	}
	require.NoError(t, json.Unmarshal(r.Outputs, &outputs), "%s", r.Outputs)
	return outputs.Result
}

// begin makes a run in a goroutine of its own; the channel gets its result.
func (h host) begin(id, tool, do string, arg ...any) <-chan messages.ToolResult {
	ended := make(chan messages.ToolResult, 1)
	go func() { // ends with the run, at the latest when the launcher does
		r, err := h.Run(context.Background(), launcher.Request{ID: id, Tool: tool, Inputs: toolbox.Inputs(do, arg...)})
		if err != nil {
			r.Error = &messages.ToolError{Message: err.Error()}
		}
		ended <- r
	}()
	return ended
}

// tool is the state of one tool.
func (h host) tool(id string) messages.ToolState {
	h.t.Helper()
	s, err := h.State(h.t.Context())
	require.NoError(h.t, err)
	for _, t := range s.Tools {
		if t.ID == id {
			return t
		}
	}
	return messages.ToolState{ID: id, State: messages.ChildGone}
}

func (h host) eventually(yes func() bool, what string) {
	h.t.Helper()
	require.Eventually(h.t, yes, patience, 10*time.Millisecond, what)
}

// inFlight waits until a tool has n runs that have begun.
func (h host) inFlight(id string, n int) {
	h.t.Helper()
	h.eventually(func() bool { return h.tool(id).InFlight == n }, "runs in flight")
}

func await(t *testing.T, c <-chan messages.ToolResult) messages.ToolResult {
	t.Helper()
	select {
	case r := <-c:
		return r
	case <-time.After(patience):
		require.FailNow(t, "the run does not end")
		return messages.ToolResult{}
	}
}
