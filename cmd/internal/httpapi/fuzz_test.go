package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/cmd/internal/liveview"
	"github.com/coppice-run/coppice/cmd/internal/liveview/vitals"
	"github.com/coppice-run/coppice/cmd/internal/toolapi"
	"github.com/coppice-run/coppice/cmd/internal/workspaceapi"
	"github.com/coppice-run/coppice/workspace"
	wfiles "github.com/coppice-run/coppice/workspace/files"
)

// secret is in files that no request may read: all but notebooks.
const secret = "open-sesame-of-somebody-else"

// fuzzed is a server in this process that runs no code, as its host has no
// Python: what a fuzzer comes up with is asked for and not done.
type fuzzed struct {
	handler http.Handler
	api     *httpapi.API
	cwd     string
	log     *safeBuffer
	ended   string // the id of an execution that has ended
	events  uint64 // how many events it has
}

func fuzz(f *testing.F) *fuzzed {
	f.Helper()
	s := &fuzzed{cwd: f.TempDir(), log: &safeBuffer{}, ended: "ended"}
	for name, text := range map[string]string{
		"secret.txt": secret, "a.ipynb": `{"cells":[],"metadata":{},"nbformat":4,"nbformat_minor":5}`, "bad.ipynb": "{",
	} {
		require.NoError(f, os.WriteFile(filepath.Join(s.cwd, name), []byte(text), 0o600))
	}
	require.NoError(f, os.Mkdir(filepath.Join(s.cwd, "dir.ipynb"), 0o700))
	host, err := coppice.Start(f.Context(), coppice.Options{
		Home: f.TempDir(), Backend: coppice.Runner(coppice.RunnerOptions{}), Python: filepath.Join(s.cwd, "no-python"), Env: []string{}, Output: coppice.OutputOptions{Artifacts: f.TempDir()},
		Launcher: &launcher.Options{Dir: f.TempDir()},
	})
	require.NoError(f, err)
	logger := slog.New(slog.NewTextHandler(s.log, nil))
	s.api, err = httpapi.New(httpapi.Options{Host: host, Cwd: s.cwd, Logger: logger, Retention: httpapi.Retention{Keep: 16}})
	require.NoError(f, err)
	v := vitals.New()
	v.Show(vitals.Source{Sessions: s.api.Sessions, Tree: host.Snapshot})
	page, err := liveview.Mounts(liveview.Options{Version: "test", Cwd: s.cwd, Vitals: v})
	require.NoError(f, err)
	mounts := slices.Concat(s.api.Mounts(), toolapi.Mounts(toolapi.Options{Tools: host.Launcher()}), workspaceapi.Mounts(workspaceapi.Options{Host: host, Logger: logger}), page)
	w, err := host.Workspace(f.Context(), "w", workspace.Options{Quota: 1 << 20})
	require.NoError(f, err)
	files, err := w.Files()
	require.NoError(f, err)
	_, err = files.WriteBytes(f.Context(), "dir/file", []byte("text"), wfiles.WriteOptions{})
	require.NoError(f, err)
	require.NoError(f, os.WriteFile(filepath.Join(filepath.Dir(w.Folder()), "secret.txt"), []byte(secret), 0o600))
	require.NoError(f, os.Symlink("../secret.txt", filepath.Join(w.Folder(), "up")))
	l, err := httpserver.Listen(f.Context(), httpserver.Options{Addr: "127.0.0.1:0", Token: token}, mounts...)
	require.NoError(f, err)
	s.handler = l.Handler()
	f.Cleanup(func() {
		require.NoError(f, l.Close())
		v.Close()
		require.NoError(f, s.api.Close())
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.True(f, host.Shutdown(ctx).Clean())
	})
	return s
}

// begin makes an execution that has ended at once.
func (s *fuzzed) begin(ctx context.Context, t require.TestingT) {
	s.do(ctx, t, "POST", "/api/executions", nil, `{"id":"ended","session":"a","cells":[{"code":"1"}]}`)
	w := s.do(ctx, t, "GET", "/api/executions/ended?wait=60", nil, "")
	var x client.Execution
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &x))
	require.Equal(t, client.Ended, x.State)
	s.events = x.Events
}

// do makes a request and looks at what every answer has to be.
func (s *fuzzed) do(ctx context.Context, t require.TestingT, method, path string, header http.Header, body string) *httptest.ResponseRecorder {
	r, err := http.NewRequestWithContext(ctx, method, "http://127.0.0.1"+path, strings.NewReader(body))
	if err != nil {
		return nil // no request at all
	}
	r.Host = "127.0.0.1"
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	maps.Copy(r.Header, header)
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	if w.Code != http.StatusServiceUnavailable {
		require.Less(t, w.Code, 500, "%s %s %s: %s", method, path, body, w.Body)
	}
	if w.Code >= 400 && w.Code != http.StatusRequestedRangeNotSatisfiable && w.Header().Get("Content-Type") == "application/json" {
		var told struct {
			Error *client.Error `json:"error"`
		}
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &told), "%s %s: %s", method, path, w.Body)
		require.NotNil(t, told.Error, "%s %s: %s", method, path, w.Body)
	}
	for _, word := range []string{secret, "root:", token} {
		require.NotContains(t, w.Body.String(), word, "%s %s %s", method, path, body)
	}
	return w
}

// FuzzRoutes asks for anything with any body.
func FuzzRoutes(f *testing.F) {
	f.Add("GET", "/api/artifacts/..%2f0", "", "")
	f.Add("GET", "/api/artifacts/0", "bytes=0-,1-", "")
	f.Add("POST", "/api/notebooks/apply", "", `{"path":"a.ipynb","text":"# %% [code]\n1","dry_run":true}`)
	f.Add("POST", "/api/executions/x/input", "", `{"id":"1","value":"x"}`)
	f.Add("GET", "/api/executions?session=a&cwd=%00", "", "")
	f.Add("DELETE", "/api/sessions/a%2fb?cwd=..", "", "")
	f.Add("GET", "/api/tools/a/files/r/..%2f..", "bytes=-1", "")
	f.Add("GET", "/api/workspaces?label=a=b&owner=", "", "")
	f.Add("GET", "/api/workspaces/w/files?path=..%2fsecret.txt", "bytes=0-1", "")
	f.Add("PUT", "/api/workspaces/w/files?path=up&mode=0777", "", "text")
	f.Add("POST", "/api/workspaces/w/files/move", "", `{"from":"dir/file","to":"../x","replace":true}`)
	f.Add("PATCH", "/api/workspaces/w", "", `{"labels":{"a":"b"},"lifetime":{"idle_end_seconds":1e9}}`)
	f.Add("DELETE", "/api/workspaces/w/processes/p1?grace=0", "", "")
	f.Add("GET", "/live/..%2fmain.js", "", "")
	f.Add("GET", "/api/story?session=%00&cwd=..", "", "")
	f.Add("GET", "/api/overview?after=99999999999999999999", "", "")
	s := fuzz(f)
	f.Fuzz(func(t *testing.T, method, path, header, body string) {
		if strings.HasPrefix(path, "/api/changes") || strings.Contains(path, "wait=") || strings.Contains(path, "/watch") {
			return // they take their time
		}
		s.do(t.Context(), t, method, path, http.Header{"Range": {header}}, body)
	})
}

// FuzzBodies posts any body to every route that takes one.
func FuzzBodies(f *testing.F) {
	routes := []string{
		"/api/sessions", "/api/sessions/a/fork", "/api/executions", "/api/executions/ended/input",
		"/api/notebooks/show", "/api/notebooks/apply", "/api/notebooks/run", "/api/tools/a/run", "/api/tools/a/stream",
	}
	for i, body := range []string{
		`{"session":"a/b","cwd":"..","pin":true}`, `{"copies":2}`, `{"id":"x","session":"a","cells":[{"code":"1"}],"timeout_seconds":1e3,"env":{"A":"b"}}`, `{"id":"1","value":"\u0000"}`,
		`{"path":"a.ipynb","lines":"1-2,$"}`, `{"path":"a.ipynb","text":"# %% [code]\n1","dry_run":true}`, `{"path":"a.ipynb","cells":"1,3-","timeout_seconds":-1}`,
		`{"inputs":{},"run_id":"r","timeout_seconds":0.1}`, `null`,
	} {
		f.Add(uint8(i), []byte(body))
	}
	f.Add(uint8(2), []byte(`{"session":"a","cells":[{"code":"1"}],"timeout_seconds":NaN}`))
	f.Add(uint8(2), []byte(`{"cells":[null],"mode":"per-call","env":null}`))
	f.Add(uint8(5), []byte(`{"path":"dir.ipynb","text":"x"}`))
	s := fuzz(f)
	f.Fuzz(func(t *testing.T, route uint8, body []byte) {
		if s.events == 0 {
			s.begin(t.Context(), t)
		}
		s.do(t.Context(), t, "POST", routes[int(route)%len(routes)], nil, string(body))
	})
}

// FuzzFilePath names any path in a workspace: nothing outside of it is read or changed.
func FuzzFilePath(f *testing.F) {
	for _, path := range []string{"dir/file", "../secret.txt", "up", "up/x", "dir/../../secret.txt", "/etc/passwd", "dir\x00", `..\secret.txt`, ".", "", "\xff", "%2e%2e/secret.txt"} {
		f.Add(path, "dir/new")
	}
	s := fuzz(f)
	f.Fuzz(func(t *testing.T, path, other string) {
		const at = "/api/workspaces/w/files"
		query := "?path=" + url.QueryEscape(path)
		for _, request := range []string{"GET " + at, "GET " + at + "/list", "GET " + at + "/stat", "PUT " + at, "DELETE " + at} {
			method, to, _ := strings.Cut(request, " ")
			s.do(t.Context(), t, method, to+query, nil, "text")
		}
		body, err := json.Marshal(map[string]any{"from": path, "to": other, "replace": true})
		require.NoError(t, err)
		s.do(t.Context(), t, "POST", at+"/move", nil, string(body))
	})
}

// FuzzCursor asks for events after anything: who names a number that there is
// gets each later event once.
func FuzzCursor(f *testing.F) {
	f.Add("0", "", false)
	f.Add("", "1", true)
	f.Add("18446744073709551616", "-1", false)
	f.Add("0x1", "1e0", false)
	s := fuzz(f)
	f.Fuzz(func(t *testing.T, header, query string, changes bool) {
		if s.events == 0 {
			s.begin(t.Context(), t)
		}
		h := http.Header{}
		if header != "" {
			h.Set("Last-Event-ID", header)
		}
		path, ctx := "/api/executions/ended/events", t.Context()
		if changes { // these go on for ever
			path = "/api/changes"
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(ctx)
			cancel()
		}
		w := s.do(ctx, t, "GET", path+"?after="+url.QueryEscape(query), h, "")
		if w.Code != http.StatusOK || changes {
			return
		}
		after, events := uint64(0), strings.Count(w.Body.String(), "\ndata: ")
		_, _ = fmt.Sscan(header+" "+query+" 0", &after) // it was read by the server, or the status was another
		require.Equal(t, s.events-after, uint64(events), "%q %q", header, query)
	})
}

// FuzzArtifact asks for any artifact, any lines and any range of it.
func FuzzArtifact(f *testing.F) {
	f.Add("0", "1", "2", "bytes=0-1")
	f.Add("../secret.txt", "-1", "9999999999999999999", "bytes=5-1,2-")
	f.Add("%2e%2e%2f", "", "0", "lines=1-2")
	s := fuzz(f)
	f.Fuzz(func(t *testing.T, id, first, last, within string) {
		query := url.Values{}
		for name, value := range map[string]string{"first": first, "last": last} {
			if value != "" {
				query.Set(name, value)
			}
		}
		s.do(t.Context(), t, "GET", "/api/artifacts/"+id+"?"+query.Encode(), http.Header{"Range": {within}}, "")
		s.do(t.Context(), t, "GET", "/api/artifacts/"+url.PathEscape(id)+"?"+query.Encode(), http.Header{"Range": {within}}, "")
	})
}

// FuzzNotebookPath names any path: what is no notebook is not read, and nothing is
// written by a dry run.
func FuzzNotebookPath(f *testing.F) {
	for _, path := range []string{
		"a.ipynb", "secret.txt", "../a.ipynb", "secret.txt\x00.ipynb", "dir.ipynb", "a.ipynb/b.ipynb", "/proc/self/environ", strings.Repeat("x", 300) + ".ipynb",
		"~/a.ipynb", "bad.ipynb", "none/a.ipynb", ".ipynb", "/dev/stdin.ipynb", "a.ipynb?x", "file:a.ipynb",
	} {
		f.Add(path, "1-2", "")
	}
	s := fuzz(f)
	f.Fuzz(func(t *testing.T, path, lines, cells string) {
		ask := func(route string, v any) {
			body, err := json.Marshal(v)
			require.NoError(t, err)
			s.do(t.Context(), t, "POST", route, nil, string(body))
		}
		ask("/api/notebooks/show", client.Show{Path: path, Lines: lines})
		ask("/api/notebooks/apply", client.Apply{Path: path, Text: "# %% [code]\n1", DryRun: true})
		ask("/api/notebooks/run", client.RunNotebook{Path: path, Session: "a", Cells: cells})
	})
}

// FuzzFrames sends any bytes where the frames of a WebSocket are expected: the
// server ends the connection, and its log has no panic.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{0x81, 0x85, 1, 2, 3, 4, 'h' ^ 1, 'e' ^ 2, 'l' ^ 3, 'l' ^ 4, 'o' ^ 1})
	f.Add([]byte{0x88, 0x80, 0, 0, 0, 0})
	f.Add([]byte{0x82, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0x01, 0x00})
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	s := fuzz(f)
	front := &http.Server{Handler: s.handler, ErrorLog: slog.NewLogLogger(slog.NewTextHandler(s.log, nil), slog.LevelError), ReadHeaderTimeout: time.Minute}
	var lc net.ListenConfig
	l, err := lc.Listen(f.Context(), "tcp", "127.0.0.1:0")
	require.NoError(f, err)
	served := make(chan error, 1)
	go func() { served <- front.Serve(l) }() // ends with Close, below
	f.Cleanup(func() {
		require.NoError(f, front.Close())
		require.ErrorIs(f, <-served, http.ErrServerClosed)
	})
	f.Fuzz(func(t *testing.T, frames []byte) {
		if s.events == 0 {
			s.begin(t.Context(), t)
		}
		var d net.Dialer
		conn, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
		head := "GET /api/executions/ended/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " + token +
			"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
		_, _ = conn.Write(append([]byte(head), frames...)) // the server may have closed it by now
		answer, err := io.ReadAll(conn)
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the server did not end the connection")
		require.True(t, len(answer) == 0 || bytes.HasPrefix(answer, []byte("HTTP/1.1 101")), "%q", answer)
		require.NotContains(t, s.log.String(), "panic")
	})
}
