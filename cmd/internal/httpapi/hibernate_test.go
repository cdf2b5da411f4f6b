package httpapi_test

import (
	"net/http"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
	"github.com/coppice-run/coppice/cmd/internal/toolapi"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/messages"
)

// hibernation makes the requests about sessions on disk, with a server that keeps them.
func (s *server) hibernation() {
	t, ctx := s.t, s.t.Context()
	for _, query := range []string{"hibernated=1", "hibernated=", "hibernated=true&hibernated=true"} {
		status, answer := s.ask("GET", "/api/sessions?"+query, "")
		require.Equal(t, http.StatusBadRequest, status, answer)
	}
	s.run("awake", "1")
	_, err := s.Hibernate(ctx, messages.SessionKey{Session: "awake"})
	require.Equal(t, http.StatusConflict, statusOf(t, err), "this server keeps none")
	require.NoError(t, s.CloseSession(ctx, messages.SessionKey{Session: "awake"}))

	s = serveAs(t, s.spec, coppice.Options{Hibernate: hibernate.Lossless}, httpapi.Options{}, toolapi.Options{})
	s.saves()
	key := messages.SessionKey{Session: "s", Cwd: s.cwd}
	_, err = s.Hibernate(ctx, key)
	require.Equal(t, http.StatusNotFound, statusOf(t, err))
	s.run("s", "x = 40; sock = __import__('socket').socket()")
	var refused *client.Error
	_, err = s.Hibernate(ctx, key)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "hibernate_refused", refused.Code)
	require.Equal(t, "lossy", refused.Hint)
	require.Contains(t, refused.Message, "sock")
	s.run("s", "sock.close(); del sock")
	began := time.Now()
	kept, err := s.Hibernate(ctx, key)
	require.NoError(t, err)
	require.Equal(t, []string{"x"}, kept.Kept)
	require.Positive(t, kept.Bytes)
	require.Positive(t, kept.TookSeconds)

	one, err := s.Session(ctx, key)
	require.NoError(t, err)
	require.Equal(t, client.StateHibernated, one.State, "it is shown as soon as it is answered")
	list, err := s.AllSessions(ctx)
	require.NoError(t, err)
	require.Equal(t, []client.Session{one}, list)
	again, err := s.Hibernate(ctx, key)
	require.NoError(t, err)
	require.Equal(t, client.Hibernated{Memory: kept.Memory, Bytes: kept.Bytes}, again)
	s.gone(key)
	require.Equal(t, []string{"x"}, one.Kept.Kept)
	require.Equal(t, kept.Bytes, one.Kept.Bytes)
	require.WithinRange(t, one.Since, began.Add(-time.Second), time.Now())
	require.True(t, one.Expires.After(one.Since))
	list, err = s.Sessions(ctx)
	require.NoError(t, err)
	require.Empty(t, list, "it has no kernel")
	list, err = s.AllSessions(ctx)
	require.NoError(t, err)
	require.Equal(t, []client.Session{one}, list)
	h, err := s.Health(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, h.Hibernated)
	o, err := s.Overview(ctx, 0)
	require.NoError(t, err)
	require.Equal(t, 1, o.Hibernated)
	story, err := s.Story(ctx, key)
	require.NoError(t, err)
	last := story.Moments[len(story.Moments)-1]
	require.Equal(t, "hibernated", last.What)
	require.Equal(t, "its next call restores it from disk", last.Why)
	require.Equal(t, http.StatusNotFound, statusOf(t, s.Interrupt(ctx, key)), "nothing runs in it")

	r := s.run("s", "x + 2")
	require.Equal(t, messages.StateRestored, r.State)
	require.Equal(t, "42", r.Cells[0].Output)
	for name, forget := range map[string]func() error{
		"close": func() error { return s.CloseSession(ctx, key) },
		"reset": func() error { return s.Reset(ctx, key) },
	} {
		s.run("s", "x = 1")
		_, err = s.Hibernate(ctx, key)
		require.NoError(t, err, name)
		s.gone(key)
		require.NoError(t, forget(), name)
		_, err = s.Session(ctx, key)
		require.Equal(t, http.StatusNotFound, statusOf(t, err), name)
		require.Equal(t, messages.OutcomeError, s.run("s", "x").Outcome, name)
	}
}

// gone waits until a session has no kernel any more.
func (s *server) gone(key messages.SessionKey) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		list, err := s.Sessions(s.t.Context())
		return err == nil && !slices.ContainsFunc(list, func(one client.Session) bool { return one.Session == key.Session })
	}, time.Minute, 10*time.Millisecond)
}
