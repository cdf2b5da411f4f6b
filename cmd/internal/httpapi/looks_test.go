package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
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
	s.told(key, func(all []client.Moment) bool {
		var what []string
		for _, m := range all {
			what = append(what, m.What)
		}
		return what[0] == "started" && slices.Contains(what, "reset") && slices.Contains(what, "closed")
	})
	_, err = s.Story(ctx, messages.SessionKey{})
	require.ErrorIs(t, err, client.ErrNoSession)
	for path, want := range map[string]int{"/api/overview?after=x": 400, "/api/story": 400, "/live/none.js": 404} {
		status, body := s.ask("GET", path, "")
		require.Equal(t, want, status, body)
	}
}

// told waits until the story of a session is as it must be: what has happened is told a moment later.
func (s *server) told(key messages.SessionKey, with func(all []client.Moment) bool) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		story, err := s.Story(s.t.Context(), key)
		return err == nil && len(story.Moments) > 0 && with(story.Moments)
	}, time.Minute, 5*time.Millisecond, key.Session)
}

// The story of a copy says whose it is, whatever its name is, and nothing of that is said of
// a session that only has such a name.
func TestTheStoryOfACopy(t *testing.T) {
	t.Parallel()
	s := serve(t, coppice.Options{}, httpapi.Options{})
	ctx := t.Context()
	key := func(name string) messages.SessionKey { return messages.SessionKey{Session: name, Cwd: s.cwd} }
	ends := func(name string, with func(client.Moment) bool) {
		t.Helper()
		s.told(key(name), func(all []client.Moment) bool { return with(all[len(all)-1]) })
	}
	s.run("data", "x = 1")
	s.run("data~backup", "x = 2")
	status, body := s.ask("POST", "/api/sessions/data/fork", `{"names": ["mine"]}`)
	require.Equal(t, http.StatusCreated, status, body)
	_, err := s.Fork(ctx, key("mine"), 1, "")
	require.NoError(t, err)
	ends("data~backup", func(m client.Moment) bool { return m.What == "started" })
	ends("data", func(m client.Moment) bool { return m.Why == "to mine" })
	s.told(key("mine"), func(all []client.Moment) bool { return all[0].Why == "from data, with all that it had in memory" })
	parents := map[string]string{}
	require.Eventually(t, func() bool {
		o, err := s.Overview(ctx, 0)
		for _, m := range o.Marks {
			parents[m.Parent] = m.Key.Session
		}
		return err == nil && len(parents) == 2
	}, time.Minute, 5*time.Millisecond)
	require.Equal(t, "mine", parents["data"])
	require.Contains(t, parents["mine"], "mine~")

	c, err := s.Checkpoint(ctx, key("data~backup"))
	require.NoError(t, err)
	require.NoError(t, s.Rewind(ctx, key("data~backup"), c.ID))
	s.run("data~backup", "x")
	ends("data~backup", func(m client.Moment) bool { return strings.Contains(m.Why, "as it was at a checkpoint") })
}

// Long answers are compressed for those who take that; a stream never is, or what is in it
// would come late.
func TestAnswersAreCompressedAndStreamsAreNot(t *testing.T) {
	t.Parallel()
	s := serve(t, coppice.Options{}, httpapi.Options{})
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	for path, want := range map[string]string{"/api/openapi.json": "gzip", "/api/sessions": "", "/api/changes": ""} {
		ctx, leave := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, http.NoBody)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Accept-Encoding", "gzip")
		resp, err := transport.RoundTrip(req)
		require.NoError(t, err)
		require.Equal(t, want, resp.Header.Get("Content-Encoding"), path)
		leave()
		require.NoError(t, resp.Body.Close())
	}
	status, body := s.ask("GET", "/metrics", "", "Accept", "application/openmetrics-text")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "# EOF")
	status, body = s.ask("GET", "/api/openapi.json", "")
	require.Equal(t, http.StatusOK, status)
	require.True(t, json.Valid([]byte(body)))
}
