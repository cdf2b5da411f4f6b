package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
	"github.com/coppice-run/coppice/cmd/internal/toolapi"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/toolbox"
)

// tools asks the launcher in each way that the document has.
func (s *server) tools(box *toolbox.Box) {
	suggest := map[string]any{"key": "city", "label": "City", "type": "autocomplete", "endpoint": "cities", "required": false}
	do := map[string]any{"key": "do", "label": "Do", "type": "text", "default": "echo"}
	arg := map[string]any{"key": "arg", "label": "Argument", "type": "json", "required": false}
	box.Add(toolbox.Tool{ID: "s", Stream: true})
	box.Add(toolbox.Tool{ID: "a", Set: map[string]any{"inputs": []any{do, arg, suggest}}})
	box.Add(toolbox.Tool{ID: "files", Set: map[string]any{"provides_file_endpoint": true}})
	box.Add(toolbox.Tool{ID: "bad", Env: "START=raise", Set: map[string]any{"inputs": []any{do, suggest}}})
	box.Add(toolbox.Tool{ID: "broken", Set: map[string]any{"name": 3}})
	for _, tc := range []struct {
		method, path, body string
		want               int
	}{
		{"GET", "/api/launcher/state", "", 404}, // the server is not for developers
		{"GET", "/api/tools/a/logs", "", 404},
		{"POST", "/api/tools/a/run", `{"inputs":{"do":"write","arg":{"files":1,"bytes":4}},"run_id":"r1"}`, 200},
		{"POST", "/api/tools/a/run", "", 200},
		{"POST", "/api/tools/a/run", `{"input":{}}`, 400},
		{"POST", "/api/tools/a/run", `{} {}`, 400},
		{"POST", "/api/tools/a/run", `{"timeout_seconds":-1}`, 400},
		{"POST", "/api/tools/a/run", `{"inputs":{"do":"422"}}`, 422},
		{"POST", "/api/tools/a/run", `{"inputs":{"do":"raise"}}`, 502},
		{"POST", "/api/tools/a/run", `{"inputs":{"do":"sleep","arg":60},"timeout_seconds":0.1}`, 504},
		{"POST", "/api/tools/a/run", `{"inputs":{"do":"write","arg":{"files":9,"bytes":4,"then":60}}}`, 507},
		{"POST", "/api/tools/bad/run", `{}`, 502},
		{"POST", "/api/tools/broken/run", `{}`, 502},
		{"POST", "/api/tools/s/stream", `{"inputs":{"do":"stream","arg":3}}`, 200},
		{"POST", "/api/tools/a/cancel", "", 400},
		{"GET", "/api/tools/a/logs?limit=x", "", 400},
		{"GET", "/api/tools/a/logs?limit=2", "", 200},
		{"GET", "/api/tools/a/autocomplete/cities?q=Bo", "", 200},
		{"GET", "/api/tools/bad/autocomplete/cities?q=Bo", "", 502},
		{"GET", "/api/tools/a/files/r1/f0.bin", "", 200},
		{"GET", "/api/tools/a/files/r1/..%2f..%2ftool.json", "", 400},
		{"GET", "/api/tools/broken/validate", "", 200},
		{"POST", "/api/tools/broken/validate", "", 200},
		{"POST", "/api/tools/broken/prewarm", "", 502},
		{"POST", "/api/tools/a/prewarm", "", 202},
		{"POST", "/api/tools/a/pin", "", 204},
		{"POST", "/api/tools/a/unpin", "", 204},
		{"GET", "/api/healthz", "", 200},
		{"GET", "/api/tools", "", 200},
		{"POST", "/api/tools/a/stop", "", 200},
	} {
		status, answer := s.ask(tc.method, tc.path, tc.body)
		require.Equal(s.t, tc.want, status, "%s %s %s: %s", tc.method, tc.path, tc.body, answer)
	}
	status, _ := s.ask("GET", "/api/tools/a/files/r1/f0.bin", "", "Range", "bytes=1-2")
	require.Equal(s.t, http.StatusPartialContent, status)
	status, _ = s.ask("GET", "/api/tools/a/files/r1/f0.bin", "", "Range", "bytes=9-")
	require.Equal(s.t, http.StatusRequestedRangeNotSatisfiable, status)

	var run sync.WaitGroup
	done := make(chan int, 1)
	run.Go(func() { // ends with the run, which is cancelled below
		status, _ := s.ask("POST", "/api/tools/a/run", `{"inputs":{"do":"sleep","arg":600},"run_id":"long"}`)
		done <- status
	})
	require.Eventually(s.t, func() bool {
		s.ask("POST", "/api/tools/a/cancel?run_id=long", "")
		return len(done) > 0
	}, time.Minute, 20*time.Millisecond)
	run.Wait()
	require.Equal(s.t, http.StatusConflict, <-done)
}

// ending asks a server whose host has ended.
func (s *server) ending(box *toolbox.Box) {
	t, ctx := s.t, s.t.Context()
	tools := &launcher.Options{Dir: box.Dir}
	over := serveAs(t, s.spec, coppice.Options{Launcher: tools}, httpapi.Options{}, toolapi.Options{Developer: true})
	status, _ := over.ask("GET", "/api/launcher/state", "")
	require.Equal(t, http.StatusOK, status)
	end, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	require.NoError(t, over.api.Close())
	require.True(t, over.host.Shutdown(end).Clean())
	bodies := map[string]string{
		"POST /api/executions": `{"session":"a","cells":[{"code":"1"}]}`, "POST /api/sessions": `{"session":"a"}`, "POST /api/sessions/{session}/fork": `{"copies":1}`,
		"POST /api/workspaces": `{"name":"late"}`, "POST /api/sessions/{session}/save": `{"name":"late"}`,
		"POST /api/notebooks/run": fmt.Sprintf(`{"path":%q,"session":"a"}`, s.cwd+"/a.ipynb"),
	}
	for path, methods := range s.spec.Paths {
		for method, operation := range methods {
			if a, told := operation.Responses["503"]; !told || a.Fleet || strings.HasPrefix(path, "/api/workspaces/") { // these are gone
				continue
			}
			method = strings.ToUpper(method)
			at := strings.NewReplacer("/api/tools/{id}/autocomplete/{endpoint}", "/api/tools/a/autocomplete/cities", "/api/tools/{id}/files", "/api/tools/files/files",
				"/api/tools/{id}/cancel", "/api/tools/a/cancel?run_id=r", "/api/tools/{id}", "/api/tools/a").Replace(path)
			status, answer := over.ask(method, filled(at), bodies[method+" "+path])
			require.Equal(t, http.StatusServiceUnavailable, status, "%s %s: %s", method, path, answer)
		}
	}
	require.Equal(t, messages.OutcomeOK, s.run("after", "1").Outcome) // of the other one
}
