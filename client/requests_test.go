package client_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
)

var (
	ctx = context.Background()
	key = messages.SessionKey{Session: "a b/c", Cwd: "/srv/x y"}
	// began is a time as servers write it.
	began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

// TestEachMethodAsksForItsRoute: what is asked, with which body, and what is made of the
// answer.
func TestEachMethodAsksForItsRoute(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		do     func(*client.Client) (any, error)
		want   asked
		answer string
		got    any
	}{
		"health": {
			func(c *client.Client) (any, error) { return c.Health(ctx) },
			asked{method: "GET", path: "/api/health"},
			`{"status":"ok","version":"1","backend":"runner","why":"asked for","pid":7,"cwd":"/srv","started":"2026-01-02T03:04:05Z","sessions":1,"executions":2}`,
			client.Health{Status: "ok", Version: "1", Backend: "runner", Why: "asked for", PID: 7, Cwd: "/srv", Started: began, Sessions: 1, Executions: 2},
		},
		"tree": {
			func(c *client.Client) (any, error) { return c.Tree(ctx) },
			asked{method: "GET", path: "/api/tree"},
			`{"name":"supervisor","children":[{"name":"sinks"}]}`,
			messages.Node{Name: "supervisor", Children: []messages.Node{{Name: "sinks"}}},
		},
		"sessions": {
			func(c *client.Client) (any, error) { return c.Sessions(ctx) },
			asked{method: "GET", path: "/api/sessions"},
			`{"sessions":[{"session":"a","cwd":"/srv","state":"idle","queue":1,"done":2,"pinned":true,"restarts":3,"last_exit":{"kind":"failed","reason":"r"},"since":"2026-01-02T03:04:05Z"}]}`,
			[]client.Session{{Session: "a", Cwd: "/srv", State: "idle", Queue: 1, Done: 2, Pinned: true, Restarts: 3, LastExit: &messages.Exit{Kind: "failed", Reason: "r"}, Since: began}},
		},
		"open": {
			func(c *client.Client) (any, error) {
				return c.Open(ctx, client.Open{Session: "a", Cwd: "/srv", Pin: true, Owner: "me"})
			},
			asked{method: "POST", path: "/api/sessions", body: `{"session":"a","cwd":"/srv","pin":true,"owner":"me"}`},
			`{"session":"a","state":"starting"}`,
			client.Session{Session: "a", State: "starting"},
		},
		"session": {
			func(c *client.Client) (any, error) { return c.Session(ctx, key) },
			asked{method: "GET", path: "/api/sessions/a%20b%2Fc?cwd=%2Fsrv%2Fx+y"},
			`{"session":"a b/c"}`,
			client.Session{Session: "a b/c"},
		},
		"session, where the server is": {
			func(c *client.Client) (any, error) { return c.Session(ctx, messages.SessionKey{Session: "a"}) },
			asked{method: "GET", path: "/api/sessions/a"},
			`{}`,
			client.Session{},
		},
		"fork": {
			func(c *client.Client) (any, error) { return c.Fork(ctx, key, 2, "me") },
			asked{method: "POST", path: "/api/sessions/a%20b%2Fc/fork?cwd=%2Fsrv%2Fx+y", body: `{"copies":2,"owner":"me"}`},
			`{"sessions":[{"session":"a-1","cwd":"/srv"},{"session":"a-2","cwd":"/srv"}]}`,
			[]messages.SessionKey{{Session: "a-1", Cwd: "/srv"}, {Session: "a-2", Cwd: "/srv"}},
		},
		"start": {
			func(c *client.Client) (any, error) {
				return c.Start(ctx, client.Execute{ID: "x1", Session: "a", Cells: []messages.Cell{{Code: "1"}}, Timeout: -1, AllowStdin: true, Env: map[string]string{"K": "v"}})
			},
			asked{method: "POST", path: "/api/executions", body: `{"id":"x1","session":"a","cells":[{"code":"1"}],"timeout_seconds":-1,"env":{"K":"v"},"allow_stdin":true}`},
			`{"id":"x1","kind":"call","state":"running","cells":1}`,
			client.Execution{ID: "x1", Kind: client.KindCall, State: client.Running, Cells: 1},
		},
		"executions": {
			func(c *client.Client) (any, error) { return c.Executions(ctx, messages.SessionKey{}) },
			asked{method: "GET", path: "/api/executions"},
			`{"executions":[]}`,
			[]client.Execution{},
		},
		"executions of a session": {
			func(c *client.Client) (any, error) { return c.Executions(ctx, key) },
			asked{method: "GET", path: "/api/executions?cwd=%2Fsrv%2Fx+y&session=a+b%2Fc"},
			`{"executions":[{"id":"x1","events":4}]}`,
			[]client.Execution{{ID: "x1", Events: 4}},
		},
		"execution": {
			func(c *client.Client) (any, error) { return c.Execution(ctx, "x/1") },
			asked{method: "GET", path: "/api/executions/x%2F1"},
			`{"id":"x/1","state":"ended","outcome":"error","notebook":{"a":1}}`,
			client.Execution{ID: "x/1", State: client.Ended, Outcome: messages.OutcomeError, Notebook: messages.RawJSON(`{"a":1}`)},
		},
		"answer": {
			func(c *client.Client) (any, error) { return c.Answer(ctx, "x1", "q1", "forty-two") },
			asked{method: "POST", path: "/api/executions/x1/input", body: `{"id":"q1","value":"forty-two"}`},
			`{"status":"accepted"}`,
			messages.InputStatus("accepted"),
		},
		"artifacts": {
			func(c *client.Client) (any, error) { return c.Artifacts(ctx) },
			asked{method: "GET", path: "/api/artifacts"},
			`{"artifacts":[{"id":3,"uri":"artifact://3","bytes":9,"modified":"2026-01-02T03:04:05Z"}]}`,
			[]client.Artifact{{ID: 3, URI: "artifact://3", Bytes: 9, Modified: began}},
		},
		"show a notebook": {
			func(c *client.Client) (any, error) {
				return c.ShowNotebook(ctx, client.Show{Path: "a.ipynb", Lines: "1-3"})
			},
			asked{method: "POST", path: "/api/notebooks/show", body: `{"path":"a.ipynb","lines":"1-3"}`},
			`{"path":"/srv/a.ipynb","text":"# %%","cells":1}`,
			client.Shown{Path: "/srv/a.ipynb", Text: "# %%", Cells: 1},
		},
		"apply to a notebook": {
			func(c *client.Client) (any, error) {
				return c.ApplyNotebook(ctx, client.Apply{Path: "a.ipynb", Text: "# %%\n", DryRun: true})
			},
			asked{method: "POST", path: "/api/notebooks/apply", body: `{"path":"a.ipynb","text":"# %%\n","dry_run":true}`},
			`{"written":true,"cells":3,"edited":1,"new":1,"deleted":2,"stale":1,"diff":"-x"}`,
			client.Applied{Written: true, Cells: 3, Edited: 1, New: 1, Deleted: 2, Stale: 1, Diff: "-x"},
		},
		"run a notebook": {
			func(c *client.Client) (any, error) {
				return c.RunNotebook(ctx, client.RunNotebook{ID: "x1", Path: "a.ipynb", Session: "a", Cells: "2-", Save: true})
			},
			asked{method: "POST", path: "/api/notebooks/run", body: `{"id":"x1","path":"a.ipynb","session":"a","cells":"2-","save":true}`},
			`{"id":"x1","kind":"notebook"}`,
			client.Execution{ID: "x1", Kind: client.KindNotebook},
		},
		"tools": {
			func(c *client.Client) (any, error) { return c.Tools(ctx) },
			asked{method: "GET", path: "/api/tools"},
			`[{"id":"a","name":"A","category":"x/y","status":"failed","validation":"fail","pinned":true,"problem":"p"}]`,
			[]client.Tool{{ID: "a", Name: "A", Category: "x/y", Status: "failed", Validation: "fail", Pinned: true, Problem: "p"}},
		},
		"tools that are warm": {
			func(c *client.Client) (any, error) { return c.ToolsHealth(ctx) },
			asked{method: "GET", path: "/api/healthz"},
			`{"ok":true,"uptime_seconds":1.5,"warm_tools":[{"id":"a","state":"idle","pid":7}]}`,
			client.ToolsHealth{OK: true, Uptime: 1.5, Warm: []messages.ToolState{{ID: "a", State: "idle", PID: 7}}},
		},
		"tools, for developers": {
			func(c *client.Client) (any, error) { return c.ToolsState(ctx) },
			asked{method: "GET", path: "/api/launcher/state"},
			`{"cap":5,"warm":1,"memory_mb":2,"tools":[]}`,
			messages.ToolsState{Cap: 5, Warm: 1, MemoryMB: 2, Tools: []messages.ToolState{}},
		},
		"logs of a tool": {
			func(c *client.Client) (any, error) { return c.ToolLogs(ctx, "a/b", 2) },
			asked{method: "GET", path: "/api/tools/a%2Fb/logs?limit=2"},
			`{"lines":["x","y"],"live":true}`,
			client.ToolLogs{Lines: []string{"x", "y"}, Live: true},
		},
		"all logs of a tool": {
			func(c *client.Client) (any, error) { return c.ToolLogs(ctx, "a", 0) },
			asked{method: "GET", path: "/api/tools/a/logs"},
			`{"lines":[]}`,
			client.ToolLogs{Lines: []string{}},
		},
		"stop a tool": {
			func(c *client.Client) (any, error) { return c.StopTool(ctx, "a") },
			asked{method: "POST", path: "/api/tools/a/stop"},
			`{"status":"stopped","tool_id":"a","was_running":true}`,
			client.ToolStopped{Status: "stopped", ToolID: "a", WasRunning: true},
		},
		"prewarm a tool": {
			func(c *client.Client) (any, error) { return c.PrewarmTool(ctx, "a") },
			asked{method: "POST", path: "/api/tools/a/prewarm"},
			`{"queued":false,"reason":"no room"}`,
			messages.ToolQueued{Reason: "no room"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := serve(t, client.Options{Patience: -1}, says(http.StatusOK, tc.answer))
			got, err := tc.do(c)
			require.NoError(t, err)
			require.Equal(t, tc.got, got)
			require.Equal(t, []asked{tc.want}, s.seen())
		})
	}
}

// TestEachMethodWithoutAnAnswer asks for its route, and is content with 204.
func TestEachMethodWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	const path = "/api/sessions/a%20b%2Fc"
	for name, tc := range map[string]struct {
		do   func(*client.Client) error
		want asked
	}{
		"close":     {func(c *client.Client) error { return c.CloseSession(ctx, key) }, asked{method: "DELETE", path: path + "?cwd=%2Fsrv%2Fx+y"}},
		"interrupt": {func(c *client.Client) error { return c.Interrupt(ctx, key) }, asked{method: "POST", path: path + "/interrupt?cwd=%2Fsrv%2Fx+y"}},
		"reset":     {func(c *client.Client) error { return c.Reset(ctx, key) }, asked{method: "POST", path: path + "/reset?cwd=%2Fsrv%2Fx+y"}},
		"pin":       {func(c *client.Client) error { return c.Pin(ctx, key, true) }, asked{method: "POST", path: path + "/pin?cwd=%2Fsrv%2Fx+y"}},
		"unpin":     {func(c *client.Client) error { return c.Pin(ctx, key, false) }, asked{method: "POST", path: path + "/unpin?cwd=%2Fsrv%2Fx+y"}},
		"cancel":    {func(c *client.Client) error { return c.Cancel(ctx, "x1") }, asked{method: "POST", path: "/api/executions/x1/cancel"}},
		"pin tool":  {func(c *client.Client) error { return c.PinTool(ctx, "a b", true) }, asked{method: "POST", path: "/api/tools/a%20b/pin"}},
		"let go":    {func(c *client.Client) error { return c.PinTool(ctx, "a", false) }, asked{method: "POST", path: "/api/tools/a/unpin"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := serve(t, client.Options{Patience: -1}, says(http.StatusNoContent, ""))
			require.NoError(t, tc.do(c))
			require.Equal(t, []asked{tc.want}, s.seen())
		})
	}
}

// TestASessionNeedsAName: without one nothing is asked.
func TestASessionNeedsAName(t *testing.T) {
	t.Parallel()
	s, c := serve(t, client.Options{}, says(http.StatusOK, "{}"))
	nameless := messages.SessionKey{Cwd: "/srv"}
	_, err := c.Session(ctx, nameless)
	require.ErrorIs(t, err, client.ErrNoSession)
	_, err = c.Fork(ctx, nameless, 1, "")
	require.ErrorIs(t, err, client.ErrNoSession)
	for _, do := range []func(context.Context, messages.SessionKey) error{
		c.CloseSession, c.Interrupt, c.Reset,
		func(ctx context.Context, k messages.SessionKey) error { return c.Pin(ctx, k, true) },
	} {
		require.ErrorIs(t, do(ctx, nameless), client.ErrNoSession)
	}
	require.Empty(t, s.seen())
}

// TestAnExecutionHasAnID, which the client makes, so that a request that is repeated
// runs once.
func TestAnExecutionHasAnID(t *testing.T) {
	t.Parallel()
	var tries atomic.Int64
	s, c := serve(t, client.Options{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/health" && tries.Add(1)%2 == 1 {
			cut(w)
		}
		says(http.StatusOK, "{}")(w, r)
	})
	_, err := c.Start(ctx, client.Execute{Session: "a"})
	require.NoError(t, err)
	_, err = c.RunNotebook(ctx, client.RunNotebook{Session: "a"})
	require.NoError(t, err)
	seen := s.seen()
	require.Len(t, seen, 6)
	require.Equal(t, seen[0], seen[2])
	require.Equal(t, seen[3], seen[5])
	require.Equal(t, asked{method: "GET", path: "/api/health"}, seen[1], "who answers now")
	require.Regexp(t, `"id":"[^"]{8,}"`, seen[0].body)
	require.Regexp(t, `"id":"[^"]{8,}"`, seen[3].body)
}

// TestWait asks until the execution has ended.
func TestWait(t *testing.T) {
	t.Parallel()
	var tries atomic.Int64
	s, c := serve(t, client.Options{}, func(w http.ResponseWriter, r *http.Request) {
		state := "running"
		if tries.Add(1) == 3 {
			state = "ended"
		}
		says(http.StatusOK, `{"id":"x1","state":"`+state+`"}`)(w, r)
	})
	x, err := c.Wait(ctx, "x1")
	require.NoError(t, err)
	require.Equal(t, client.Ended, x.State)
	require.Len(t, s.seen(), 3)
	require.Equal(t, asked{method: "GET", path: "/api/executions/x1?wait=30"}, s.seen()[0])
}
