package httpapi_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
)

// TestRefused asks in all the ways that are refused: each is logged once, and
// neither answer nor log tells the token or what a file holds.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, coppice.Options{}, httpapi.Options{})
	for name, tc := range map[string]struct {
		method, path, body string
		headers            []string
		want               int
		logged             bool
	}{
		"no token":                {path: "/api/sessions", headers: []string{"Authorization", ""}, want: 401, logged: true},
		"a wrong token":           {path: "/api/sessions?a", headers: []string{"Authorization", "Bearer " + token + "x"}, want: 401, logged: true},
		"a part of the token":     {path: "/api/sessions?b", headers: []string{"Authorization", "Bearer " + token[1:]}, want: 401, logged: true},
		"the token as a query":    {path: "/api/sessions?token=" + token, headers: []string{"Authorization", ""}, want: 401, logged: true},
		"another origin":          {path: "/api/health", headers: []string{"Origin", "http://evil.example"}, want: 403, logged: true},
		"the origin null":         {path: "/api/health", headers: []string{"Origin", "null"}, want: 403, logged: true},
		"another port's origin":   {path: "/api/health", headers: []string{"Origin", "http://127.0.0.1:1"}, want: 403, logged: true},
		"a page of another site":  {path: "/api/health", headers: []string{"Sec-Fetch-Site", "cross-site"}, want: 403, logged: true},
		"another host":            {path: "/api/health", headers: []string{"Host", "evil.example"}, want: 403, logged: true},
		"a host like ours":        {path: "/api/health", headers: []string{"Host", "127.0.0.1.evil.example:7788"}, want: 403, logged: true},
		"up from artifacts":       {path: "/api/artifacts/..%2f..%2fetc%2fpasswd", want: 400, logged: true},
		"up, not escaped":         {path: "/api/artifacts/../../etc/passwd", want: 400, logged: true},
		"up, escaped twice":       {path: "/api/artifacts/..%252f..%252fetc%252fpasswd", want: 400},
		"up, the other way":       {path: "/api/artifacts/..%5c..%5cwin.ini", want: 400, logged: true},
		"a number with zeros":     {path: "/api/artifacts/007", want: 400},
		"a negative number":       {path: "/api/artifacts/-1", want: 400},
		"a number with a sign":    {path: "/api/artifacts/+1", want: 400},
		"a number too large":      {path: "/api/artifacts/99999999999999999999", want: 404},
		"an absolute path":        {path: "/api/artifacts/%2Fetc%2Fpasswd", want: 400},
		"a byte of zero":          {path: "/api/artifacts/0%00", want: 400, logged: true},
		"a session that goes up":  {method: "DELETE", path: "/api/sessions/..%2f..", want: 400, logged: true},
		"an empty part":           {path: "/api//sessions", want: 400, logged: true},
		"an unknown member":       {method: "POST", path: "/api/executions", body: `{"session":"a","cells":[{"code":"1"}],"shell":"id"}`, want: 400},
		"two values":              {method: "POST", path: "/api/executions", body: `{"session":"a","cells":[{"code":"1"}]}{}`, want: 400},
		"no JSON":                 {method: "POST", path: "/api/executions", body: `cells=1`, want: 400},
		"no UTF-8":                {method: "POST", path: "/api/executions", body: "{\"session\":\"a\",\"cells\":[{\"code\":\"\xff\"}]}", want: 400},
		"deep":                    {method: "POST", path: "/api/executions", body: strings.Repeat("[", 100000), want: 400},
		"a form":                  {method: "POST", path: "/api/executions", body: `{"session":"a","cells":[{"code":"1"}]}`, headers: []string{"Content-Type", "application/x-www-form-urlencoded"}, want: 415},
		"too large":               {method: "POST", path: "/api/executions", body: strings.Repeat(" ", 17<<20), want: 413},
		"an id that is a path":    {method: "POST", path: "/api/executions", body: `{"id":"../x","session":"a","cells":[{"code":"1"}]}`, want: 400},
		"a time without end":      {method: "POST", path: "/api/executions", body: `{"session":"a","timeout_seconds":1e300,"cells":[{"code":"1"}]}`, want: 400},
		"an unknown mode":         {method: "POST", path: "/api/executions", body: `{"session":"a","mode":"root","cells":[{"code":"1"}]}`, want: 400},
		"no cells":                {method: "POST", path: "/api/executions", body: `{"session":"a"}`, want: 400},
		"no session":              {method: "POST", path: "/api/executions", body: `{"cells":[{"code":"1"}]}`, want: 400},
		"an empty session":        {method: "POST", path: "/api/executions", body: `{"session":"","cells":[{"code":"1"}]}`, want: 400},
		"no session to open":      {method: "POST", path: "/api/sessions", body: `{}`, want: 400},
		"a notebook in none":      {method: "POST", path: "/api/notebooks/run", body: `{"path":"a.ipynb"}`, want: 400},
		"a directory of nobody":   {method: "POST", path: "/api/executions", body: `{"session":"a","cwd":"/none","cells":[{"code":"1"}]}`, want: 422},
		"a notebook of passwords": {method: "POST", path: "/api/notebooks/show", body: `{"path":"/etc/passwd"}`, want: 400},
		"a cursor in words":       {path: "/api/changes?after=now", want: 400},
	} {
		if tc.method == "" {
			tc.method = "GET"
		}
		before := strings.Count(s.log.String(), "refused a request")
		status, answer := s.ask(tc.method, tc.path, tc.body, tc.headers...)
		require.Equal(t, tc.want, status, "%s: %s", name, answer)
		require.NotContains(t, answer, "root:", name)
		require.NotContains(t, answer, token, name)
		require.Contains(t, answer, `"error":{"code":`, name)
		after := strings.Count(s.log.String(), "refused a request")
		if tc.logged {
			before++
		}
		require.Equal(t, before, after, name)
	}
	list, err := s.Sessions(t.Context())
	require.NoError(t, err)
	require.Empty(t, list) // nothing was run
}

// unknown asks for what there is not.
func (s *server) unknown() {
	for _, path := range []string{"/api/executions", "/api/sessions"} {
		body := `{"session":"a","workspace":"none"`
		if path == "/api/executions" {
			body += `,"cells":[{"code":"1"}]`
		}
		status, answer := s.ask("POST", path, body+"}")
		require.Equal(s.t, 404, status, answer)
		require.Contains(s.t, answer, `"not_found"`)
	}
	status, answer := s.ask("GET", "/api/executions?outcome=foo", "")
	require.Equal(s.t, 400, status, answer)
}
