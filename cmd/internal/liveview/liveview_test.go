package liveview_test

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/liveview"
)

// get asks the mounts for a path, as the server would.
func get(t *testing.T, path string) *httptest.ResponseRecorder {
	t.Helper()
	mounts, err := liveview.Mounts(`1.2.3 <b>`)
	require.NoError(t, err)
	mux := http.NewServeMux()
	for _, m := range mounts {
		require.True(t, m.Public, "%s holds nothing, and asks for no token", m.Pattern)
		mux.Handle(m.Pattern, m.Handler)
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w
}

func TestThePageLoadsNothingFromElsewhere(t *testing.T) {
	page := get(t, "/")
	require.Equal(t, http.StatusOK, page.Code)
	require.Equal(t, "text/html; charset=utf-8", page.Header().Get("Content-Type"))
	policy := page.Header().Get("Content-Security-Policy")
	require.Contains(t, policy, "default-src 'none'")
	require.NotContains(t, policy, "unsafe")
	text := page.Body.String()
	require.Contains(t, text, "1.2.3 &lt;b&gt;")
	for _, m := range regexp.MustCompile(`(?:src|href)="([^"#]+)"`).FindAllStringSubmatch(text, -1) {
		require.Equal(t, http.StatusOK, get(t, m[1]).Code, m[1])
	}
	// The policy would stop them, and so would this test.
	require.NotRegexp(t, `(?i)<script>|<style|\son[a-z]+=|\sstyle=`, text)
	require.NotContains(t, text, "//")
	require.Equal(t, http.StatusNotFound, get(t, "/live/page.html").Code)
	require.Equal(t, http.StatusNotFound, get(t, "/nothing").Code)
}

// Every element that the script names is in the page, and every field of the page
// that a person fills in has a label.
func TestTheScriptAndThePageBelongTogether(t *testing.T) {
	assets := os.DirFS("assets")
	script, err := fs.ReadFile(assets, "live.js")
	require.NoError(t, err)
	page := get(t, "/").Body.String()
	for _, m := range regexp.MustCompile(`(?:\$|\bon)\("([\w-]+)"`).FindAllStringSubmatch(string(script), -1) {
		require.Contains(t, page, `id="`+m[1]+`"`)
	}
	for _, m := range regexp.MustCompile(`<(?:input|textarea)[^>]*id="([\w-]+)"`).FindAllStringSubmatch(page, -1) {
		require.Contains(t, page, `<label for="`+m[1]+`"`)
	}
	for _, danger := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "localStorage"} {
		require.NotContains(t, string(script), danger)
	}
	require.NotContains(t, strings.ReplaceAll(string(script), "://", ""), "http:")
}

// Code that two people type into the page meets only in a session that both have chosen:
// whatever runs or opens something names a session, and none is filled in.
func TestThePageRunsCodeInAChosenSessionOnly(t *testing.T) {
	script, err := os.ReadFile("assets/live.js")
	require.NoError(t, err)
	posts := regexp.MustCompile("call\\(\"POST\", ([^,)]+)(?:, (\\{[^;]*\\}))?\\)").FindAllStringSubmatch(string(script), -1)
	require.NotEmpty(t, posts)
	runs := 0
	for _, m := range posts {
		switch m[1] {
		case `"/api/executions"`:
			require.Contains(t, m[2], "session: selected.session, cwd: selected.cwd")
			runs++
		case `"/api/sessions"`:
			require.Regexp(t, `^\{ session: name\b`, m[2])
			runs++
		}
	}
	require.Equal(t, 2, runs, "%v", posts)
	require.NotRegexp(t, `(?i)session:\s*["'`+"`"+`]`, string(script), "no session is named by the page itself")
}
