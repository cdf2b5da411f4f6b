package httpapi_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
	"github.com/coppice-run/coppice/cmd/internal/toolapi"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/toolbox"
)

// TestTheDocumentIsTrue makes each request that the OpenAPI document has, with
// each of its answers; the transport holds all of them against it.
func TestTheDocumentIsTrue(t *testing.T) {
	t.Parallel()
	box := toolbox.New(t)
	tools := &launcher.Options{Dir: box.Dir, ArtifactFiles: 2}
	s := serveAs(t, load(t), coppice.Options{MaxSessions: 2, MaxWaiting: -1, IdleTTL: -1, Launcher: tools}, httpapi.Options{MaxRunning: 2, LockWait: 50 * time.Millisecond}, toolapi.Options{})
	s.refusals()
	s.lives()
	s.executions()
	s.books()
	s.looksBack()
	s.checkpoints()
	s.workspaces()
	s.hibernation()
	s.slow()
	s.full()
	s.tools(box)
	s.ending(box)

	missing := s.spec.missing()
	slices.Sort(missing)
	require.Empty(t, missing)

	var routes []string
	for _, m := range s.mounts {
		routes = append(routes, strings.NewReplacer("/{$}", "/", "...}", "}").Replace(m.Pattern))
	}
	var told []string
	for path, methods := range s.spec.Paths {
		for method, operation := range methods {
			told = append(told, strings.ToUpper(method)+" "+path)
			_, closed := operation.Responses["401"]
			public := operation.Security != nil && len(*operation.Security) == 0
			require.Equal(t, closed, !public, "%s: it says whether it needs the token", path)
		}
	}
	require.ElementsMatch(t, told, routes)
}

// paths are requests for each operation, with things that are not there.
func (s *spec) requests() []string {
	var list []string
	for path, methods := range s.Paths {
		for method := range methods {
			list = append(list, strings.ToUpper(method)+" "+filled(path))
		}
	}
	return list
}

// filled is a path of the document with names of things that are not there.
func filled(path string) string {
	return strings.NewReplacer("{session}", "none", "{id}", "7", "{run}", "r", "{name}", "n", "{endpoint}", "e", "{file}", "main.js", "{workspace}", "none", "{process}", "p0").Replace(path)
}

// refusals asks for everything in the ways that are refused everywhere.
func (s *server) refusals() {
	s.unknown()
	for _, request := range s.spec.requests() {
		method, path, _ := strings.Cut(request, " ")
		status, _ := s.ask(method, path, "", "Authorization", "")
		if strings.HasPrefix(path, "/api") && path != "/api/health" || path == "/metrics" {
			require.Equal(s.t, 401, status, request)
		} else {
			require.Equal(s.t, 200, status, request)
		}
		if strings.HasPrefix(path, "/api/sessions/") {
			status, _ = s.ask(method, path, "", "Coppice-Epoch", "none")
			require.Equal(s.t, 400, status, request)
		}
		if strings.HasPrefix(path, "/api") {
			status, _ = s.ask(method, path, "", "Authorization", "Bearer wrong")
			require.Equal(s.t, 401, status, request)
		}
		status, _ = s.ask(method, path, "", "Origin", "http://example.org")
		require.Equal(s.t, 403, status, request)
		if path != "/api/changes" { // which would go on for ever
			s.ask(method, path, "") // what is not there
		}
		if method != http.MethodPost {
			continue
		}
		s.ask(method, path, "{") // the transport knows which of these the path has
		s.ask(method, path, "{}", "Content-Type", "text/plain")
		if answers := s.spec.Paths[s.spec.find(path)]["post"].Responses; answers["413"].Content != nil && !strings.Contains(path, "/executions/") && !strings.Contains(path, "/workspaces/") {
			s.large(method, path)
		}
	}
}

// large asks with a body that is larger than any may be. It is not sent, as the
// server says no first; TestRefused sends one.
func (s *server) large(method, path string) {
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader("never sent"))
	require.NoError(s.t, err)
	req.ContentLength = 65 << 20
	for name, value := range map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json", "Expect": "100-continue"} {
		req.Header.Set(name, value)
	}
	resp, err := s.http.Do(req)
	require.NoError(s.t, err)
	require.NoError(s.t, resp.Body.Close())
	require.Equal(s.t, http.StatusRequestEntityTooLarge, resp.StatusCode, path)
}

func (s *server) lives() {
	t, ctx := s.t, s.t.Context()
	s.ask("GET", "/api/openapi.json", "")
	h, err := s.Health(ctx)
	require.NoError(t, err)
	require.Equal(t, "ok", h.Status)
	require.Equal(t, os.Getpid(), h.PID)
	node, err := s.Tree(ctx)
	require.NoError(t, err)
	require.Equal(t, "supervisor", node.Name)

	key := messages.SessionKey{Session: "a b/c@%"}
	one, err := s.Open(ctx, client.Open{Session: key.Session, Pin: true})
	require.NoError(t, err)
	require.Equal(t, s.cwd, one.Cwd)
	require.True(t, one.Pinned)
	require.Positive(t, one.PID)
	_, err = s.Open(ctx, client.Open{Session: key.Session})
	require.NoError(t, err)
	list, err := s.Sessions(ctx)
	require.NoError(t, err)
	require.Len(t, list, 1)
	one, err = s.Session(ctx, key)
	require.NoError(t, err)
	require.Equal(t, key.Session, one.Session)
	require.NoError(t, s.Pin(ctx, key, false))
	require.NoError(t, s.Pin(ctx, key, true))
	require.NoError(t, s.Interrupt(ctx, key))
	require.Equal(t, messages.OutcomeOK, s.run(key.Session, "x = 40").Outcome)
	made, err := s.Fork(ctx, key, 1, "")
	require.NoError(t, err)
	require.Equal(t, "42", s.run(made[0].Session, "x + 2").Cells[0].Output)
	// Both are pinned: no place for a third, neither for a copy.
	require.NoError(t, s.Pin(ctx, made[0], true))
	_, err = s.Fork(ctx, key, 1, "")
	require.Equal(t, http.StatusServiceUnavailable, statusOf(t, err), "%v", err)
	require.NoError(t, s.Pin(ctx, made[0], false))
	require.NoError(t, s.CloseSession(ctx, made[0]))
	status, body := s.ask("POST", "/api/sessions/"+url.PathEscape(key.Session)+"/fork", `{"names": ["`+key.Session+`"]}`)
	require.Equal(t, http.StatusUnprocessableEntity, status, body)
	_, err = s.Fork(ctx, messages.SessionKey{Session: "none"}, 1, "")
	require.Equal(t, http.StatusNotFound, statusOf(t, err))
	_, err = s.Fork(ctx, key, 2, "")
	require.Equal(t, http.StatusConflict, statusOf(t, err))
	require.NoError(t, s.Reset(ctx, key))
	require.Equal(t, messages.OutcomeError, s.run(key.Session, "x").Outcome)
	require.NoError(t, s.CloseSession(ctx, key))
	require.Eventually(t, func() bool { // its kernel ends first
		_, err = s.Session(ctx, key)
		return err != nil
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, http.StatusNotFound, statusOf(t, err))
	for name, want := range map[string]int{
		".": 422, "..": 422, "a/../b": 422, strings.Repeat("é", 101): 422, "\x01": 400, "a\\b": 400, strings.Repeat("x", 201): 400,
	} {
		_, err = s.Open(ctx, client.Open{Session: name})
		require.Equal(t, want, statusOf(t, err), "%q", name)
	}
	_, err = s.Open(ctx, client.Open{Session: "a", Cwd: "/none"})
	require.Equal(t, http.StatusUnprocessableEntity, statusOf(t, err))
	status, body = s.ask("GET", "/metrics", "")
	require.Equal(t, 200, status)
	require.Contains(t, body, "coppice_")
	s.looks(key)
	status, _ = s.ask("PUT", "/api/sessions", "{}")
	require.Equal(t, http.StatusMethodNotAllowed, status)
	status, _ = s.ask("GET", "/none", "")
	require.Equal(t, http.StatusNotFound, status)
}

// statusOf is the status of an answer that says no.
func statusOf(t *testing.T, err error) int {
	t.Helper()
	var told *client.Error
	require.ErrorAs(t, err, &told)
	return told.Status
}

func (s *server) executions() {
	t, ctx := s.t, s.t.Context()
	for after, want := range map[string]int{"99999": 422, strings.Repeat("9", 30): 422, "x": 400} {
		status, _ := s.ask("GET", "/api/changes?after="+after, "")
		require.Equal(t, want, status, after)
	}
	_, err := s.Start(ctx, client.Execute{Session: "e", Cwd: "/none", Cells: cells("1")})
	require.Equal(t, http.StatusUnprocessableEntity, statusOf(t, err))
	x, err := s.Start(ctx, client.Execute{ID: "mine", Session: "e", Cells: cells("print('é')", "name = input('who? ')", "print(name)"), AllowStdin: true})
	require.NoError(t, err)
	var types []string
	for e, err := range s.Events(ctx, x.ID, 0) {
		require.NoError(t, err)
		types = append(types, e.Type())
		if q, ok := e.(messages.InputRequest); ok {
			require.Eventually(t, func() bool { // it is told where to answer, once the server has looked
				o, err := s.Overview(ctx, 0)
				return err == nil && slices.ContainsFunc(o.Marks, func(m client.Mark) bool {
					return m.Key.Session == "e" && m.Question != nil && m.Question.Execution == x.ID && m.Question.ID == q.ID
				})
			}, time.Minute, 50*time.Millisecond)
			_, err := s.Answer(ctx, x.ID, q.ID, "two\nlines")
			require.Equal(t, http.StatusUnprocessableEntity, statusOf(t, err))
			require.ErrorContains(t, err, "more than one line")
			got, err := s.Answer(ctx, x.ID, q.ID, "Ada")
			require.NoError(t, err)
			require.Equal(t, messages.InputAccepted, got)
			_, err = s.Answer(ctx, x.ID, q.ID, strings.Repeat("x", 2<<20))
			require.Equal(t, http.StatusUnprocessableEntity, statusOf(t, err))
			status, _ := s.ask("POST", "/api/executions/mine/input", `{"value":"Ada"}`)
			require.Equal(t, http.StatusBadRequest, status)
		}
	}
	require.Contains(t, types, "stdout")
	require.Equal(t, "final", types[len(types)-1])
	x, err = s.Execution(ctx, "mine")
	require.NoError(t, err)
	require.Equal(t, "Ada", x.Result.Cells[2].Output)
	require.Equal(t, client.Ended, x.State)

	again := client.Execute{ID: "mine", Session: "e", Cells: cells("print('é')", "name = input('who? ')", "print(name)"), AllowStdin: true}
	x, err = s.Start(ctx, again) // it is not run a second time
	require.NoError(t, err)
	require.Equal(t, client.Ended, x.State)
	again.Reset = true
	_, err = s.Start(ctx, again)
	require.Equal(t, http.StatusConflict, statusOf(t, err))
	status, _ := s.ask("GET", fmt.Sprintf("/api/executions/mine/events?after=%d", x.Events), "")
	require.Equal(t, http.StatusNoContent, status)
	status, _ = s.ask("GET", fmt.Sprintf("/api/executions/mine/events?after=%d", x.Events+1), "")
	require.Equal(t, http.StatusUnprocessableEntity, status)
	status, _ = s.ask("GET", "/api/executions/mine/events?after=x", "")
	require.Equal(t, http.StatusBadRequest, status)
	status, _ = s.ask("GET", "/api/executions/mine/events", "", "Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "MDEyMzQ1Njc4OWFiY2RlZg==")
	require.Equal(t, http.StatusSwitchingProtocols, status)
	status, _ = s.ask("POST", "/api/executions/mine/input", "{}", "Content-Type", "text/plain")
	require.Equal(t, http.StatusUnsupportedMediaType, status)
	s.large("POST", "/api/executions/mine/input")
	status, _ = s.ask("GET", "/api/executions/mine?wait=61", "")
	require.Equal(t, http.StatusBadRequest, status)

	list, err := s.Executions(ctx, messages.SessionKey{Session: "e"})
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "print('é')", list[0].Title)

	var changes []string
	for c, err := range s.Changes(ctx, 1) { // the first that there was is the gateway's
		require.NoError(t, err)
		changes = append(changes, c.Type)
		if c.Execution != nil && c.Execution.ID == "mine" && c.Execution.State == client.Ended {
			break
		}
	}
	require.Contains(t, changes, "tree")
}

func (s *server) books() {
	t, ctx := s.t, s.t.Context()
	r := s.run("e", "for i in range(20000): print('line', i)")
	require.NotNil(t, r.Artifact)
	list, err := s.Artifacts(ctx)
	require.NoError(t, err)
	require.NotEmpty(t, list)
	id := list[0].ID
	status, text := s.ask("GET", fmt.Sprintf("/api/artifacts/%d", id), "")
	require.Equal(t, 200, status)
	require.True(t, strings.HasPrefix(text, "line 0\nline 1\n"))
	status, text = s.ask("GET", fmt.Sprintf("/api/artifacts/%d", id), "", "Range", "bytes=7-12")
	require.Equal(t, 206, status)
	require.Equal(t, "line 1", text)
	status, _ = s.ask("GET", fmt.Sprintf("/api/artifacts/%d", id), "", "Range", "bytes=99999999-")
	require.Equal(t, 416, status)
	status, text = s.ask("GET", fmt.Sprintf("/api/artifacts/%d?first=2&last=2", id), "")
	require.Equal(t, 200, status)
	require.Contains(t, text, `"text":"line 1\n"`)
	for path, want := range map[string]int{
		fmt.Sprintf("%d?first=0", id): 400, fmt.Sprintf("%d?first=2&last=1", id): 422, fmt.Sprintf("%d?first=1%030d", id, 0): 200,
		"4711": 404, strings.Repeat("9", 30): 404, "007": 400,
	} {
		status, text = s.ask("GET", "/api/artifacts/"+path, "")
		require.Equal(t, want, status, "%s: %s", path, text)
	}

	path := filepath.Join(s.cwd, "a.ipynb")
	applied, err := s.ApplyNotebook(ctx, client.Apply{Path: "a.ipynb", Text: "# %% [code]\nx = 1\n# %% [code]\nprint(x + 1)\n"})
	require.NoError(t, err)
	require.True(t, applied.Written)
	require.Equal(t, 2, applied.New)
	_, err = s.ApplyNotebook(ctx, client.Apply{Path: path, Text: "no marker"})
	require.Equal(t, http.StatusUnprocessableEntity, statusOf(t, err))
	_, err = s.ApplyNotebook(ctx, client.Apply{Path: path})
	require.Equal(t, http.StatusUnprocessableEntity, statusOf(t, err))
	_, err = s.ApplyNotebook(ctx, client.Apply{Path: "a.txt", Text: "x"})
	require.Equal(t, http.StatusBadRequest, statusOf(t, err))
	_, err = s.ShowNotebook(ctx, client.Show{Path: path, Lines: "x"})
	require.Equal(t, http.StatusUnprocessableEntity, statusOf(t, err))
	_, err = s.RunNotebook(ctx, client.RunNotebook{Path: path, Session: "e", Cells: "x"})
	require.Equal(t, http.StatusUnprocessableEntity, statusOf(t, err))
	shown, err := s.ShowNotebook(ctx, client.Show{Path: path})
	require.NoError(t, err)
	require.Contains(t, shown.Text, "print(x + 1)")
	_, err = s.ShowNotebook(ctx, client.Show{Path: "/etc/passwd"})
	require.Equal(t, http.StatusBadRequest, statusOf(t, err))
	_, err = s.ShowNotebook(ctx, client.Show{Path: "none.ipynb"})
	require.Equal(t, http.StatusNotFound, statusOf(t, err))
	_, err = s.RunNotebook(ctx, client.RunNotebook{Path: "none.ipynb", Session: "a"})
	require.Equal(t, http.StatusNotFound, statusOf(t, err))
	require.NoError(t, os.WriteFile(filepath.Join(s.cwd, "bad.ipynb"), []byte("{"), 0o600))
	_, err = s.ShowNotebook(ctx, client.Show{Path: "bad.ipynb"})
	require.Equal(t, http.StatusUnprocessableEntity, statusOf(t, err))
	_, err = s.RunNotebook(ctx, client.RunNotebook{Path: "bad.ipynb", Session: "a"})
	require.Equal(t, http.StatusUnprocessableEntity, statusOf(t, err))

	lock := flock.New(filepath.Join(s.cwd, ".a.ipynb.lock")) // as another program has it that saves
	require.NoError(t, lock.Lock())
	_, err = s.ApplyNotebook(ctx, client.Apply{Path: path, Text: "# %% [code]\nx = 2\n"})
	require.Equal(t, http.StatusConflict, statusOf(t, err))
	require.NoError(t, lock.Unlock())

	run := client.RunNotebook{ID: "book", Path: path, Session: "e", Save: true}
	x, err := s.RunNotebook(ctx, run)
	require.NoError(t, err)
	require.Equal(t, client.KindNotebook, x.Kind)
	var out strings.Builder
	for e, err := range s.Events(ctx, x.ID, 0) {
		require.NoError(t, err)
		if text, ok := e.(messages.Stream); ok {
			require.Equal(t, 1, text.Cell)
			out.WriteString(text.Text)
		}
	}
	require.Equal(t, "2\n", out.String())
	x, err = s.RunNotebook(ctx, run)
	require.NoError(t, err)
	require.Contains(t, string(x.Notebook), `"outcome":"ok"`)
	run.Save = false
	_, err = s.RunNotebook(ctx, run)
	require.Equal(t, http.StatusConflict, statusOf(t, err))
	saved, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(saved), `"2\n"`)
}

// full fills the server, so that it refuses.
func (s *server) full() {
	t, ctx := s.t, s.t.Context()
	for _, id := range []string{"long-1", "long-2"} {
		_, err := s.Start(ctx, client.Execute{ID: id, Session: id, Cells: cells("import time; print('here', flush=True); time.sleep(600)")})
		require.NoError(t, err)
		s.prints(id)
	}
	_, err := s.Open(ctx, client.Open{Session: "third"})
	require.Equal(t, http.StatusServiceUnavailable, statusOf(t, err), "%v", err)
	_, err = s.Start(ctx, client.Execute{Session: "a", Cells: cells("1")})
	require.Equal(t, http.StatusServiceUnavailable, statusOf(t, err))
	_, err = s.RunNotebook(ctx, client.RunNotebook{Path: "a.ipynb", Session: "a"})
	require.Equal(t, http.StatusServiceUnavailable, statusOf(t, err))
	for _, id := range []string{"long-1", "long-2"} {
		require.NoError(t, s.Cancel(ctx, id))
		x, err := s.Wait(ctx, id)
		require.NoError(t, err)
		require.Equal(t, messages.OutcomeCancelled, x.Outcome)
		require.Equal(t, messages.StateFresh, x.Result.State)
	}
}
