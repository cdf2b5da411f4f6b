package e2b_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/workspace"
)

func TestTheLifeOfASandbox(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := s.make(`{"templateID":"base","timeout":60,"metadata":{"app":"x y","user":"ann"},"envVars":{"A":"1"},"unknown":null}`)
	require.Regexp(t, `^i[a-z2-7]{20}$`, b.id)

	got := s.control("GET", "/sandboxes/"+b.id, "").json(t)
	require.Equal(t, map[string]any{"app": "x y", "user": "ann"}, got["metadata"])
	require.Equal(t, "running", got["state"])
	require.Equal(t, b.access, got["envdAccessToken"])
	end := func() time.Time {
		at, err := time.Parse(time.RFC3339Nano, s.control("GET", "/sandboxes/"+b.id, "").json(t)["endAt"].(string))
		require.NoError(t, err)
		return at
	}
	first := end()
	require.WithinDuration(t, time.Now().Add(time.Minute), first, 30*time.Second)

	a := s.control("POST", "/v2/sandboxes/"+b.id+"/connect", `{"timeout":10}`)
	require.Equal(t, http.StatusOK, a.status)
	require.Equal(t, b.access, a.json(t)["envdAccessToken"], "whoever connects uses the same tokens")
	require.Equal(t, first, end(), "connecting shortens nothing")
	s.control("POST", "/v2/sandboxes/"+b.id+"/connect", `{"timeout":600}`)
	require.Greater(t, end(), first.Add(5*time.Minute))
	require.Equal(t, http.StatusNoContent, s.control("POST", "/sandboxes/"+b.id+"/timeout", `{"timeout":30}`).status)
	require.Less(t, end(), first)
	require.Equal(t, http.StatusBadRequest, s.control("POST", "/sandboxes/"+b.id+"/timeout", `{"timeout":-1}`).status)

	require.Equal(t, http.StatusNoContent, b.inside("GET", "/health", "").status)
	require.Equal(t, http.StatusNoContent, s.control("DELETE", "/sandboxes/"+b.id, "").status)
	require.Equal(t, http.StatusNotFound, s.control("DELETE", "/sandboxes/"+b.id, "").status)
	for _, method := range []string{"GET", "POST"} {
		path := map[string]string{"GET": "/sandboxes/" + b.id, "POST": "/v2/sandboxes/" + b.id + "/connect"}[method]
		a := s.control(method, path, "")
		require.Equal(t, http.StatusNotFound, a.status)
		require.InDelta(t, 404, a.json(t)["code"], 0)
	}
	gone := b.inside("GET", "/health", "")
	require.Equal(t, http.StatusBadGateway, gone.status)
	require.Contains(t, gone.json(t)["message"], "was not found", "clients look for these words")
}

func TestATimeoutEndsASandbox(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := s.make(`{"timeout":0}`)
	w, err := s.host.Workspaces().Get(b.id)
	require.NoError(t, err)
	<-w.Done()
	require.Equal(t, http.StatusNotFound, s.control("GET", "/sandboxes/"+b.id, "").status)
}

func TestWhoMayAsk(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b, other := s.make(`{}`), s.make(`{}`)
	for name, tc := range map[string]struct {
		method, path string
		headers      []string
		want         int
	}{
		"the key":             {"GET", "/v2/sandboxes", []string{"X-API-Key", key}, 200},
		"the key as a bearer": {"GET", "/v2/sandboxes", []string{"Authorization", "Bearer " + key}, 200},
		"no key":              {"GET", "/v2/sandboxes", nil, 401},
		"another key":         {"GET", "/v2/sandboxes", []string{"X-API-Key", "other"}, 401},
		"no sandbox is made with a sandbox's own": {"POST", "/v2/sandboxes", []string{"X-Access-Token", b.access, "E2b-Sandbox-Id", b.id}, 401},
		"nor ended":                                {"DELETE", "/sandboxes/" + other.id, []string{"X-Access-Token", b.access, "E2b-Sandbox-Id", b.id}, 401},
		"a sandbox's own":                          {"GET", "/contexts", b.headers(), 200},
		"what contexts are asked with":             {"GET", "/contexts", []string{"E2b-Sandbox-Id", b.id, "E2B-Traffic-Access-Token", b.traffic}, 200},
		"one token is not the other":               {"GET", "/contexts", []string{"E2b-Sandbox-Id", b.id, "E2B-Traffic-Access-Token", b.access}, 401},
		"another sandbox's":                        {"GET", "/contexts", []string{"E2b-Sandbox-Id", b.id, "X-Access-Token", other.access}, 401},
		"no sandbox":                               {"GET", "/contexts", []string{"X-Access-Token", b.access}, 401},
		"the key inside":                           {"GET", "/contexts", []string{"E2b-Sandbox-Id", b.id, "X-API-Key", key}, 200},
		"a user beside the token":                  {"GET", "/health", append(b.headers(), "Authorization", "Basic dXNlcjo="), 204},
		"a user and no token":                      {"GET", "/health", []string{"E2b-Sandbox-Id", b.id, "Authorization", "Basic dXNlcjo="}, 401},
		"a page of another origin":                 {"GET", "/contexts", append(b.headers(), "Origin", "http://evil.example"), 403},
		"a page of another origin, with the key":   {"GET", "/v2/sandboxes", []string{"X-API-Key", key, "Sec-Fetch-Site", "cross-site"}, 403},
		"nothing is there":                         {"GET", "/none", []string{"X-API-Key", key}, 404},
		"nothing that a sandbox's token would see": {"GET", "/none", b.headers(), 401},
	} {
		a := s.ask(tc.method, s.url+tc.path, "", tc.headers...)
		require.Equal(t, tc.want, a.status, name)
		if tc.want == http.StatusUnauthorized {
			require.InDelta(t, 401, a.json(t)["code"], 0, name)
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for body, want := range map[string]int{
		`{"templateID":"mine"}`:                         404,
		`{"autoPause":true}`:                            400,
		`{"allow_internet_access":false}`:               400,
		`{"network":{"denyOut":["0.0.0.0/0"]}}`:         400,
		`{"mcp":{"x":{}}}`:                              400,
		`{"volumeMounts":[{"name":"v","path":"/mnt"}]}`: 400,
		`{"timeout":-5}`:                                400,
		`{"metadata":{"a=b":"c"}}`:                      400,
		`{"envVars":{"":"c"}}`:                          400,
		`{"envVars":3}`:                                 400,
		`{`:                                             400,
	} {
		a := s.control("POST", "/v2/sandboxes", body)
		require.Equal(t, want, a.status, body)
		require.NotEmpty(t, a.json(t)["message"], body)
	}
	require.Empty(t, s.host.Workspaces().List(workspace.Filter{}), "what was refused has made nothing")
	b := s.make(`{"network":{"allowPublicTraffic":false},"allow_internet_access":true,"autoPause":false}`)
	for _, what := range []string{"POST /sandboxes/" + b.id + "/pause", "PUT /sandboxes/" + b.id + "/network", "POST /v3/templates", "POST /volumes", "POST /secrets"} {
		method, path, _ := strings.Cut(what, " ")
		a := s.control(method, path, `{}`)
		require.Equal(t, http.StatusNotImplemented, a.status, what)
		require.InDelta(t, 501, a.json(t)["code"], 0, what)
	}
	require.Equal(t, http.StatusNotFound, s.control("POST", "/sandboxes/none/pause", `{}`).status)
	require.JSONEq(t, `[]`, s.control("GET", "/snapshots", "").text)
	require.Equal(t, http.StatusNotFound, s.control("DELETE", "/templates/none", "").status)
	require.Equal(t, http.StatusUnsupportedMediaType, s.control("POST", "/v2/sandboxes", `{}`, "Content-Type", "text/plain").status)
}

func TestAListPageByPage(t *testing.T) {
	t.Parallel()
	s := serve(t)
	var ids []string
	for _, user := range []string{"ann", "ben", "ann", "ann"} {
		ids = append(ids, s.make(`{"metadata":{"user":"`+user+`","a&b":"c=d"}}`).id)
	}
	page := func(query string) ([]string, string) {
		t.Helper()
		a := s.control("GET", "/v2/sandboxes?"+query, "")
		require.Equal(t, http.StatusOK, a.status, a.text)
		var list []map[string]any
		require.NoError(t, json.Unmarshal([]byte(a.text), &list))
		found := []string{}
		for _, one := range list {
			require.NotContains(t, one, "envdAccessToken", "a list opens nothing")
			found = append(found, one["sandboxID"].(string))
		}
		return found, a.header.Get("X-Next-Token")
	}
	all, next := page("")
	require.Equal(t, []string{ids[3], ids[2], ids[1], ids[0]}, all)
	require.Empty(t, next)
	anns := "metadata=" + url.QueryEscape(url.Values{"user": {"ann"}, "a%26b": {"c%3Dd"}}.Encode()) + "&order=asc"
	found, _ := page(anns)
	require.Equal(t, []string{ids[0], ids[2], ids[3]}, found)
	first, next := page(anns + "&limit=2")
	require.Equal(t, []string{ids[0], ids[2]}, first)
	second, last := page(anns + "&limit=2&nextToken=" + next)
	require.Equal(t, []string{ids[3]}, second)
	require.Empty(t, last)
	none, _ := page("state=paused")
	require.Empty(t, none)
	require.Equal(t, http.StatusNoContent, s.control("POST", "/sandboxes/"+ids[1]+"/pause", `{"memory":false}`).status)
	found, _ = page("state=paused")
	require.Equal(t, ids[1:2], found)
	found, _ = page("state=running")
	require.Equal(t, []string{ids[3], ids[2], ids[0]}, found)
	both, _ := page("state=running,paused")
	require.Len(t, both, 4)
	none, _ = page("template=code-interpreter-v1")
	require.Empty(t, none)
	for _, bad := range []string{"limit=0", "limit=x", "order=up", "nextToken=*", "startedAfter=today"} {
		require.Equal(t, http.StatusBadRequest, s.control("GET", "/v2/sandboxes?"+bad, "").status, bad)
	}
}

// TestOneKeyOneSandbox makes one sandbox by two requests, of which the first seemed lost.
func TestOneKeyOneSandbox(t *testing.T) {
	t.Parallel()
	s := serve(t)
	same := func(k string) string {
		a := s.control("POST", "/v2/sandboxes", `{"metadata":{"a":"b"}}`, "Idempotency-Key", k)
		require.Equal(t, http.StatusCreated, a.status)
		return a.json(t)["sandboxID"].(string)
	}
	first := same("k-1")
	require.Equal(t, first, same("k-1"))
	require.NotEqual(t, first, same("k-2"))
}

// TestAWorkspaceOfOthers is a sandbox, though it was not made as one.
func TestAWorkspaceOfOthers(t *testing.T) {
	t.Parallel()
	s := serve(t)
	w, err := s.host.Workspace(context.Background(), "etl", workspace.Options{})
	require.NoError(t, err)
	a := s.control("POST", "/v2/sandboxes/etl/connect", `{"timeout":5}`)
	require.Equal(t, http.StatusOK, a.status)
	require.True(t, w.Info().EndAt.IsZero(), "it has no end, and is given none")
	require.Contains(t, s.control("GET", "/sandboxes/etl", "").text, `"endAt":"9999-`)
	metrics := s.control("GET", "/sandboxes/etl/metrics", "")
	require.Equal(t, http.StatusOK, metrics.status)
	var list []map[string]any
	require.NoError(t, json.Unmarshal([]byte(metrics.text), &list))
	require.Len(t, list, 1)
	for _, field := range []string{"timestamp", "timestampUnix", "cpuUsedPct", "cpuCount", "memUsed", "memTotal", "memCache", "diskUsed", "diskTotal"} {
		require.Contains(t, list[0], field)
	}
}
