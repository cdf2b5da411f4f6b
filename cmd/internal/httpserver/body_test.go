package httpserver_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
)

// TestBody takes one JSON value with known members, and says what is wrong with
// anything else.
func TestBody(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		kind, body string
		expect     bool // the client waits for leave to send it
		status     int
		want       string
	}{
		"an object":         {"application/json", `{"n":1}`, false, 200, "1"},
		"with a charset":    {"application/json; charset=utf-8", ` {"n":2} `, false, 200, "2"},
		"nothing":           {"application/json", ``, false, 400, "it is empty"},
		"unknown members":   {"application/json", `{"m":1}`, false, 400, `cannot be read: unknown field`},
		"another type":      {"application/json", `{"n":"1"}`, false, 400, "n must be a whole number, not a string"},
		"a list":            {"application/json", `[]`, false, 400, "it must be an object, not an array"},
		"a fraction":        {"application/json", `{"n":1.5}`, false, 400, "n must be a whole number, not the number 1.5"},
		"two values":        {"application/json", `{"n":1}{}`, false, 400, "something follows its value"},
		"cut":               {"application/json", `{"n":`, false, 400, "it ends before its value does"},
		"no UTF-8":          {"application/json", "{\"n\":1\xff}", false, 400, "it is not UTF-8"},
		"a form":            {"application/x-www-form-urlencoded", `n=1`, false, 415, "not_json"},
		"of no type":        {"", `{"n":1}`, false, 415, "Content-Type: application/json"},
		"a type of none":    {"application/json; x", `{"n":1}`, false, 415, "not_json"},
		"too large":         {"application/json", `{"n":` + strings.Repeat("1", 100) + `}`, false, 413, "larger than 64 bytes"},
		"too large to send": {"application/json", `{"n":` + strings.Repeat("1", 100) + `}`, true, 413, "larger than 64 bytes"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(tc.body))
		r.Header.Set("Content-Type", tc.kind)
		if tc.expect {
			r.Header.Set("Expect", "100-continue")
		}
		w := httptest.NewRecorder()
		var to struct {
			N int `json:"n"`
		}
		if httpserver.Body(w, r, 64, &to) {
			httpserver.JSON(w, http.StatusOK, to.N)
		}
		require.Equal(t, tc.status, w.Code, name)
		require.Contains(t, w.Body.String(), tc.want, name)
		if tc.expect {
			rest, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			require.Len(t, rest, len(tc.body), "nothing was read of it")
		}
	}
}

// TestPaths: those that no part serves, that take other methods, or that go up.
func TestPaths(t *testing.T) {
	t.Parallel()
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { httpserver.JSON(w, http.StatusOK, "hello") })
	h := httpserver.Handler(httpserver.Options{Token: "sesame"},
		httpserver.Mount{Pattern: "GET /a/{name}", Handler: hello}, httpserver.Mount{Pattern: "POST /a/{name}", Handler: hello},
		httpserver.Mount{Pattern: "GET /bad", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { httpserver.JSON(w, http.StatusOK, func() {}) })})
	for _, tc := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/a/x", 200, ""},
		{"POST", "/a/x", 200, ""},
		{"GET", "/a/%20", 200, ""},
		{"DELETE", "/a/x", 405, "GET, POST"},
		{"PUT", "/a/x", 405, "GET, POST"},
		{"POST", "/bad", 405, "GET"},
		{"GET", "/none", 404, ""},
		{"GET", "/", 404, ""},
		{"PUT", "/none", 404, ""},
		{"GET", "/a/../a/x", 400, ""},
		{"GET", "/a/%2e%2e/x", 400, ""},
		{"GET", "/a/x%2f..%2fy", 400, ""},
		{"GET", "/a/x%5c..", 400, ""},
		{"GET", "/a//x", 400, ""},
		{"GET", "/a/%00", 400, ""},
		{"GET", "/./a/x", 400, ""},
		{"GET", "/bad", 500, ""},
	} {
		r := httptest.NewRequestWithContext(t.Context(), tc.method, "http://127.0.0.1"+tc.path, http.NoBody)
		r.Header.Set("Authorization", "Bearer sesame")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, tc.status, w.Code, "%s %s: %s", tc.method, tc.path, w.Body)
		require.Equal(t, tc.allow, w.Header().Get("Allow"), "%s %s", tc.method, tc.path)
	}
}
