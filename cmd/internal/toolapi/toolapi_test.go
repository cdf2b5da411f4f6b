//go:build linux

package toolapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/cmd/internal/toolapi"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/toolbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is one that serves a box of tools.
type server struct {
	t        *testing.T
	record   client.Record
	client   *client.Client
	launcher *launcher.Launcher
	home     string
	http     *http.Client
}

func serve(t *testing.T, o toolapi.Options, tools ...toolbox.Tool) *server {
	t.Helper()
	box := toolbox.New(t)
	for _, tool := range tools {
		box.Add(tool)
	}
	home := t.TempDir()
	l, err := launcher.Start(t.Context(), launcher.Options{Dir: box.Dir, Home: home})
	require.NoError(t, err)
	o.Tools = l
	s, err := httpserver.Listen(t.Context(), httpserver.Options{Addr: "127.0.0.1:0"}, toolapi.Mounts(o)...)
	require.NoError(t, err)
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	out := &server{t: t, record: client.Record{URL: s.URL(), Token: s.Token()}, launcher: l, home: home, http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	out.client, err = client.New(client.Options{URL: s.URL(), Token: s.Token(), Patience: -1})
	require.NoError(t, err)
	t.Cleanup(func() {
		out.client.Close()
		end()
		require.NoError(t, <-ended)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.True(t, l.Shutdown(ctx).Clean())
	})
	return out
}

// ask makes one request with the token.
func (s *server) ask(method, path, body string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.record.URL+path, bytes.NewReader([]byte(body)))
	require.NoError(s.t, err)
	req.Header.Set("Authorization", "Bearer "+s.record.Token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := s.http.Do(req)
	require.NoError(s.t, err)
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return resp.StatusCode, string(data)
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	s := serve(t, toolapi.Options{Developer: true}, toolbox.Tool{ID: "a", Set: map[string]any{"category": "x/y"}}, toolbox.Tool{ID: "broken", Set: map[string]any{"name": 3}},
		toolbox.Tool{ID: "bad", Env: "START=raise"}, toolbox.Tool{ID: "short", Set: map[string]any{"max_runtime_seconds": 1}})
	status, body := s.ask("GET", "/api/healthz", "")
	require.Equal(t, 200, status)
	require.Contains(t, body, `"ok":true`)
	require.Contains(t, body, `"warm_tools":[]`)
	for _, tc := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/api/tools/a/logs", "", 404, "had no process"},
		{"POST", "/api/tools/a/run", `{"inputs":{"do":"echo","arg":5},"run_id":"r1"}`, 200, `"run":"r1","tool":"a","outcome":"ok","outputs":{"result":{"echo":5}}`},
		{"POST", "/api/tools/a/run", ``, 200, `"outcome":"ok"`},
		{"POST", "/api/tools/a/run", `{"inputs":[]}`, 400, "inputs is no object"},
		{"POST", "/api/tools/a/run", `{"run_id":""}`, 400, "run_id is"},
		{"POST", "/api/tools/a/stream", `{"run_id":"a b"}`, 400, "must be of letters"},
		{"POST", "/api/tools/a/run", `{"input":{}}`, 400, `unknown field`},
		{"POST", "/api/tools/a/run", `{"timeout_seconds":-1}`, 400, "timeout_seconds must be from 0 to 86400"},
		{"POST", "/api/tools/a/run", `{"inputs":{"do":"422"}}`, 422, "n: not a number"},
		{"POST", "/api/tools/a/run", `{"inputs":{"nope":1}}`, 422, `the tool a has no input \"nope\"; it has do, arg`},
		{"POST", "/api/tools/a/run", `{"inputs":{"do":"raise"}}`, 502, "it broke"},
		{"POST", "/api/tools/short/run", `{"inputs":{"do":"sleep","arg":60}}`, 504, "ResourceLimitExceeded: runtime"},
		{"POST", "/api/tools/bad/run", `{}`, 502, "no good start"},
		{"POST", "/api/tools/none/run", `{}`, 404, "no such tool"},
		{"POST", "/api/tools/broken/run", `{}`, 502, "expected a string that is not empty, found a number"},
		{"POST", "/api/tools/..%2fa/run", `{}`, 400, "the path goes up"},
		{"POST", "/api/tools/a/pin", "", 204, ""},
		{"POST", "/api/tools/none/pin", "", 404, "no such tool"},
		{"POST", "/api/tools/a/prewarm", "", 202, `"queued":true`},
		{"POST", "/api/tools/a/cancel", "", 400, "run_id is missing"},
		{"POST", "/api/tools/a/cancel?run_id=x", "", 202, "cancelling"},
		{"GET", "/api/tools/a/logs?limit=x", "", 400, "limit must be a number from 1"},
		{"GET", "/api/tools/a/logs?limit=2", "", 200, `{"lines":["    raise RuntimeError(\"it broke\")","RuntimeError: it broke"],"live":true}`},
		{"GET", "/api/tools/broken/validate", "", 200, `"overall":"fail"`},
		{"GET", "/api/launcher/state", "", 200, `"cap":5`},
		{"POST", "/api/tools/a/stop", "", 200, `"status":"stopped","tool_id":"a","was_running":true`},
		{"POST", "/api/tools/a/stop", "", 200, `"was_running":false`},
		{"POST", "/api/tools/none/stop", "", 200, `"was_running":false`},
		{"POST", "/api/tools/a/unpin", "", 204, ""},
		{"GET", "/api/none", "", 404, ""},
	} {
		status, body := s.ask(tc.method, tc.path, tc.body)
		require.Equal(t, tc.status, status, "%s %s: %s", tc.method, tc.path, body)
		require.Contains(t, body, tc.want, "%s %s", tc.method, tc.path)
	}
	list, err := s.client.Tools(t.Context())
	require.NoError(t, err)
	for i := range list {
		list[i].Problem = strings.SplitN(list[i].Problem, ":", 2)[0]
	}
	require.Equal(t, client.Tool{ID: "a", Name: "a", Category: "x/y", Status: "dormant", Validation: "unchecked"}, list[0])
	require.Equal(t, "failed", list[1].Status)
	require.Equal(t, "failed", list[2].Status)
	require.Equal(t, "fail", list[2].Validation)
}

// TestFilesAndSuggestions are passed on; a file is never shown as a page.
func TestFilesAndSuggestions(t *testing.T) {
	t.Parallel()
	s := serve(t, toolapi.Options{}, toolbox.Tool{ID: "a", Set: map[string]any{"inputs": []any{
		map[string]any{"key": "city", "label": "City", "type": "autocomplete", "endpoint": "cities", "required": false},
		map[string]any{"key": "do", "label": "Do", "type": "text", "required": false},
		map[string]any{"key": "arg", "label": "Argument", "type": "json", "required": false},
	}}})
	status, body := s.ask("GET", "/api/tools/a/autocomplete/cities?q=Bo", "")
	require.Equal(t, 200, status)
	require.JSONEq(t, `["Bonn"]`, body)
	status, body = s.ask("GET", "/api/tools/a/autocomplete/towns", "")
	require.Equal(t, 404, status)
	require.Contains(t, body, "its tool.json has cities")
	status, _ = s.ask("POST", "/api/tools/a/run", `{"run_id":"r1","inputs":{"do":"write","arg":{"files":1,"bytes":4}}}`)
	require.Equal(t, 200, status)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.record.URL+"/api/tools/a/files/r1/f0.bin", http.NoBody)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+s.record.Token)
	req.Header.Set("Range", "bytes=1-2")
	resp, err := s.http.Do(req)
	require.NoError(t, err)
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, errors.Join(err, resp.Body.Close()))
	require.Equal(t, 206, resp.StatusCode)
	require.Equal(t, "xx", string(data))
	require.Equal(t, "attachment; filename=f0.bin", resp.Header.Get("Content-Disposition"))
	require.Equal(t, "sandbox", resp.Header.Get("Content-Security-Policy"))
	for name, want := range map[string]int{"f1.bin": 404, "%2e%2e%2fr1%2ff0.bin": 400, "%2Fetc%2Fpasswd": 404} {
		status, body = s.ask("GET", "/api/tools/a/files/r1/"+name, "")
		require.Equal(t, want, status, "%s %s", name, body)
	}
}

func TestTheStateIsForDevelopers(t *testing.T) {
	t.Parallel()
	s := serve(t, toolapi.Options{})
	status, body := s.ask("GET", "/api/launcher/state", "")
	require.Equal(t, 404, status)
	require.Contains(t, body, "developer mode only")
	_, err := s.client.ToolsState(t.Context())
	require.ErrorContains(t, err, "developer mode only")
}

func TestAStream(t *testing.T) {
	t.Parallel()
	s := serve(t, toolapi.Options{}, toolbox.Tool{ID: "a", Stream: true})
	var events []messages.ToolEvent
	r, err := s.client.RunTool(t.Context(), "a", client.RunTool{Inputs: toolbox.Inputs("stream", 5)}, func(e messages.ToolEvent) error {
		events = append(events, e)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeOK, r.Outcome, "%+v", r.Error)
	require.Len(t, events, 5)
	require.JSONEq(t, `{"result":"0 1 2 3 4 "}`, string(r.Outputs))
	r, err = s.client.RunTool(t.Context(), "none", client.RunTool{}, nil)
	require.NoError(t, err)
	require.Equal(t, messages.ToolErrorNotFound, r.Error.Kind)
}

// TestAClientThatLeaves cancels its run.
func TestAClientThatLeaves(t *testing.T) {
	t.Parallel()
	s := serve(t, toolapi.Options{}, toolbox.Tool{ID: "a", Stream: true})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.client.RunTool(ctx, "a", client.RunTool{Inputs: toolbox.Inputs("stream_slow")}, func(messages.ToolEvent) error {
		cancel()
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Eventually(t, func() bool {
		st, err := s.launcher.State(t.Context())
		return err == nil && st.Tools[0].InFlight == 0 && st.Tools[0].Runs == 1
	}, time.Minute, 10*time.Millisecond)
}

// TestTwoClientsOfATool share its process and nothing of their runs: each gets the answer
// to its own inputs, and its own events, at the same time.
func TestTwoClientsOfATool(t *testing.T) {
	t.Parallel()
	s := serve(t, toolapi.Options{}, toolbox.Tool{ID: "a"}, toolbox.Tool{ID: "b", Stream: true})
	other, err := client.New(client.Options{URL: s.record.URL, Token: s.record.Token, Patience: -1})
	require.NoError(t, err)
	t.Cleanup(other.Close)
	ask := func(c *client.Client, mine string, parts int) error {
		r, err := c.RunTool(t.Context(), "a", client.RunTool{Run: mine, Inputs: toolbox.Inputs("echo", mine)}, nil)
		if err != nil || r.Run != mine || string(r.Outputs) != fmt.Sprintf(`{"result":{"echo":%q}}`, mine) {
			return errors.Join(fmt.Errorf("%s: the run %s: %s", mine, r.Run, r.Outputs), err)
		}
		events := 0
		r, err = c.RunTool(t.Context(), "b", client.RunTool{Run: mine, Inputs: toolbox.Inputs("stream", parts)}, func(messages.ToolEvent) error {
			events++
			return nil
		})
		if err != nil || r.Run != mine || events != parts {
			return errors.Join(fmt.Errorf("%s: the stream %s has %d events", mine, r.Run, events), err)
		}
		return nil
	}
	const rounds = 5
	done := make(chan error, 2*rounds)
	for name, c := range map[string]*client.Client{"one": s.client, "two": other} {
		go func() { // ends with its runs, which are counted below
			for i := range rounds {
				done <- ask(c, fmt.Sprintf("%s-%d", name, i), i+1)
			}
		}()
	}
	for range 2 * rounds {
		require.NoError(t, <-done)
	}
}
