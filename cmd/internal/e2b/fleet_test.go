package e2b_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/dialect"
	"github.com/coppice-run/coppice/cmd/internal/e2b"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/messages"
)

// TestWhatARequestIsAbout: which sandbox it is about, whether it makes it, and where it is served.
func TestWhatARequestIsAbout(t *testing.T) {
	s := serve(t)
	const name, other = "iabcdefghijklmnopqrst", "i23456723456723456723"
	for _, tc := range []struct {
		method, path, body string
		header             []string
		want               dialect.About
		merges, made       bool
	}{
		{method: "POST", path: "/v2/sandboxes", header: []string{"Coppice-Sandbox", name}, want: dialect.About{Workspace: name, Makes: true}},
		{method: "POST", path: "/sandboxes", header: []string{"Coppice-Sandbox", name}, body: `{"templateID":"base"}`, want: dialect.About{Workspace: name, Makes: true}},
		{
			method: "POST", path: "/v2/sandboxes", header: []string{"Coppice-Sandbox", name}, body: `{"templateID":"mine:v2"}`,
			want: dialect.About{Workspace: name, Makes: true, Near: "/e2b/templates/aliases/mine:v2"},
		},
		{method: "POST", path: "/v2/sandboxes", body: `{"templateID":`}, // it is refused where it came
		{method: "GET", path: "/v2/sandboxes", merges: true},
		{method: "GET", path: "/sandboxes", merges: true},
		{method: "GET", path: "/snapshots", merges: true},
		{method: "GET", path: "/sandboxes/" + name, want: dialect.About{Workspace: name}},
		{method: "DELETE", path: "/sandboxes/" + name, want: dialect.About{Workspace: name}},
		{method: "POST", path: "/v2/sandboxes/" + name + "/connect", want: dialect.About{Workspace: name}},
		{method: "POST", path: "/sandboxes/" + name + "/fork", want: dialect.About{Workspace: name}, made: true},
		{method: "DELETE", path: "/templates/mine:v2", want: dialect.About{Near: "/e2b/templates/aliases/mine:v2"}},
		{method: "GET", path: "/templates/aliases/mine:v2", want: dialect.About{Near: "/e2b/templates/aliases/mine:v2"}},
		{method: "GET", path: "/templates"},
		{method: "GET", path: "/nothing"},
		{method: "POST", path: "/execute", header: []string{"E2b-Sandbox-Id", name}, want: dialect.About{Workspace: name, Begins: true}},
		{method: "POST", path: "/process.Process/Start", header: []string{"E2b-Sandbox-Id", name}, want: dialect.About{Workspace: name, Begins: true}},
		{method: "POST", path: "/process.Process/SendInput", header: []string{"E2b-Sandbox-Id", name}, want: dialect.About{Workspace: name}},
		{method: "GET", path: "/files", header: []string{"E2b-Sandbox-Id", name}, want: dialect.About{Workspace: name}},
		{method: "GET", path: "/files"}, // it names none
	} {
		t.Run(tc.method+" "+tc.path, func(t *testing.T) {
			for _, base := range []string{e2b.Base, ""} {
				if base == "" && tc.path != "/files" {
					continue // it is not served there
				}
				got, passed := s.about(tc.method, base+tc.path, tc.body, tc.header...)
				require.Equal(t, tc.merges, got.Merge != nil)
				require.Equal(t, tc.made, got.Made != nil)
				got.Merge, got.Made = nil, nil
				require.Equal(t, tc.want, got)
				require.Equal(t, strings.Contains(tc.path, "/execute") || strings.Contains(tc.path, "Process/") || tc.path == "/files", s.api.Streams(passed))
			}
		})
	}

	// The name of one that is made goes with the request, and that of the same request is the same.
	first, passed := s.about("POST", "/e2b/sandboxes", "", "Idempotency-Key", "k")
	require.Equal(t, first.Workspace, passed.Header.Get("Coppice-Sandbox"))
	again, _ := s.about("POST", "/e2b/sandboxes", "", "Idempotency-Key", "k")
	require.Equal(t, first.Workspace, again.Workspace)
	another, _ := s.about("POST", "/e2b/sandboxes", "")
	require.NotEqual(t, first.Workspace, another.Workspace)
	named, _ := s.about("POST", "/e2b/sandboxes", "", "Coppice-Sandbox", "../../etc")
	require.Regexp(t, "^i[a-z2-7]{20}$", named.Workspace, "a name that no node has given is not taken")

	forked, _ := s.about("POST", "/e2b/sandboxes/"+name+"/fork", "")
	require.Equal(t, []messages.SessionKey{{Workspace: other}}, forked.Made([]byte(`[{"sandbox":{"sandboxID":"`+other+`"}},{"error":{"code":500}}]`)))
}

// about asks the API what a request is about that has shown the key.
func (s *server) about(method, path, body string, header ...string) (about dialect.About, passed *http.Request) {
	s.t.Helper()
	require.Equal(s.t, dialect.About{}, s.api.About(httptest.NewRequestWithContext(s.t.Context(), method, path, http.NoBody), nil), "nobody knows who asks")
	asked := func(r *http.Request) { about, passed = s.api.About(r, []byte(body)), r }
	s.asked.Store(&asked)
	defer s.asked.Store(nil)
	s.ask(method, s.root+path, body, append([]string{"X-API-Key", key}, header...)...)
	require.NotNil(s.t, passed)
	return about, passed
}

// TestListsOfManyNodes are one list, page by page, in one order.
func TestListsOfManyNodes(t *testing.T) {
	s := serve(t)
	page := func(next string, names ...string) dialect.Page {
		var places []string
		texts := []string{}
		for _, name := range names {
			places = append(places, base64.RawURLEncoding.EncodeToString([]byte(name)))
			texts = append(texts, fmt.Sprintf("%q", name))
		}
		return dialect.Page{Header: http.Header{"Coppice-Places": {strings.Join(places, ",")}, "X-Next-Token": {next}}, Body: []byte("[" + strings.Join(texts, ",") + "]")}
	}
	merged := func(query string, pages ...dialect.Page) (list []string, next string) {
		about, _ := s.about("GET", "/e2b/v2/sandboxes"+query, "")
		rec := httptest.NewRecorder()
		about.Merge(rec, pages)
		require.Equal(t, http.StatusOK, rec.Code)
		require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &list))
		text, err := base64.RawURLEncoding.DecodeString(rec.Header().Get("X-Next-Token"))
		require.NoError(t, err)
		return list, string(text)
	}
	list, next := merged("", page("", "5", "3"), page(""), page("", "4", "1"))
	require.Equal(t, []string{"5", "4", "3", "1"}, list)
	require.Empty(t, next)
	list, next = merged("?limit=3", page("", "5", "3"), page("", "4", "1"))
	require.Equal(t, []string{"5", "4", "3"}, list)
	require.Equal(t, "3", next)
	list, next = merged("?limit=2&order=asc", page("more", "1", "3"), page("", "4", "5"))
	require.Equal(t, []string{"1", "3"}, list)
	require.Equal(t, "3", next, "one node has more")
	list, next = merged("?limit=2", page("more", "5", "3"))
	require.Equal(t, []string{"5", "3"}, list)
	require.Equal(t, "3", next)
	list, next = merged("", page(""))
	require.Equal(t, []string{}, list)
	require.Empty(t, next)
}

// TestRefusalsOfAFleet are in the form of E2B's errors; of a sandbox whose node is dead clients
// hear what they hear of one that has ended.
func TestRefusalsOfAFleet(t *testing.T) {
	s := serve(t)
	said := func(path string, no httpserver.Refusal) (answer, map[string]any) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1"+path, http.NoBody)
		r.Header.Set("E2b-Sandbox-Id", "ione")
		rec := httptest.NewRecorder()
		s.api.Refuse(rec, r, &no)
		a := answer{rec.Code, rec.Header(), rec.Body.String()}
		return a, a.json(t)
	}
	lost := httpserver.Refusal{Status: http.StatusGone, Problem: httpserver.Problem{Code: "lost", Message: "it is lost"}}
	a, v := said("/e2b/execute", lost)
	require.Equal(t, http.StatusBadGateway, a.status)
	require.Equal(t, "ione", v["sandboxId"])
	a, v = said("/e2b/sandboxes/ione/pause", lost)
	require.Equal(t, http.StatusNotFound, a.status)
	require.Equal(t, "it is lost", v["message"])
	a, v = said("/e2b/execute", httpserver.Refusal{Status: http.StatusServiceUnavailable, Retry: 1500e6, Problem: httpserver.Problem{Message: "the node is draining", Hint: "ask again"}})
	require.Equal(t, http.StatusServiceUnavailable, a.status)
	require.Equal(t, "the node is draining: ask again", v["message"])
	require.Equal(t, "2", a.header.Get("Retry-After"))
}
