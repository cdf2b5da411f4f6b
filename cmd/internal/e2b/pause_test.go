package e2b_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/hibernate"
)

// pause asks for a pause.
func (b box) pause(body string) answer {
	b.s.t.Helper()
	return b.s.control("POST", "/sandboxes/"+b.id+"/pause", body)
}

// connect asks for the sandbox.
func (b box) connect(body string) answer {
	b.s.t.Helper()
	return b.s.control("POST", "/v2/sandboxes/"+b.id+"/connect", body)
}

// shown is what the sandbox is described as.
func (b box) shown() map[string]any {
	b.s.t.Helper()
	return b.s.control("GET", "/sandboxes/"+b.id, "").json(b.s.t)
}

// text is what code shows.
func (b box) text(body string) any {
	b.s.t.Helper()
	lines := b.run(body)
	require.NotEmpty(b.s.t, of(lines, "result"), lines)
	return of(lines, "result")[0]["text"]
}

// TestAPausedSandbox has its variables and its files, and no time runs.
func TestAPausedSandbox(t *testing.T) {
	t.Parallel()
	s := serveKeeping(t, hibernate.Lossless)
	b := s.make(`{"timeout":60}`)
	require.Equal(t, http.StatusConflict, s.control("POST", "/sandboxes/"+b.id+"/resume", `{}`).status, "it runs")
	second := b.inside("POST", "/contexts", `{}`).json(t)["id"].(string)
	b.run(`{"code":"x = [1]; open('f', 'w').write('kept')"}`)
	b.run(`{"code":"def f(): return 2","context_id":"` + second + `"}`)
	a := b.pause(`{}`)
	require.Equal(t, http.StatusNoContent, a.status, a.text)
	require.Equal(t, "paused", b.shown()["state"])
	w, err := s.host.Workspaces().Get(b.id)
	require.NoError(t, err)
	require.True(t, w.Info().EndAt.IsZero(), "its time does not run")
	require.True(t, w.Info().Pinned, "another one does not take its place")
	live, err := s.host.Sessions(t.Context())
	require.NoError(t, err)
	for _, one := range live {
		require.NotEqual(t, "idle", string(one.State), "no kernel is left")
	}

	require.Equal(t, http.StatusConflict, b.pause(`{}`).status, "it is already")
	require.Equal(t, http.StatusConflict, s.control("POST", "/sandboxes/"+b.id+"/timeout", `{"timeout":9}`).status)
	require.Equal(t, http.StatusBadGateway, b.inside("GET", "/health", "").status, "clients take it for one that does not run")

	require.Equal(t, http.StatusCreated, b.connect(`{"timeout":600}`).status)
	require.Equal(t, http.StatusOK, b.connect(`{}`).status)
	require.Equal(t, "running", b.shown()["state"])
	require.WithinDuration(t, time.Now().Add(10*time.Minute), w.Info().EndAt, 2*time.Minute)
	require.False(t, w.Info().Pinned)
	require.Equal(t, "([1], 'kept')", b.text(`{"code":"(x, open('f').read())"}`))
	require.Equal(t, "2", b.text(`{"code":"f()","context_id":"`+second+`"}`))

	require.Equal(t, http.StatusNoContent, b.pause(`{}`).status)
	require.Equal(t, http.StatusCreated, b.connect(`{"memory":false}`).status, "as after a restart of its machine")
	require.Equal(t, "(False, 'kept')", b.text(`{"code":"('x' in globals(), open('f').read())"}`))
}

// TestASandboxThatPausesItself at its timeout, and runs again when it is asked something.
func TestASandboxThatPausesItself(t *testing.T) {
	t.Parallel()
	s := serveKeeping(t, hibernate.Lossless)
	b := s.make(`{"timeout":600,"autoPause":true,"autoResume":{"enabled":true}}`)
	require.Equal(t, map[string]any{"onTimeout": "pause", "autoResume": true}, b.shown()["lifecycle"])
	b.run(`{"code":"x = 7"}`)
	require.Equal(t, http.StatusNoContent, s.control("POST", "/sandboxes/"+b.id+"/timeout", `{"timeout":0}`).status)
	require.Eventually(t, func() bool { return b.shown()["state"] == "paused" }, time.Minute, 10*time.Millisecond)
	require.Equal(t, "7", b.text(`{"code":"x"}`))
	require.Equal(t, "running", b.shown()["state"])
}
