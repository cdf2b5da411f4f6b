package httpapi_test

import (
	"net/http"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
)

// inWorkspace is the address of something in the workspace w.
const inWorkspace = "/api/workspaces/w"

// workspaces asks about workspaces in each way that the document has.
func (s *server) workspaces() {
	t, ctx := s.t, s.t.Context()
	_, err := s.CreateWorkspace(ctx, client.NewWorkspace{Name: "w", Quota: 1 << 20, Labels: map[string]string{"team": "a"}})
	require.NoError(t, err)
	_, err = s.CreateWorkspace(ctx, client.NewWorkspace{Name: "gone"})
	require.NoError(t, err)
	require.NoError(t, s.EndWorkspace(ctx, "gone"))
	require.NoError(t, s.EndWorkspace(ctx, "gone"), "it has ended, which is what was asked for")
	for path, methods := range s.spec.Paths { // of one that has ended, nothing is told but that
		for method := range methods {
			if !strings.HasPrefix(path, "/api/workspaces/{workspace}") || path == "/api/workspaces/{workspace}" && method == "delete" {
				continue
			}
			status, answer := s.ask(strings.ToUpper(method), filled(strings.Replace(path, "{workspace}", "gone", 1))+"?path=a", "{}")
			require.Equal(t, http.StatusGone, status, "%s %s: %s", method, path, answer)
			require.Contains(t, answer, `"hint":"asked"`)
		}
	}
	for _, route := range []string{"PATCH ", "POST /files/make", "POST /files/move", "POST /processes"} {
		method, rest, _ := strings.Cut(route, " ")
		s.notJSON(method, inWorkspace+rest)
	}
	for _, tc := range []struct {
		method, path, body string
		want               int
	}{
		{"GET", "/api/workspaces?label=team%3Da&label=team&owner=", "", 200},
		{"GET", "/api/workspaces?label=", "", 400},
		{"GET", "/api/workspaces?label=%3Da", "", 400},
		{"GET", "/api/workspaces?owner=a&owner=b", "", 400},
		{"GET", "/api/workspaces?label=team%3Da&label=team%3Db", "", 422},
		{"GET", inWorkspace, "", 200},
		{"POST", "/api/workspaces", `{"name":"w"}`, 200},
		{"POST", "/api/workspaces", `{"name":"w","quota_bytes":7}`, 409},
		{"POST", "/api/workspaces", `{"name":".."}`, 422},
		{"POST", "/api/workspaces", `{"name":"x","folder":"/none"}`, 422},
		{"POST", "/api/workspaces", `{"name":"x","labels":{"":"x"}}`, 422},
		{"POST", "/api/workspaces", `{"name":"x","isolation":{"level":"magic"}}`, 422},
		{"POST", "/api/workspaces", `{"name":"x","quota_bytes":-1}`, 400},
		{"POST", "/api/workspaces", `{"name":"x","quota_bytes":1.5}`, 400},
		{"POST", "/api/workspaces", `{"name":"x","quota_bytes":9007199254740993}`, 400},
		{"POST", "/api/workspaces", `{"name":"x","limits":{"memory_bytes":9007199254740993}}`, 400},
		{"POST", "/api/workspaces", `{"name":"x","limits":{"files":-1}}`, 400},
		{"POST", "/api/workspaces", `{"name":"x","limits":{"cpu_seconds":1e300}}`, 400},
		{"POST", "/api/workspaces", `{"name":"x","limits":{"processors":-1}}`, 400},
		{"POST", "/api/workspaces", `{"name":"x","total":{"memory_bytes":-1}}`, 400},
		{"POST", "/api/workspaces", `{"name":"x","total":{"processes":1.5}}`, 400},
		{"POST", "/api/workspaces", `{"name":"x","total":{"processors":-1}}`, 400},
		{"POST", "/api/workspaces", `{"name":"x","total":{"output_bytes":9007199254740993}}`, 400},
		{"POST", "/api/workspaces", `{"name":"x","total":{"disk_bytes":1}}`, 400},
		{"POST", "/api/workspaces", `{"name":"x","lifetime":{"end_in_seconds":-1}}`, 400},
		{"POST", "/api/workspaces", `{"name":"x","lifetime":{"idle_end_seconds":-1}}`, 400},
		{"POST", "/api/workspaces", `{"name":"x","shell":true}`, 400},
		{"POST", "/api/workspaces", `{}`, 400},
		{"PATCH", inWorkspace, `{"labels":{"team":"b"},"lifetime":{"idle_end_seconds":1e6},"pinned":true}`, 200},
		{"PATCH", inWorkspace, `{"labels":{"a=b":""}}`, 422},
		{"PATCH", inWorkspace, `{"lifetime":{"end_in_seconds":-2}}`, 400},
		{"GET", inWorkspace + "/processes", "", 200},
	} {
		status, answer := s.ask(tc.method, tc.path, tc.body)
		require.Equal(t, tc.want, status, "%s %s %s: %s", tc.method, tc.path, tc.body, answer)
	}
	s.files()
	s.processes()
	require.NoError(t, s.EndWorkspace(ctx, "w"))
	s.totals()
	s.proves()
}

// notJSON sends what is no JSON, is not said to be any, or is too large.
func (s *server) notJSON(method, path string) {
	status, _ := s.ask(method, path, "{")
	require.Equal(s.t, http.StatusBadRequest, status, path)
	status, _ = s.ask(method, path, "{}", "Content-Type", "text/plain")
	require.Equal(s.t, http.StatusUnsupportedMediaType, status, path)
	s.large(method, path)
}

// files asks for files in each way that the document has.
func (s *server) files() {
	t := s.t
	const at = inWorkspace + "/files"
	long := strings.Repeat("x", 300)
	form := func(name, content string) (string, string) {
		return "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" + name + "\"\r\n\r\n" + content + "\r\n--b--\r\n"
	}
	status, answer := s.ask("PUT", at+"?path=dir%2Fa&mode=600", "hello")
	require.Equal(t, 200, status, answer)
	for _, tc := range []struct {
		method, path, body string
		want               int
	}{
		{"GET", "?path=dir%2Fa", "", 200},
		{"GET", "", "", 400},
		{"GET", "?path=", "", 400},
		{"GET", "?path=a&path=b", "", 400},
		{"GET", "?path=%00", "", 400},
		{"GET", "?path=%FF", "", 400},
		{"GET", "?path=" + strings.Repeat("x", 4097), "", 400},
		{"GET", "?path=..%2Fa", "", 403},
		{"GET", "?path=none", "", 404},
		{"GET", "?path=dir", "", 409},
		{"GET", "?path=" + long, "", 422},
		{"GET", "?path=.", "", 422},
		{"PUT", "?path=b", "", 200},
		{"PUT", "", "x", 400},
		{"PUT", "?path=a&mode=4755", "x", 400},
		{"PUT", "?path=a&mode=rwx", "x", 400},
		{"PUT", "?path=a&mode=", "x", 400},
		{"PUT", "?path=%2Fa", "x", 403},
		{"PUT", "?path=dir", "x", 409},
		{"PUT", "?path=dir%2Fa%2Fb", "x", 409},
		{"PUT", "?path=c", strings.Repeat("x", 2<<20), 413},
		{"PUT", "?path=" + long, "x", 422},
		{"GET", "/list?depth=-1&most=10", "", 200},
		{"GET", "/list?depth=x", "", 400},
		{"GET", "/list?most=0", "", 400},
		{"GET", "/list?most=100001", "", 400},
		{"GET", "/list?path=..", "", 403},
		{"GET", "/list?path=none", "", 404},
		{"GET", "/list?path=dir%2Fa", "", 409},
		{"GET", "/list?path=" + long, "", 422},
		{"GET", "/stat", "", 200},
		{"GET", "/stat?path=", "", 400},
		{"GET", "/stat?path=..", "", 403},
		{"GET", "/stat?path=none", "", 404},
		{"GET", "/stat?path=dir%2Fa%2Fb", "", 409},
		{"GET", "/stat?path=" + long, "", 422},
		{"GET", "/watch?recursive=maybe", "", 400},
		{"GET", "/watch?after=x", "", 400},
		{"GET", "/watch?path=..", "", 403},
		{"GET", "/watch?path=none", "", 404},
		{"GET", "/watch?path=dir%2Fa", "", 409},
		{"GET", "/watch?path=" + long, "", 422},
		{"GET", "/watch?after=99999999999999999999", "", 422},
		{"POST", "/make", `{"path":"dir/sub","mode":"700"}`, 200},
		{"POST", "/make", `{"path":""}`, 400},
		{"POST", "/make", `{"path":"x","mode":"1777"}`, 400},
		{"POST", "/make", `{"path":"x","mode":""}`, 400},
		{"POST", "/make", `{"path":"../x"}`, 403},
		{"POST", "/make", `{"path":"dir/a"}`, 409},
		{"POST", "/make", `{"path":"` + long + `"}`, 422},
		{"POST", "/move", `{"from":"b","to":"dir/b"}`, 200},
		{"POST", "/move", `{"from":"","to":"b"}`, 400},
		{"POST", "/move", `{"from":"dir/b","to":"\u0000"}`, 400},
		{"POST", "/move", `{"from":"dir/b","to":"../b"}`, 403},
		{"POST", "/move", `{"from":"none","to":"b"}`, 404},
		{"POST", "/move", `{"from":"dir/b","to":"dir/a"}`, 409},
		{"POST", "/move", `{"from":"dir/b","to":"."}`, 422},
		{"DELETE", "", "", 400},
		{"DELETE", "?path=dir&all=1", "", 400},
		{"DELETE", "?path=..", "", 403},
		{"DELETE", "?path=none", "", 404},
		{"DELETE", "?path=dir", "", 409},
		{"DELETE", "?path=.", "", 422},
		{"DELETE", "?path=dir%2Fb", "", 204},
	} {
		status, answer := s.ask(tc.method, at+tc.path, tc.body)
		require.Equal(t, tc.want, status, "%s %.60s %s: %s", tc.method, tc.path, tc.body[:min(len(tc.body), 60)], answer)
	}
	for name, want := range map[string]int{"sub/new": 200, "../x": 403, "/etc/x": 403, `..\\x`: 403, "a": 409, "y\x00": 400, long: 422} {
		kind, body := form(name, "text")
		where := "?path=dir"
		if name == "a" {
			where = "?path=dir%2Fa"
		}
		status, answer := s.ask("POST", at+where, body, "Content-Type", kind)
		require.Equal(t, want, status, "%q: %s", name, answer)
	}
	kind, body := form("big", strings.Repeat("x", 2<<20))
	_, whole := form("cut", "text")
	cut, cutInside := strings.TrimSuffix(whole, "--b--\r\n")+"--b\r\n", strings.TrimSuffix(whole, "xt\r\n--b--\r\n")
	another := strings.Replace(whole, `name="file"`, `name="other"`, 1)
	for text, want := range map[string]int{body: 413, "--b": 400, "": 400, "--b--\r\n": 400, "--b\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nx\r\n--b--\r\n": 400, another: 400, cut: 400, cutInside: 400} {
		status, answer := s.ask("POST", at, text, "Content-Type", kind)
		require.Equal(t, want, status, "%.160q: %s", text, answer)
	}
	status, _ = s.ask("POST", at, "{}")
	require.Equal(t, http.StatusUnsupportedMediaType, status)

	info, err := s.StatFile(t.Context(), "w", "dir/a")
	require.NoError(t, err)
	for _, tc := range []struct {
		method, header, value string
		want                  int
		answer                string
	}{
		{"GET", "Range", "bytes=1-2", 206, "el"},
		{"GET", "Range", "bytes=0-0,2-2", 206, "--"},
		{"GET", "Range", "bytes=9-", 416, ""},
		{"GET", "If-None-Match", info.ETag, 304, ""},
		{"GET", "If-Match", `"other"`, 412, ""},
		{"GET", "If-Match", info.ETag, 200, "hello"},
		{"PUT", "If-Match", `"other"`, 412, `"code":"changed"`},
		{"PUT", "If-None-Match", "*", 409, `"code":"exists"`},
		{"PUT", "If-None-Match", info.ETag, 400, ""},
		{"PUT", "If-Match", `"other", ` + info.ETag, 200, `"size":6`},
		{"PUT", "If-Match", info.ETag, 412, ""},
		{"PUT", "If-Match", "*", 200, ""},
	} {
		body := ""
		if tc.method == "PUT" {
			body = "hello!"
		}
		status, answer := s.ask(tc.method, at+"?path=dir%2Fa", body, tc.header, tc.value)
		require.Equal(t, tc.want, status, "%s %s %s: %s", tc.method, tc.header, tc.value, answer)
		require.Contains(t, answer, tc.answer)
	}
	status, _ = s.ask("PUT", at+"?path=none", "x", "If-Match", "*")
	require.Equal(t, http.StatusPreconditionFailed, status)
	s.watches()
}

// watches sees a change, and then the end of what is watched.
func (s *server) watches() {
	ctx, t := s.t.Context(), s.t
	_, err := s.MakeFolder(ctx, "w", "seen")
	require.NoError(t, err)
	ready, done := make(chan struct{}), make(chan error, 1)
	var seen []client.FileChange
	go func() { // ends with the end of the directory
		for c, err := range s.WatchFiles(ctx, "w", "seen", false, func() { close(ready) }) {
			if err != nil {
				done <- err
				return
			}
			seen = append(seen, c)
		}
		done <- nil
	}()
	<-ready
	_, err = s.WriteFile(ctx, "w", "seen/new", strings.NewReader("x"), client.WriteFile{})
	require.NoError(t, err)
	require.NoError(t, s.RemoveFile(ctx, "w", "seen", true))
	require.NoError(t, <-done)
	made := false
	for i, c := range seen {
		require.Equal(t, uint64(i+1), c.Seq)
		made = made || c.Op == client.ChangeMade && c.Path == "seen/new"
	}
	require.True(t, made, "%v", seen)
	require.Equal(t, client.ChangeEnded, seen[len(seen)-1].Op)
	require.Contains(t, seen[len(seen)-1].Reason, "not there any more")

	// Whoever comes back hears first that some may be lost.
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+inWorkspace+"/files/watch?recursive=true", http.NoBody)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Last-Event-ID", "6")
	resp, err := s.http.Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	text := make([]byte, 0, 4096) // a sign of life may come before it
	for !strings.Contains(string(text), "\n\nid:") && !strings.HasPrefix(string(text), "id:") || !strings.HasSuffix(string(text), "\n\n") {
		n, err := resp.Body.Read(text[len(text):cap(text)])
		require.NoError(t, err)
		text = text[:len(text)+n]
	}
	require.Contains(t, string(text), `id: 7`)
	require.Contains(t, string(text), `"op":"lost"`)
}

// processes asks for processes in each way that the document has.
func (s *server) processes() {
	t, ctx := s.t, s.t.Context()
	const at = inWorkspace + "/processes"
	start := func(n client.NewProcess) string {
		t.Helper()
		p, err := s.StartProcess(ctx, "w", n)
		require.NoError(t, err)
		return p.ID
	}
	cat, over, still := start(client.NewProcess{Args: []string{"cat"}, Input: true}), start(client.NewProcess{Args: []string{"true"}}), start(client.NewProcess{Args: []string{"sleep", "600"}})
	screen := start(client.NewProcess{Args: []string{"sleep", "600"}, Terminal: &client.TerminalSize{}})
	_, err := s.WaitProcess(ctx, "w", over)
	require.NoError(t, err)
	for _, route := range []string{"/signal", "/resize"} {
		s.notJSON("POST", at+"/"+screen+route)
	}
	for _, tc := range []struct {
		method, path, body string
		want               int
	}{
		{"GET", "", "", 200},
		{"POST", "", `{"args":[]}`, 400},
		{"POST", "", `{"args":[""]}`, 400},
		{"POST", "", `{"args":["true"],"keep_bytes":0.5}`, 400},
		{"POST", "", `{"args":["true"],"timeout_seconds":-1}`, 400},
		{"POST", "", `{"args":["true"],"terminal":{"columns":1e6,"rows":1}}`, 400},
		{"POST", "", `{"args":["no-such-program"]}`, 422},
		{"POST", "", `{"args":["true"],"env":{"":""}}`, 422},
		{"POST", "", `{"args":["true"],"cwd":"none"}`, 422},
		{"GET", "/" + over, "", 200},
		{"GET", "/p99", "", 404},
		{"GET", "/" + still + "?wait=0.01", "", 200},
		{"GET", "/" + still + "?wait=61", "", 400},
		{"GET", "/" + over + "/events", "", 200},
		{"GET", "/" + over + "/events?after=1", "", 204},
		{"GET", "/" + over + "/events?after=x", "", 400},
		{"GET", "/p99/events", "", 404},
		{"GET", "/" + over + "/events?after=9", "", 422},
		{"POST", "/" + cat + "/input", "hello\n", 200},
		{"POST", "/" + cat + "/input", "", 200},
		{"POST", "/" + cat + "/input?wait=x", "hello", 400},
		{"POST", "/p99/input", "", 404},
		{"POST", "/" + still + "/input", "x", 409},
		{"POST", "/" + over + "/input", "x", 409},
		{"POST", "/" + cat + "/input", strings.Repeat("x", 1<<20+1), 413},
		{"POST", "/" + still + "/close", "", 409},
		{"POST", "/p99/close", "", 404},
		{"POST", "/" + cat + "/close", "", 204},
		{"POST", "/" + screen + "/signal", `{"signal":"WINCH"}`, 204},
		{"POST", "/" + screen + "/signal", `{"signal":"SIGWINCH"}`, 204},
		{"POST", "/" + screen + "/signal", `{"signal":"NONE"}`, 400},
		{"POST", "/" + over + "/signal", `{"signal":"INT"}`, 409},
		{"POST", "/" + screen + "/resize", `{"columns":100.0,"rows":40}`, 204},
		{"POST", "/" + screen + "/resize", `{"columns":-1,"rows":40}`, 400},
		{"POST", "/" + still + "/resize", `{"columns":1,"rows":1}`, 409},
		{"DELETE", "/" + screen + "?grace=x", "", 400},
		{"DELETE", "/" + screen + "?grace=0", "", 200},
		{"DELETE", "/" + screen, "", 200},
		{"DELETE", "/p99", "", 404},
	} {
		status, answer := s.ask(tc.method, at+tc.path, tc.body)
		require.Equal(t, tc.want, status, "%s %s %.60s: %s", tc.method, tc.path, tc.body, answer)
	}
	status := http.StatusCreated
	for range 70 {
		if status, _ = s.ask("POST", at, `{"args":["sleep","600"]}`); status != http.StatusCreated {
			break
		}
	}
	require.Equal(t, http.StatusServiceUnavailable, status)
}

// checkpoints keeps states and goes back to them, in each way that the document has.
func (s *server) checkpoints() {
	t, ctx := s.t, s.t.Context()
	key := messages.SessionKey{Session: "kept"}
	s.run("kept", "x = 1")
	c, err := s.Checkpoint(ctx, key)
	require.NoError(t, err)
	require.Equal(t, "kept", c.Session)
	require.Equal(t, s.cwd, c.Cwd)
	list, err := s.Checkpoints(ctx)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, c.ID, list[0].ID)
	for range 2 { // it stays
		s.run("kept", "x = 2")
		require.NoError(t, s.Rewind(ctx, key, c.ID))
		require.Equal(t, "1", s.run("kept", "x").Cells[0].Output)
	}
	require.NoError(t, s.Rewind(ctx, messages.SessionKey{Session: "other"}, c.ID), "another session of the directory")
	require.Equal(t, "1", s.run("other", "x").Cells[0].Output)
	require.NoError(t, s.CloseSession(ctx, messages.SessionKey{Session: "other"}))
	x, err := s.Start(ctx, client.Execute{Session: "kept", Cells: cells("import time; time.sleep(600)")})
	require.NoError(t, err)
	_, err = s.Checkpoint(ctx, key)
	require.Equal(t, http.StatusConflict, statusOf(t, err))
	require.Equal(t, http.StatusConflict, statusOf(t, s.Rewind(ctx, key, c.ID)))
	require.NoError(t, s.Cancel(ctx, x.ID))
	_, err = s.Wait(ctx, x.ID)
	require.NoError(t, err)
	require.Equal(t, http.StatusUnprocessableEntity, statusOf(t, s.Rewind(ctx, messages.SessionKey{Session: "kept", Cwd: t.TempDir()}, c.ID)))
	require.Equal(t, http.StatusUnprocessableEntity, statusOf(t, s.Rewind(ctx, messages.SessionKey{Session: strings.Repeat("x", 201)}, c.ID)))
	require.Equal(t, http.StatusNotFound, statusOf(t, s.Rewind(ctx, key, "none")))
	require.NoError(t, s.DropCheckpoint(ctx, c.ID))
	require.Equal(t, http.StatusNotFound, statusOf(t, s.DropCheckpoint(ctx, c.ID)))
	require.Equal(t, http.StatusNotFound, statusOf(t, s.Rewind(ctx, key, c.ID)))
	require.NoError(t, s.CloseSession(ctx, key))
}
