package messages_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var (
	at       = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	key      = messages.SessionKey{Session: "analysis", Cwd: "/srv/data"}
	position = messages.Position{Seq: 7, Cell: 1}
	one      = 1
	artifact = "artifact://3"
)

func raw(s string) messages.RawJSON { return messages.RawJSON(s) }

var result = messages.Result{
	Outcome: messages.OutcomeError, State: messages.StateKept, Text: "a <b> & \"c\"",
	Backend: "gateway", Session: key.Session, Cwd: key.Cwd,
	Cells: []messages.CellResult{
		{
			Index: 0, Title: "load", Status: messages.CellError, Outcome: messages.OutcomeError, Output: "boom", DurationMS: 12, ExitCode: &one,
			Error:  &messages.ErrorDetails{Name: "ValueError", Message: "boom", Traceback: []string{"Traceback", "ValueError: boom"}},
			Events: []messages.RawJSON{raw(`{"op":"read"}`)},
		},
		{Index: 1, Status: messages.CellPending, Outcome: messages.OutcomeNotStarted},
	},
	JSON:       []messages.RawJSON{raw(`{"a":1}`)},
	Images:     []messages.Image{{MIME: messages.MIMEPNG, Data: "aGk="}},
	Truncation: &messages.Truncation{Direction: "tail", TruncatedBy: "bytes", TotalLines: 10, TotalBytes: 100, OutputLines: 2, OutputBytes: 20, ShownStart: 9, ShownEnd: 10, Artifact: artifact},
	Artifact:   &artifact, Exec: "id-1",
	Progress: messages.Progress{Reach: messages.ReachBegun, Begun: 1, Cells: 2, Waited: messages.Waited{Turn: 4, Place: 3, Kernel: 2, Processor: 1}, First: true},
}

var events = []messages.Event{
	messages.Status{Position: position, Status: messages.CellRunning},
	messages.Stream{Position: position, Name: messages.StdoutStream, Text: "out <&>\n"},
	messages.Stream{Position: position, Name: messages.StderrStream, Text: "err\n"},
	messages.Display{Position: position, Data: messages.Bundle{messages.MIMEPlain: raw(`"x"`)}, Metadata: raw(`{}`), DisplayID: "d1", Update: true},
	messages.ExecuteResult{Position: position, Data: messages.Bundle{messages.MIMEPlain: raw(`"42"`)}, ExecutionCount: 3},
	messages.ClearOutput{Position: position, Wait: true},
	messages.Error{Position: position, ErrorDetails: messages.ErrorDetails{Name: "ValueError", Message: "boom", Traceback: []string{"l1", "l2"}}},
	messages.InputRequest{Position: position, ID: "in-1", Prompt: "name? ", Password: true, IdleTimeoutMS: 300_000},
	messages.Comm{Position: position, ID: "c1", Action: messages.CommOpen, Target: "jupyter.widget", Data: raw(`{"state":{}}`), Buffers: [][]byte{[]byte("hi")}},
	messages.Notice{Position: position, Code: "state-lost", Text: "gone"},
	messages.HostCallStep{Position: position, Call: "c-1", Kind: messages.CallTool, Name: "search", Phase: messages.CallFailed, Error: &messages.HostError{Type: "KeyError", Message: "no such page"}, DurationMS: 12},
	messages.HostEvent{Position: position, Call: "c-2", Name: "selfref_fork_spawned", Data: raw(`{"fork_id":"fork_1"}`)},
	messages.Final{Position: position, Result: result},
}

var lifecycle = []messages.Lifecycle{
	messages.ChildChanged{At: at, Path: "root/gateway/a", Key: "a", Kind: "kernel", Epoch: 2, From: messages.ChildBusy, To: messages.ChildSuspended, Exit: &messages.Exit{Kind: messages.ExitFailed, Reason: "killed by signal 9"}, PID: 42, CopyOf: "b"},
	messages.Decided{At: at, Path: "root/gateway/a", Directive: "restart", After: time.Second},
	messages.Dropped{At: at, Path: "root/gateway/a", Epoch: 1, Count: 3, What: "output"},
}

// values are the messages that have no type member of their own.
var values = map[string]any{
	"execute": messages.Execute{
		ID: "id-1", Key: key, Owner: "tenant", Cells: []messages.Cell{{Title: "t", Code: "1+1"}}, Timeout: 30 * time.Second, Deadline: at, Made: at, Reset: true,
		Mode: messages.ModePerCall, Env: map[string]string{"A": "b"}, CallEnv: map[string]string{"C": "d"}, AllowStdin: true, InputTimeout: time.Minute, ResetNames: true,
	},
	"interrupt":          messages.Interrupt{Key: key, Exec: "id-1", Cause: messages.CauseTimeout, Deadline: time.Second, Active: true},
	"reset":              messages.Reset{Key: key},
	"input_answer":       messages.InputAnswer{Value: "x", Status: messages.InputExpired, Idle: time.Second},
	"host_call":          messages.HostCall{ID: "c-1", Kind: messages.CallPrimitive, Name: "selfref.context.remember", Args: raw(`{"args":["x"],"kwargs":{}}`)},
	"host_result":        messages.HostResult{Value: raw(`[1]`), Error: &messages.HostError{Type: "ValueError", Message: "no"}},
	"close":              messages.Close{Key: key},
	"fork":               messages.Fork{Key: key, Names: []string{"a@/srv/data", "b@/srv/data"}},
	"fork_refused":       messages.ForkRefused{Reason: messages.ForkThreads, Problem: "2 threads run"},
	"rewind":             messages.Rewind{Key: key},
	"save_checkpoint":    messages.SaveCheckpoint{Key: key, Checkpoint: messages.CheckpointKey{Name: "trained", Workspace: "sums"}, Owner: "tenant", Lossy: true, Replace: true},
	"restore_checkpoint": messages.RestoreCheckpoint{Key: key, Ready: "r-1"},
	"restore_refused":    messages.RestoreRefused{Checkpoint: "trained", Reason: messages.RestoreOwner, Problem: "it belongs to another owner", Ended: true},
	"pin":                messages.Pin{Key: key, Pinned: true},
	"drain":              messages.Drain{},
	"release_owner":      messages.ReleaseOwner{Owner: "tenant"},
	"result_object":      result,
	"not_started":        messages.NotStarted(messages.Execute{ID: "id-1", Key: key, Cells: []messages.Cell{{Code: "1"}}}, "runner", messages.RefusedOverloaded, "overloaded"),
	"timed_out": messages.Result{
		Outcome: messages.OutcomeTimeout, Cells: messages.Pending([]messages.Cell{{Code: "1"}}), Remedy: messages.RemedyMoreTime,
		Progress: messages.Progress{Reach: messages.ReachTurn, Cells: 1, Stop: messages.StopDeadline, Limit: time.Second},
	},
	"output":          messages.Output{Cells: []messages.CellOutput{{Index: 0, Text: "hi", Events: []messages.RawJSON{raw(`{"op":"x"}`)}, HasMarkdown: true}}, Artifact: artifact, Lost: "sink restarted"},
	"shutdown_report": messages.ShutdownReport{Stopped: 3, Leftovers: []messages.Leftover{{Path: "root/a", Exit: messages.Exit{Kind: messages.ExitHung}, PID: 9}}, Unanswered: 1, Duration: time.Second},
	"tool_event":      messages.ToolEvent{Seq: 3, Output: "text", Append: true, Value: raw(`"to be "`), Done: true},
	"tool_result": messages.ToolResult{
		Run: "r-1", Tool: "word-count", Outcome: messages.OutcomeError, Outputs: raw(`{"words":6}`),
		Error:    &messages.ToolError{Kind: messages.ToolErrorMemory, Message: "ResourceLimitExceeded: memory (max_memory_mb is 300)", Hint: "view stderr", Status: 500, Stderr: "MemoryError\n"},
		Warnings: []string{"schema drift: name"}, Cold: true, Hard: true, Artifacts: "/srv/tool-runs/r-1", Files: []string{"a.csv"}, Duration: time.Second,
	},
	"tool_result_ok": messages.ToolResult{Run: "r-2", Tool: "word-count", Outcome: messages.OutcomeOK, Outputs: raw(`{}`)},
	"tool_queued":    messages.ToolQueued{Reason: "as many tools are warm as may be"},
	"tools_state": messages.ToolsState{
		Cap: 5, Warm: 1, MemoryBudgetMB: 1000, MemoryMB: 512,
		Tools: []messages.ToolState{
			{
				ID: "word-count", State: messages.ChildBusy, PID: 42, Port: 41234, Started: at, LastUsed: at, Expires: at, Pinned: true, InFlight: 1, Waiting: 2, RSS: 3, Spawns: 4, Runs: 5,
				Drift: []string{"name"}, Failure: &messages.ToolFailure{At: at, Error: messages.ToolError{Kind: messages.ToolErrorCrashed, Message: "the tool exited with code 3"}},
			},
			{ID: "other", State: messages.ChildGone},
		},
	},
	"node": messages.Node{
		Name: "root", Kind: "supervisor", State: messages.ChildIdle, Epoch: 1, Since: at,
		Busy: &messages.Busy{Stalled: 1, Waited: 2, Postponed: 3, Pressure: .5},
		Children: []messages.Node{{
			Name: "a", Kind: "kernel", State: messages.ChildBusy, Epoch: 2, Since: at, StartedAt: at, Restarts: 1, LastExit: &messages.Exit{Kind: messages.ExitEvicted, Reason: "idle"},
			Queue: 2, Done: 9, Pinned: true, Owner: "o", TTL: at, PID: 1, RSS: 2, Detail: "d",
		}},
	},
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	var pretty bytes.Buffer
	require.NoError(t, json.Indent(&pretty, got, "", "  "))
	pretty.WriteByte('\n')
	path := filepath.Join("testdata", name+".golden.json")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, pretty.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update")
	require.Equal(t, string(want), pretty.String())
}

func TestEventsHaveGoldenJSON(t *testing.T) {
	for _, e := range events {
		t.Run(e.Type(), func(t *testing.T) {
			data, err := messages.AppendEvent(nil, e)
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(string(data), `{"seq":7,"cell":1,"type":"`+e.Type()+`"`), "%s", data)
			golden(t, "event_"+e.Type(), data)

			back, err := messages.ParseEvent(data)
			require.NoError(t, err)
			again, err := messages.AppendEvent(nil, back)
			require.NoError(t, err)
			require.JSONEq(t, string(data), string(again))
			if _, isFinal := e.(messages.Final); !isFinal {
				require.Empty(t, cmp.Diff(e, back))
			}
		})
	}
}

func TestLifecycleHasGoldenJSON(t *testing.T) {
	for _, e := range lifecycle {
		t.Run(e.Type(), func(t *testing.T) {
			data, err := messages.AppendLifecycle(nil, e)
			require.NoError(t, err)
			golden(t, "lifecycle_"+e.Type(), data)
			back, err := messages.ParseLifecycle(data)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(e, back))
			require.Equal(t, e.Subject(), back.Subject())
		})
	}
}

func TestValuesHaveGoldenJSON(t *testing.T) {
	for name, v := range values {
		t.Run(name, func(t *testing.T) {
			data, err := json.Marshal(v)
			require.NoError(t, err)
			golden(t, name, data)
		})
	}
}

func TestAnEmptyResultHasNoNullLists(t *testing.T) {
	data, err := json.Marshal(messages.Result{Cells: []messages.CellResult{{}}})
	require.NoError(t, err)
	for _, want := range []string{`"events":[]`, `"json":[]`, `"images":[]`, `"truncation":null`, `"artifact":null`, `"error":null`, `"exit_code":null`} {
		require.Contains(t, string(data), want)
	}
}

func TestBrokenEventsAreRefused(t *testing.T) {
	for _, bad := range []string{``, `[]`, `{}`, `{"type":"nonsense"}`, `{"type":"stdout","text":1}`, `{"type":"final","cells":1}`} {
		_, err := messages.ParseEvent([]byte(bad))
		require.Error(t, err, bad)
		_, err = messages.ParseLifecycle([]byte(bad))
		require.Error(t, err, bad)
	}
}

func TestAtDoesNotChangeTheReceiver(t *testing.T) {
	for _, e := range events {
		moved := e.At(messages.Position{Seq: 1, Cell: 0})
		require.Equal(t, position, e.Pos())
		require.Equal(t, messages.Position{Seq: 1, Cell: 0}, moved.Pos())
		require.Equal(t, e.Type(), moved.Type())
		require.Positive(t, e.Size())
	}
}

func FuzzParseEvent(f *testing.F) {
	for _, e := range events {
		data, err := messages.AppendEvent(nil, e)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := messages.ParseEvent(data)
		if err != nil {
			return
		}
		out, err := messages.AppendEvent(nil, e)
		require.NoError(t, err)
		_, err = messages.ParseEvent(out)
		require.NoError(t, err)
	})
}
