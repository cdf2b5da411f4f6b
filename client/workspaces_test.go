package client_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
)

// TestWorkspacesAreAskedForTheirRoutes: what is asked, and with which body. What a real server
// answers is held by the tests of cmd/internal/httpapi.
func TestWorkspacesAreAskedForTheirRoutes(t *testing.T) {
	t.Parallel()
	const p, file = "/api/workspaces/a%20b", `{"path":"f","kind":"file","size":1,"mode":"0644"}`
	on := true
	for name, tc := range map[string]struct {
		do   func(*client.Client) (any, error)
		want asked
		say  string
	}{
		"create": {func(c *client.Client) (any, error) {
			return c.CreateWorkspace(ctx, client.NewWorkspace{Name: "w", Pass: []string{}, Limits: client.WorkspaceLimits{Memory: 7}, Lifetime: client.Lifetime{EndIn: 1.5}, Isolation: &client.Isolation{Level: "landlock"}})
		}, asked{method: "POST", path: "/api/workspaces", body: `{"name":"w","pass":[],"limits":{"memory_bytes":7},"isolation":{"level":"landlock"},"lifetime":{"end_in_seconds":1.5}}`}, `{}`},
		"create the least": {func(c *client.Client) (any, error) { return c.CreateWorkspace(ctx, client.NewWorkspace{Name: "w"}) }, asked{method: "POST", path: "/api/workspaces", body: `{"name":"w"}`}, `{}`},
		"list": {func(c *client.Client) (any, error) {
			return c.Workspaces(ctx, client.FilterWorkspaces{Labels: map[string]string{"a": "b=c"}, Owner: "me"})
		}, asked{method: "GET", path: "/api/workspaces?label=a%3Db%3Dc&owner=me"}, `{}`},
		"change": {func(c *client.Client) (any, error) {
			return c.ChangeWorkspace(ctx, "a b", client.ChangeWorkspace{Labels: map[string]string{}, Lifetime: &client.Lifetime{}, Pinned: &on})
		}, asked{method: "PATCH", path: p, body: `{"labels":{},"lifetime":{},"pinned":true}`}, `{}`},
		"change nothing": {func(c *client.Client) (any, error) {
			return c.ChangeWorkspace(ctx, "a b", client.ChangeWorkspace{})
		}, asked{method: "PATCH", path: p, body: `{}`}, `{}`},
		"prove": {func(c *client.Client) (any, error) { return c.ProveWorkspace(ctx, "a b") }, asked{method: "POST", path: p + "/prove"}, `{}`},
		"end":   {func(c *client.Client) (any, error) { return nil, c.EndWorkspace(ctx, "a b") }, asked{method: "DELETE", path: p}, ``},
		"list files": {func(c *client.Client) (any, error) {
			return c.ListFiles(ctx, "a b", client.ListFiles{Depth: -7, Most: 3})
		}, asked{method: "GET", path: p + "/files/list?depth=-1&most=3&path=."}, `{}`},
		"stat":   {func(c *client.Client) (any, error) { return c.StatFile(ctx, "a b", "x/../y") }, asked{method: "GET", path: p + "/files/stat?path=x%2F..%2Fy"}, file},
		"move":   {func(c *client.Client) (any, error) { return c.MoveFile(ctx, "a b", "x", "y", true) }, asked{method: "POST", path: p + "/files/move", body: `{"from":"x","to":"y","replace":true}`}, file},
		"remove": {func(c *client.Client) (any, error) { return nil, c.RemoveFile(ctx, "a b", "x", true) }, asked{method: "DELETE", path: p + "/files?all=true&path=x"}, ``},
		"write": {func(c *client.Client) (any, error) {
			return c.WriteFile(ctx, "a b", "x", strings.NewReader("text"), client.WriteFile{Mode: "600", Size: 4})
		}, asked{method: "PUT", path: p + "/files?mode=600&path=x", body: "text"}, file},
		"start": {func(c *client.Client) (any, error) {
			return c.StartProcess(ctx, "a b", client.NewProcess{Args: []string{"ls"}, Terminal: &client.TerminalSize{}})
		}, asked{method: "POST", path: p + "/processes", body: `{"args":["ls"],"terminal":{"columns":0,"rows":0}}`}, `{}`},
		"end a process": {func(c *client.Client) (any, error) { return c.EndProcess(ctx, "a b", "p1", 1500*time.Millisecond) }, asked{method: "DELETE", path: p + "/processes/p1?grace=1.5"}, `{}`},
		"a checkpoint": {func(c *client.Client) (any, error) {
			return c.Checkpoint(ctx, messages.SessionKey{Session: "s", Workspace: "w"})
		}, asked{method: "POST", path: "/api/sessions/s/checkpoint?workspace=w"}, `{}`},
		"a checkpoint on disk": {func(c *client.Client) (any, error) {
			return c.SaveCheckpoint(ctx, key, client.SaveCheckpoint{Name: "c", Lossy: true})
		}, asked{method: "POST", path: "/api/sessions/a%20b%2Fc/save?cwd=%2Fsrv%2Fx+y", body: `{"name":"c","lossy":true}`}, `{}`},
		"restore": {func(c *client.Client) (any, error) {
			return c.RestoreCheckpoint(ctx, key, client.RestoreCheckpoint{Name: "c", Owner: "me"})
		}, asked{method: "POST", path: "/api/sessions/a%20b%2Fc/restore?cwd=%2Fsrv%2Fx+y", body: `{"name":"c","owner":"me"}`}, `{}`},
		"the checkpoints on disk": {func(c *client.Client) (any, error) { return c.SavedCheckpoints(ctx) }, asked{method: "GET", path: "/api/saved-checkpoints"}, `{}`},
		"drop one on disk": {func(c *client.Client) (any, error) {
			return nil, c.DropSavedCheckpoint(ctx, messages.CheckpointKey{Name: "c", Workspace: "w"}, "me")
		}, asked{method: "DELETE", path: "/api/saved-checkpoints/c?owner=me&workspace=w"}, ``},
		"rewind": {func(c *client.Client) (any, error) { return nil, c.Rewind(ctx, key, "c1") }, asked{method: "POST", path: "/api/sessions/a%20b%2Fc/rewind?cwd=%2Fsrv%2Fx+y", body: `{"checkpoint":"c1"}`}, ``},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := serve(t, client.Options{}, says(http.StatusOK, tc.say))
			_, err := tc.do(c)
			require.NoError(t, err)
			require.Equal(t, []asked{tc.want}, s.seen())
		})
	}
}

// TestWithoutANameNothingIsAsked: an empty name would be another route.
func TestWithoutANameNothingIsAsked(t *testing.T) {
	t.Parallel()
	s, c := serve(t, client.Options{}, says(http.StatusOK, `{}`))
	_, err := c.Workspace(ctx, "")
	require.ErrorIs(t, err, client.ErrNoWorkspace)
	_, err = c.OpenFile(ctx, "", "f", client.ReadFile{})
	require.ErrorIs(t, err, client.ErrNoWorkspace)
	_, err = c.WriteFile(ctx, "", "f", strings.NewReader(""), client.WriteFile{})
	require.ErrorIs(t, err, client.ErrNoWorkspace)
	_, err = c.WriteProcess(ctx, "", "p1", []byte("x"))
	require.ErrorIs(t, err, client.ErrNoWorkspace)
	for _, err := range c.ProcessEvents(ctx, "", "p1", 0) {
		require.ErrorIs(t, err, client.ErrNoWorkspace)
	}
	for _, err := range c.WatchFiles(ctx, "", "", false, nil) {
		require.ErrorIs(t, err, client.ErrNoWorkspace)
	}
	require.Empty(t, s.seen())
}

// TestInputIsSentOn: what a process has not taken is sent again, and nothing twice.
func TestInputIsSentOn(t *testing.T) {
	t.Parallel()
	s, c := serve(t, client.Options{}, says(http.StatusOK, `{"taken":2}`))
	n, err := c.WriteProcess(ctx, "w", "p1", []byte("hello!"))
	require.NoError(t, err)
	require.Equal(t, 6, n)
	var bodies []string
	for _, one := range s.seen() {
		bodies = append(bodies, one.body)
	}
	require.Equal(t, []string{"hello!", "llo!", "o!"}, bodies)

	_, c = serve(t, client.Options{}, says(http.StatusConflict, `{"error":{"code":"no_input","message":"the process takes no input"}}`))
	n, err = io.WriteString(c.ProcessInput(ctx, "w", "p1"), "x")
	require.ErrorContains(t, err, "takes no input")
	require.Zero(t, n)
}

// TestOutputGoesOnWhereItBroke: each event once, in order; after a gap it goes on behind it.
func TestOutputGoesOnWhereItBroke(t *testing.T) {
	t.Parallel()
	var round atomic.Int32
	s, c := serve(t, client.Options{}, func(w http.ResponseWriter, _ *http.Request) {
		switch round.Add(1) {
		case 1:
			streams(w, `{"seq":1,"type":"stdout","data":"YQ=="}`, `{"seq":2,"type":"stderr","data":"Yg=="}`)
			cut(w)
		case 2:
			streams(w, `{"seq":2,"type":"stderr","data":"Yg=="}`, `{"seq":9,"type":"gap"}`, `{"seq":10,"type":"end","exit":{"code":3}}`)
		}
	})
	var got []client.ProcessEvent
	for e, err := range c.ProcessEvents(ctx, "w", "p1", 0) {
		require.NoError(t, err)
		got = append(got, e)
	}
	require.Len(t, got, 4)
	require.Equal(t, "a", string(got[0].Data))
	require.Equal(t, client.ProcessGap, got[2].Type)
	require.Equal(t, 3, got[3].Exit.Code)
	require.Equal(t, "2", s.seen()[1].last)

	_, c = serve(t, client.Options{}, func(w http.ResponseWriter, _ *http.Request) {
		streams(w, `{"seq":1,"type":"stdout"}`, `{"seq":3,"type":"stdout"}`)
	})
	var last error
	for _, err := range c.ProcessEvents(ctx, "w", "p1", 0) {
		last = err
	}
	require.ErrorContains(t, last, "event 3 follows event 1")
}

// TestAWatchComesBack with a cursor, also when it has heard nothing yet, so that it is told
// that something may be lost.
func TestAWatchComesBack(t *testing.T) {
	t.Parallel()
	var round atomic.Int32
	s, c := serve(t, client.Options{}, func(w http.ResponseWriter, _ *http.Request) {
		if round.Add(1) == 1 {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, ": here\n\n")
			cut(w)
		}
		streams(w, `{"seq":2,"op":"lost","path":"."}`, `{"seq":3,"op":"ended","path":".","reason":"it is over"}`)
	})
	var ops []client.ChangeOp
	ready := 0
	for change, err := range c.WatchFiles(ctx, "w", "", true, func() { ready++ }) {
		require.NoError(t, err)
		ops = append(ops, change.Op)
	}
	require.Equal(t, []client.ChangeOp{client.ChangeLost, client.ChangeEnded}, ops)
	require.Equal(t, 2, ready)
	require.Equal(t, []string{"", "1"}, []string{s.seen()[0].last, s.seen()[1].last})
	require.Equal(t, "/api/workspaces/w/files/watch?path=.&recursive=true", s.seen()[0].path)
}
