package httpapi_test

import (
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
)

// looks asks for what the live view shows: how the server is, and what became of a
// session that was copied, reset and closed.
func (s *server) looks(key messages.SessionKey) {
	t, ctx := s.t, s.t.Context()
	o, err := s.Overview(ctx, 0)
	require.NoError(t, err)
	require.True(t, o.Limits.Fork)
	key.Cwd = s.cwd
	story, err := s.Story(ctx, key)
	require.NoError(t, err)
	var what []string
	for _, m := range story.Moments {
		what = append(what, m.What)
	}
	require.Subset(t, what, []string{"started", "reset", "closed"})
	require.Equal(t, "started", what[0])
	_, err = s.Story(ctx, messages.SessionKey{})
	require.ErrorIs(t, err, client.ErrNoSession)
	for path, want := range map[string]int{"/api/overview?after=x": 400, "/api/story": 400, "/live/none.js": 404} {
		status, body := s.ask("GET", path, "")
		require.Equal(t, want, status, body)
	}
}
