package liveview_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/liveview"
	"github.com/coppice-run/coppice/cmd/internal/liveview/vitals"
	"github.com/coppice-run/coppice/messages"
)

// handler serves the mounts, with vitals that look at nothing but what is given.
func handler(t *testing.T, look error) http.Handler {
	t.Helper()
	v := vitals.New()
	v.Show(vitals.Source{
		Sessions: func(context.Context) ([]client.Session, error) { return nil, look },
		Tree:     func(context.Context) (messages.Node, error) { return messages.Node{}, look },
	})
	t.Cleanup(v.Close)
	mounts, err := liveview.Mounts(liveview.Options{Version: `1.2.3 <b>`, Cwd: "/w", Vitals: v})
	require.NoError(t, err)
	mux := http.NewServeMux()
	for _, m := range mounts {
		require.Equal(t, !strings.Contains(m.Pattern, "/api/"), m.Public, "%s: only what holds nothing asks for no token", m.Pattern)
		mux.Handle(m.Pattern, m.Handler)
	}
	return mux
}

// get asks for a path, as the server would.
func get(t *testing.T, path string) *httptest.ResponseRecorder {
	t.Helper()
	return ask(t, handler(t, nil), path)
}

func ask(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w
}

// scripts are the modules of the page, by their names, without the bundles, which are made
// of packages of others.
func scripts(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir("assets")
	require.NoError(t, err)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".js") && !strings.HasPrefix(e.Name(), "vendor-") {
			data, err := fs.ReadFile(os.DirFS("assets"), e.Name())
			require.NoError(t, err)
			files[e.Name()] = string(data)
		}
	}
	require.Contains(t, files, "main.js")
	return files
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
	require.Equal(t, http.StatusNotFound, get(t, "/live/none.js").Code)
	require.Equal(t, http.StatusNotFound, get(t, "/nothing").Code)
}

// A module is served as a script with the policy, imports files that are there and
// names that these export, and all of them are reached from the page.
func TestTheModulesBelongTogether(t *testing.T) {
	all := scripts(t)
	reached := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		require.Contains(t, all, name)
		if reached[name] {
			return
		}
		reached[name] = true
		for _, m := range regexp.MustCompile(`(?m)^import (.+?) from "\./([\w.]+)";`).FindAllStringSubmatch(all[name], -1) {
			visit(m[2])
			if list, ok := strings.CutPrefix(m[1], "{"); ok {
				for wanted := range strings.SplitSeq(strings.TrimSuffix(list, "}"), ",") {
					require.Regexp(t, `export (async function|function|const|class|let) `+regexp.QuoteMeta(strings.TrimSpace(wanted))+`[ (=;<]`, all[m[2]], "%s imports it from %s", name, m[2])
				}
			}
		}
	}
	visit("main.js")
	for name, text := range all {
		require.True(t, reached[name], "%s is not used", name)
		require.Less(t, strings.Count(text, "\n"), 400, name)
		w := get(t, "/live/"+name)
		require.Equal(t, "text/javascript; charset=utf-8", w.Header().Get("Content-Type"))
		require.Contains(t, w.Header().Get("Content-Security-Policy"), "default-src 'none'")
		require.Equal(t, text, w.Body.String())
	}
}

// Every element that the scripts name is in the page, and every field of the page
// that a person fills in has a label.
func TestTheScriptsAndThePageBelongTogether(t *testing.T) {
	page := get(t, "/").Body.String()
	for name, script := range scripts(t) {
		for _, m := range regexp.MustCompile(`(?:\$|\bon)\("([\w-]+)"[,)]`).FindAllStringSubmatch(script, -1) {
			require.Contains(t, page, `id="`+m[1]+`"`, name)
		}
		for _, danger := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "localStorage", "srcdoc", "createContextualFragment", "setHTMLUnsafe"} {
			require.NotContains(t, script, danger, name)
		}
		// The names of the namespace of SVG and the links of Markdown are no addresses that are asked.
		require.NotRegexp(t, `(fetch|import)\(\s*["'`+"`"+`]?https?:`, script, name)
	}
	for _, m := range regexp.MustCompile(`<(?:input|textarea|select)[^>]*id="([\w-]+)"`).FindAllStringSubmatch(page, -1) {
		require.Contains(t, page, `<label for="`+m[1]+`"`)
	}
}

// Code that two people type into the page meets only in a session that both have chosen:
// whatever runs or opens something names a session, and none is filled in.
func TestThePageRunsCodeInAChosenSessionOnly(t *testing.T) {
	runs := 0
	for name, script := range scripts(t) {
		for _, m := range regexp.MustCompile("call\\(\"POST\", ([^,)]+)(?:, (\\{[^;]*\\}))?\\)").FindAllStringSubmatch(script, -1) {
			switch m[1] {
			case `"/api/executions"`:
				require.Contains(t, m[2], "session: key.session, cwd: key.cwd")
				runs++
			case `"/api/sessions"`:
				require.Regexp(t, `^\{ session: (name|wanted|s\.session)\b`, m[2])
				runs++
			}
		}
		require.NotRegexp(t, `(?i)session:\s*["'`+"`"+`]`, script, "%s: no session is named by the page itself", name)
	}
	require.Equal(t, 4, runs)
}

func TestTheOverviewAndStoriesAreServed(t *testing.T) {
	h := handler(t, nil)
	w := ask(t, h, "/api/overview")
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	var o client.Overview
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &o))
	require.NotNil(t, o.Samples)
	require.NotNil(t, o.Problems)
	require.NotNil(t, o.Marks)
	w = ask(t, h, "/api/story?session=a")
	require.JSONEq(t, `{"key": {"session": "a", "cwd": "/w"}, "moments": []}`, w.Body.String())
	for path, want := range map[string]int{"/api/overview?after=x": 400, "/api/overview?after=-1": 400, "/api/overview?since=": 400, "/api/overview?since=today": 400, "/api/story": 400} {
		w := ask(t, h, path)
		require.Equal(t, want, w.Code, path)
		require.Contains(t, w.Body.String(), `"code":"bad_request"`)
	}
	w = ask(t, handler(t, errors.New("the host has ended")), "/api/overview")
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Contains(t, w.Body.String(), "the host has ended")
}
