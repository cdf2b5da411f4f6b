//go:build linux

package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/toolbox"
)

// TestManyCallersOfAColdTool share one start.
func TestManyCallersOfAColdTool(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{}, toolbox.Tool{ID: "x", Env: "START=late 0.3"})
	const callers = 50
	results := make([]messages.ToolResult, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			results[i], _ = h.Run(context.Background(), launcher.Request{Tool: "x", Inputs: toolbox.Inputs("echo", i)})
		})
	}
	all.Wait()
	for i, r := range results {
		require.Equal(t, messages.OutcomeOK, r.Outcome, "%+v", r.Error)
		require.EqualValues(t, i, result(t, r)["echo"])
		require.True(t, r.Cold)
	}
	require.Equal(t, 1, h.Lines("x", "starts.log"))
	require.Equal(t, 1, h.tool("x").Spawns)
	require.False(t, h.run("x", "echo", 1).Cold)
}

// TestManyCallersOfABrokenTool all hear of the one start that failed.
func TestManyCallersOfABrokenTool(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{}, toolbox.Tool{ID: "x", Env: "START=gate"})
	var ended []<-chan messages.ToolResult
	for i := range 20 {
		ended = append(ended, h.begin(fmt.Sprint("r", i), "x", "echo", 1))
	}
	h.eventually(func() bool { return h.tool("x").Waiting == 20 }, "all of them wait")
	h.Write("x", "open", "")
	for _, c := range ended {
		r := await(t, c)
		require.Equal(t, messages.OutcomeNotStarted, r.Outcome)
		require.Contains(t, r.Error.Stderr, "behind the gate")
	}
	require.Equal(t, 1, h.Lines("x", "starts.log"))
}

// TestOneRunAtATime: concurrent false holds for runs and for streams.
func TestOneRunAtATime(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		one := toolbox.Tool{ID: "one", Stream: stream, Set: map[string]any{"concurrent": false}}
		many := toolbox.Tool{ID: "many", Stream: stream}
		h := start(t, launcher.Options{}, one, many)
		do := "most"
		if stream {
			do = "stream_most"
		}
		most := func(tool string) string {
			var ended []<-chan messages.ToolResult
			for i := range 6 {
				ended = append(ended, h.begin(fmt.Sprint(tool, i), tool, do, 0.1))
			}
			last := ""
			for _, c := range ended {
				r := await(t, c)
				require.Equal(t, messages.OutcomeOK, r.Outcome, "%+v", r.Error)
				last = max(last, string(r.Outputs))
			}
			return last
		}
		require.Contains(t, most("one"), "1")
		require.NotContains(t, most("many"), "1")
	}
}

// TestAStreamComesInOrder, in each of the forms that tools use, however its
// bytes are cut.
func TestAStreamComesInOrder(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{}, toolbox.Tool{ID: "x", Stream: true})
	for _, do := range []string{"stream", "stream_chunks"} {
		var events []messages.ToolEvent
		r, err := h.Stream(t.Context(), launcher.Request{Tool: "x", Inputs: toolbox.Inputs(do, 50)}, func(e messages.ToolEvent) error {
			events = append(events, e)
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, messages.OutcomeOK, r.Outcome, "%+v", r.Error)
		require.Len(t, events, 50)
		text := ""
		for i, e := range events {
			require.Equal(t, i, e.Seq)
			require.Equal(t, "result", e.Output)
			require.True(t, e.Append)
			require.Equal(t, i == 49, e.Done)
			var s string
			require.NoError(t, json.Unmarshal(e.Value, &s))
			text += s
		}
		want, err := json.Marshal(map[string]string{"result": text})
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(r.Outputs))
	}
	r := h.run("x", "stream_short")
	require.Equal(t, messages.OutcomeError, r.Outcome, "a stream that ends without its end")
	require.JSONEq(t, `{"result":"some"}`, string(r.Outputs))
}

// TestAStreamThatNobodyReads: the tool waits, and so does the host's memory.
func TestAStreamThatNobodyReads(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{}, toolbox.Tool{ID: "x", Stream: true})
	reading := make(chan struct{})
	n := 0
	ended := make(chan messages.ToolResult, 1)
	go func() {
		r, _ := h.Stream(context.Background(), launcher.Request{Tool: "x", Inputs: toolbox.Inputs("stream_flood", []int{60, 100_000})}, func(messages.ToolEvent) error {
			<-reading
			n++
			return nil
		})
		ended <- r
	}()
	h.inFlight("x", 1)
	close(reading)
	r := await(t, ended)
	require.Equal(t, messages.OutcomeOK, r.Outcome, "%+v", r.Error)
	require.Equal(t, 60, n)
	require.Len(t, r.Outputs, 6_000_000+len(`{"result":""}`))
}

// TestACallerThatLeaves cancels its run; the tool stays.
func TestACallerThatLeaves(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{}, toolbox.Tool{ID: "x", Stream: true})
	enough := errors.New("enough")
	r, err := h.Stream(t.Context(), launcher.Request{Tool: "x", Inputs: toolbox.Inputs("stream_slow")}, func(e messages.ToolEvent) error {
		if e.Seq == 3 {
			return enough
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeCancelled, r.Outcome)
	require.Contains(t, string(r.Outputs), "0 1 2", "what came is there")
	// It is asked to end, and its reader leaves, at once: either may be what it sees first.
	h.eventually(func() bool { return h.Lines("x", "gone.log")+h.Lines("x", "cancelled.log") > 0 }, "the tool saw that its reader had gone")
	ctx, cancel := context.WithCancel(t.Context())
	r, err = h.Stream(ctx, launcher.Request{Tool: "x", Inputs: toolbox.Inputs("stream_slow")}, func(e messages.ToolEvent) error {
		if e.Seq == 3 {
			cancel()
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeCancelled, r.Outcome)
	require.False(t, r.Hard)
	require.Equal(t, 1, h.tool("x").Spawns)
}

// TestAReaderThatPanics has its panic for itself: its run is cancelled, and nothing else
// ends.
func TestAReaderThatPanics(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{}, toolbox.Tool{ID: "x", Stream: true})
	require.PanicsWithValue(t, "the reader broke", func() {
		_, _ = h.Stream(t.Context(), launcher.Request{Tool: "x", Inputs: toolbox.Inputs("stream_slow")}, func(e messages.ToolEvent) error {
			if e.Seq == 3 {
				panic("the reader broke")
			}
			return nil
		})
	})
	require.Zero(t, h.tool("x").InFlight, "the run has ended when the panic goes on")
	require.Equal(t, messages.OutcomeOK, h.run("x", "stream", 3).Outcome)
	require.Equal(t, 1, h.tool("x").Spawns)
}

// TestACancel is soft when the tool takes it, hard when it does not, and
// answers at once when the run waits.
func TestACancel(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{CancelGrace: patience}, toolbox.Tool{ID: "soft", Set: map[string]any{"concurrent": false}})
	running, waits := h.begin("a", "soft", "sleep", 30), (<-chan messages.ToolResult)(nil)
	h.inFlight("soft", 1)
	waits = h.begin("b", "soft", "echo", 1)
	h.eventually(func() bool { return h.tool("soft").Waiting == 1 }, "one that waits")
	require.NoError(t, h.Cancel(t.Context(), "b"))
	r := await(t, waits)
	require.Equal(t, messages.OutcomeCancelled, r.Outcome)
	require.Equal(t, "the run was cancelled before it began", r.Error.Message)
	require.NoError(t, h.Cancel(t.Context(), "a"))
	r = await(t, running)
	require.Equal(t, messages.OutcomeCancelled, r.Outcome)
	require.False(t, r.Hard)
	require.Equal(t, true, result(t, r)["cancelled"])
	h.ok("soft", "echo", 1)
	require.Equal(t, 1, h.tool("soft").Spawns, "a tool that cancels stays warm")
	require.NoError(t, h.Cancel(t.Context(), "never-seen"))
}

// TestACancelThatIsNotTaken ends the process, and with it its other runs.
func TestACancelThatIsNotTaken(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{CancelGrace: 300 * time.Millisecond}, toolbox.Tool{ID: "hard"})
	running, other := h.begin("c", "hard", "sleep_hard", 30), h.begin("d", "hard", "sleep_hard", 30)
	h.inFlight("hard", 2)
	require.NoError(t, h.Cancel(t.Context(), "c"))
	r := await(t, running)
	require.Equal(t, messages.OutcomeCancelled, r.Outcome)
	require.True(t, r.Hard)
	r = await(t, other)
	require.Equal(t, messages.OutcomeLost, r.Outcome, "its process had to end")
	require.Contains(t, r.Error.Message, "because another run of it did not end")
	h.ok("hard", "echo", 1)
	require.Equal(t, 2, h.tool("hard").Spawns)
}

// TestAContextThatEnds cancels the run, and a deadline says so.
func TestAContextThatEnds(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{}, toolbox.Tool{ID: "x"})
	h.ok("x", "echo", 1)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	r, err := h.Run(ctx, launcher.Request{Tool: "x", Inputs: toolbox.Inputs("sleep", 30)})
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeTimeout, r.Outcome)
	said := regexp.MustCompile(`^the run did not end within the (\d+)ms that the caller gave it: it was ended after [\d.m]+s$`).FindStringSubmatch(r.Error.Message)
	require.Len(t, said, 2, r.Error.Message)
	given, err := strconv.Atoi(said[1]) // what was left of it when the call came here
	require.NoError(t, err)
	require.Positive(t, given)
	require.LessOrEqual(t, given, 200)
	r, err = h.Run(t.Context(), launcher.Request{Tool: "x", Inputs: toolbox.Inputs("sleep", 30), Timeout: 200 * time.Millisecond})
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeTimeout, r.Outcome)
	require.Contains(t, r.Error.Message, "within the 200ms that the caller gave it")
	require.Equal(t, 1, h.tool("x").Spawns)
}

// TestTheEnvironment: what a tool sees of the host, and in which order.
func TestTheEnvironment(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{Env: []string{
		"PATH=/usr/bin:/bin", "HOME=/nowhere", "PIXIE_HOST=1.2.3.4", "AWS_SECRET_ACCESS_KEY=abcdef", "LD_PRELOAD=", "VIRTUAL_ENV=/v", "PYTHONHOME=/p", "LANG=C.UTF-8",
	}}, toolbox.Tool{ID: "x", Env: "MINE=1\nEMPTY=\nPIXIE_TOOL_ID=forged\nCOPPICE_TOOL_TOKEN=forged\nPYTHONUNBUFFERED=0\nLANG=de_DE"})
	env := h.ok("x", "env")
	require.Equal(t, "/usr/bin:/bin", env["PATH"])
	require.Equal(t, "/nowhere", env["HOME"])
	require.Equal(t, "1", env["MINE"])
	require.Equal(t, "de_DE", env["LANG"], "the tool's file is above the host's environment")
	require.Equal(t, "x", env["PIXIE_TOOL_ID"], "reserved names are ours")
	require.Equal(t, "1", env["PYTHONUNBUFFERED"])
	require.Len(t, env["COPPICE_TOOL_TOKEN"], 64)
	for _, name := range []string{"PIXIE_HOST", "AWS_SECRET_ACCESS_KEY", "VIRTUAL_ENV", "PYTHONHOME", "EMPTY"} {
		require.NotContains(t, env, name)
	}
}

// TestSecretsAreMasked in errors and logs.
func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-hunter2"
	h := start(t, launcher.Options{}, toolbox.Tool{
		ID: "x", Env: "MY_KEY=" + secret, Set: map[string]any{"secrets": []any{map[string]any{"key": "MY_KEY", "required": true}}},
	})
	r := h.run("x", "secret", "MY_KEY")
	require.Contains(t, r.Error.Message, "said ***")
	require.Contains(t, r.Error.Stderr, "the secret is ***")
	log, err := h.Logs(t.Context(), "x")
	require.NoError(t, err)
	require.NotContains(t, log.Text+r.Error.Message+r.Error.Stderr, secret)
}

// TestStandardErrorIsBounded: the last 64 KiB are kept.
func TestStandardErrorIsBounded(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{}, toolbox.Tool{ID: "x"})
	h.ok("x", "stderr", 20_000)
	h.eventually(func() bool {
		log, err := h.Logs(t.Context(), "x")
		return err == nil && log.Live && len(log.Text) <= 64<<10 && len(log.Text) > 60<<10 && strings.HasSuffix(log.Text, "line 19999\n")
	}, "the last lines")
}

// TestPortsAreUsedOnce in the life of a host.
func TestPortsAreUsedOnce(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{}, toolbox.Tool{ID: "x"})
	seen := map[int]bool{}
	for range 4 {
		h.ok("x", "echo", 1)
		port := h.tool("x").Port
		require.False(t, seen[port])
		seen[port] = true
		there, err := h.Launcher.Stop(t.Context(), "x")
		require.NoError(t, err)
		require.True(t, there)
	}
}

// TestFilesOfARun are listed; their folder is for the user alone.
func TestFilesOfARun(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{}, toolbox.Tool{ID: "x"})
	r := h.run("x", "write", map[string]any{"files": 2, "bytes": 10})
	require.Equal(t, messages.OutcomeOK, r.Outcome, "%+v", r.Error)
	require.Equal(t, []string{"f0.bin", "f1.bin"}, r.Files)
	require.Equal(t, result(t, r)["folder"], r.Artifacts)
	for dir := r.Artifacts; filepath.Base(dir) != "tool-runs"; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm(), dir)
	}
	r = h.run("x", "echo", 1)
	require.Empty(t, r.Artifacts, "nothing was written")
	_, err := h.Run(t.Context(), launcher.Request{Tool: "x", ID: "../../escape"})
	require.NoError(t, err)
	r, err = h.Run(t.Context(), launcher.Request{Tool: "x", ID: "../../escape"})
	require.NoError(t, err)
	require.Contains(t, r.Error.Message, `the run id "../../escape"`)
}

// TestInputsThatAreNotDeclared are refused whoever gives them, and start nothing.
func TestInputsThatAreNotDeclared(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{}, toolbox.Tool{ID: "x"}, toolbox.Tool{ID: "needs", Set: map[string]any{
		"inputs": []any{input("do", "text", "required", true), input("n", "number")},
	}})
	list, err := h.Functions(t.Context())
	require.NoError(t, err)
	call := map[string]func(context.Context, messages.RawJSON) (messages.RawJSON, error){}
	for _, f := range list {
		call[f.Tool] = f.Call
	}
	for name, tc := range map[string]struct{ tool, inputs, says string }{
		"unknown":         {"x", `{"nope":1}`, `the tool x has no input "nope"; it has do, arg`},
		"missing":         {"needs", `{"n":1}`, `the tool needs needs the input "do", a string`},
		"of another type": {"needs", `{"do":"echo","n":"one"}`, `the input "n" of the tool needs is expected to be a number, and is a string`},
		"no object":       {"x", `[]`, "the inputs are not a JSON object"},
	} {
		r, err := h.Run(t.Context(), launcher.Request{Tool: tc.tool, Inputs: []byte(tc.inputs)})
		require.NoError(t, err, name)
		require.Equal(t, messages.OutcomeNotStarted, r.Outcome, name)
		require.Equal(t, messages.ToolErrorInput, r.Error.Kind, name)
		require.Contains(t, r.Error.Message, tc.says, name)
		require.Contains(t, r.Error.Hint, "those that tool.json declares", name)
		r, err = h.Stream(t.Context(), launcher.Request{Tool: tc.tool, Inputs: []byte(tc.inputs)}, func(messages.ToolEvent) error { return nil })
		require.NoError(t, err, name)
		require.Equal(t, messages.ToolErrorInput, r.Error.Kind, name)
		_, err = call[tc.tool](t.Context(), []byte(tc.inputs))
		require.ErrorContains(t, err, tc.says, name)
		require.Zero(t, h.tool(tc.tool).Spawns, name)
	}
}

// TestFunctions are what a model or a Python cell is offered.
func TestFunctions(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{}, toolbox.Tool{ID: "my-tool"}, toolbox.Tool{ID: "broken", Set: map[string]any{"name": 3}}, toolbox.Tool{ID: "old", Set: map[string]any{"archived": true}})
	list, err := h.Functions(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "my_tool", list[0].Name)
	require.JSONEq(t, `{"type":"object","additionalProperties":false,"required":[],"properties":{
		"do":{"type":"string","description":"Do","default":"echo"},"arg":{"description":"Argument"}}}`, string(list[0].Schema))
	out, err := list[0].Call(t.Context(), toolbox.Inputs("echo", "hello"))
	require.NoError(t, err)
	require.JSONEq(t, `{"result":{"echo":"hello"}}`, string(out))
	_, err = list[0].Call(t.Context(), toolbox.Inputs("raise"))
	var told *messages.ToolError
	require.ErrorAs(t, err, &told)
	require.Equal(t, messages.ToolErrorTool, told.Kind)
}
