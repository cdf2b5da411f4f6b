package jupyterapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/dialect"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/cmd/internal/jupyterapi"
	"github.com/coppice-run/coppice/messages"
)

// TestWhatARequestIsAbout: where its kernel or its document is, and which session it makes.
func TestWhatARequestIsAbout(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id := s.start()
	key := messages.SessionKey{Session: id, Cwd: s.cwd}
	for _, tc := range []struct {
		method, path, body        string
		near, anywhere            string
		holds                     bool
		merges, streams, anyPlace bool
	}{
		{method: "GET", path: "/api/kernels", merges: true},
		{method: "GET", path: "/api/sessions?1700000000", merges: true},
		{method: "POST", path: "/api/kernels", body: `{}`, anyPlace: true},
		{method: "GET", path: "/api/kernels/" + id, near: "/jupyter/api/kernels/" + id},
		{method: "DELETE", path: "/api/kernels/" + id, near: "/jupyter/api/kernels/" + id},
		{method: "GET", path: "/api/kernels/" + id + "/channels", near: "/jupyter/api/kernels/" + id, holds: true, streams: true},
		{method: "POST", path: "/api/kernels/" + id + "/restart", near: "/jupyter/api/kernels/" + id, holds: true},
		{method: "GET", path: "/api/kernels/elsewhere/channels", near: "/jupyter/api/kernels/elsewhere", streams: true},
		{method: "PATCH", path: "/api/sessions/one", body: `{"path":"x"}`, near: "/jupyter/api/sessions/one"},
		{method: "POST", path: "/api/sessions", body: `{"path":"a b.ipynb"}`, near: "/jupyter/api/sessions?document=a+b.ipynb&kernel=", anywhere: "document a b.ipynb"},
		{method: "POST", path: "/api/sessions", body: `{"notebook":{"path":"old.ipynb"}}`, near: "/jupyter/api/sessions?document=old.ipynb&kernel=", anywhere: "document old.ipynb"},
		{method: "POST", path: "/api/sessions", body: `{"path":"a","kernel":{"id":"k"}}`, near: "/jupyter/api/sessions?document=a&kernel=k"},
		{method: "POST", path: "/api/sessions", body: `{`},
		{method: "GET", path: "/api/kernelspecs", streams: true},
		{method: "PUT", path: "/api/contents/x", streams: true},
		{method: "GET", path: "/api/status", streams: true},
	} {
		t.Run(tc.method+" "+tc.path+" "+tc.body, func(t *testing.T) {
			got, passed := s.about(tc.method, tc.path, tc.body)
			require.Equal(t, tc.near, got.Near)
			if tc.anyPlace {
				require.NotEmpty(t, got.Anywhere)
			} else {
				require.Equal(t, tc.anywhere, got.Anywhere)
			}
			want := messages.SessionKey{}
			if tc.holds {
				want = key
			}
			require.Equal(t, want, got.Holds)
			require.Equal(t, tc.merges, got.Merge != nil)
			require.Equal(t, tc.streams, s.api.Streams(passed))
			if got.Merge != nil {
				rec := httptest.NewRecorder()
				got.Merge(rec, []dialect.Page{{Body: []byte(`[{"id":"2"},{"id":"4"}]`)}, {Body: []byte(`[]`)}, {Body: []byte(`[{"id":"3"}]`)}})
				require.JSONEq(t, `[{"id":"2"},{"id":"3"},{"id":"4"}]`, rec.Body.String())
			}
		})
	}

	_, passed := s.about("GET", "/api/kernels?token="+token, "")
	require.Equal(t, "token "+token, passed.Header.Get("Authorization"), "other nodes are asked in its name")
	s.rest("GET", "/api/sessions?document=one&kernel=", "", http.StatusNotFound, nil)
	s.rest("GET", "/api/sessions?document=one&kernel="+id, "", http.StatusOK, nil)
	s.rest("POST", "/api/sessions", `{"path":"one","type":"notebook","kernel":{"id":"`+id+`"}}`, http.StatusCreated, nil)
	s.rest("GET", "/api/sessions?document=one&kernel=", "", http.StatusOK, nil)

	rec := httptest.NewRecorder()
	s.api.Refuse(rec, nil, &httpserver.Refusal{Status: http.StatusServiceUnavailable, Retry: 1e9, Problem: httpserver.Problem{Message: "it is away", Hint: "ask again"}})
	require.JSONEq(t, `{"message":"it is away","reason":"ask again"}`, rec.Body.String())
	require.Equal(t, "1", rec.Header().Get("Retry-After"))
}

// about asks the API what a request is about that has shown the token.
func (s *server) about(method, path, body string) (about dialect.About, passed *http.Request) {
	s.t.Helper()
	at := jupyterapi.Base + path
	require.Equal(s.t, dialect.About{}, s.api.About(httptest.NewRequestWithContext(s.t.Context(), method, at, http.NoBody), nil), "nobody knows who asks")
	asked := func(r *http.Request) { about, passed = s.api.About(r, []byte(body)), r }
	s.asked.Store(&asked)
	defer s.asked.Store(nil)
	var headers []string
	if !strings.Contains(path, "token=") {
		headers = []string{"Authorization", "token " + token}
	}
	s.ask(method, path, body, headers...)
	require.NotNil(s.t, passed)
	return about, passed
}
