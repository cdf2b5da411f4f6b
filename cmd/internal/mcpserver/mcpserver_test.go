package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/mcpserver"
	"github.com/coppice-run/coppice/test/testpython"
)

// patience is for what must come, and is looked for each tick.
const (
	patience = 3 * time.Minute
	tick     = 10 * time.Millisecond
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func options(t *testing.T) mcpserver.Options {
	t.Helper()
	return optionsOf(t, coppice.Options{})
}

func optionsOf(t *testing.T, ho coppice.Options) mcpserver.Options {
	t.Helper()
	ho.Home, ho.Backend, ho.Python, ho.Bash, ho.Env = t.TempDir(), coppice.Runner(coppice.RunnerOptions{}), testpython.Path(t), true, os.Environ()
	host, err := coppice.Start(t.Context(), ho)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.True(t, host.Shutdown(ctx).Clean())
	})
	return mcpserver.Options{Host: host, Version: "test", Cwd: t.TempDir(), KeepAlive: 200 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
}

// serverOf makes a server that is closed before its host.
func serverOf(t *testing.T, o mcpserver.Options) *mcpserver.Server {
	t.Helper()
	server, err := mcpserver.New(o)
	require.NoError(t, err)
	t.Cleanup(server.Close)
	return server
}

// client connects a client to a server in this process.
func client(t *testing.T, o mcpserver.Options, co *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	return clientOf(t, o, co, "")
}

// clientOf connects a client that speaks a version of the protocol; "" is the
// newest.
func clientOf(t *testing.T, o mcpserver.Options, co *mcp.ClientOptions, version string) *mcp.ClientSession {
	t.Helper()
	server := serverOf(t, o)
	here, there := mcp.NewInMemoryTransports()
	ss, err := server.Connect(t.Context(), there, nil)
	require.NoError(t, err)
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, co).Connect(t.Context(), here, &mcp.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, err := range []error{cs.Close(), ss.Wait()} {
			if !errors.Is(err, io.ErrClosedPipe) { // a last notification of either side may meet the end
				require.NoError(t, err)
			}
		}
	})
	return cs
}

// text is what a model reads of a result.
func text(r *mcp.CallToolResult) string {
	return r.Content[0].(*mcp.TextContent).Text
}

func call(t *testing.T, cs *mcp.ClientSession, tool string, args map[string]any) *mcp.CallToolResult {
	t.Helper()
	r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	require.NoError(t, err)
	if content, ok := r.StructuredContent.(map[string]any); ok && content["state"] != nil {
		require.NoError(t, promised(t).Validate(content), "clients may refuse what the schema does not have")
	}
	return r
}

// promised is the schema that the tools which run code say they answer by.
func promised(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	require.NoError(t, json.Unmarshal(mcpserver.ResultSchema, &s))
	r, err := s.Resolve(nil)
	require.NoError(t, err)
	return r
}

// said is what a tool says it has done.
func said(r *mcp.CallToolResult) string {
	content, _ := r.StructuredContent.(map[string]any)
	text, _ := content["done"].(string)
	return text
}

func cells(code ...string) map[string]any {
	list := []any{}
	for _, c := range code {
		list = append(list, map[string]any{"code": c})
	}
	return map[string]any{"cells": list}
}

func TestTools(t *testing.T) {
	t.Parallel()
	cs := client(t, options(t), nil)
	names := []string{}
	for tool, err := range cs.Tools(t.Context(), nil) {
		require.NoError(t, err)
		require.NotEmpty(t, tool.Description)
		names = append(names, tool.Name)
	}
	require.ElementsMatch(t, []string{"python", "bash", "sessions_list", "sessions_interrupt", "sessions_reset", "sessions_close", "sessions_checkpoint", "sessions_rewind", "artifact_read"}, names)

	require.Equal(t, "42", text(call(t, cs, "python", cells("x = 40", "x + 2")))[len("[1/2] (ok)\n\n[2/2]\n"):])
	r := call(t, cs, "python", cells("x"))
	require.Equal(t, "40", text(r), "variables stay")
	structured, err := json.Marshal(r.StructuredContent)
	require.NoError(t, err)
	require.Contains(t, string(structured), `"outcome":"ok"`)
	require.Contains(t, string(structured), `"state":"kept"`)

	r = call(t, cs, "python", cells("1/0"))
	require.True(t, r.IsError)
	require.Contains(t, text(r), "ZeroDivisionError")
	r = call(t, cs, "python", map[string]any{"cells": "x"})
	require.True(t, r.IsError, "a mistake of the model is told to the model")
	require.Contains(t, text(r), "python: cells: is a JSON string; it must be a list")
	require.Equal(t, "hi", text(call(t, cs, "bash", map[string]any{"command": "echo hi"})))

	image := "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	r = call(t, cs, "python", cells("display({'image/png': '"+image+"'}, raw=True)"))
	require.Equal(t, "image/png", r.Content[1].(*mcp.ImageContent).MIMEType)

	_, err = cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "none"})
	require.Error(t, err)
}

func TestSessions(t *testing.T) {
	t.Parallel()
	o := options(t)
	cs := client(t, o, nil)
	list := func() string {
		b, err := json.Marshal(call(t, cs, "sessions_list", nil).StructuredContent)
		require.NoError(t, err)
		return string(b)
	}
	require.JSONEq(t, `{"sessions":[]}`, list())
	args := cells("x = 1")
	args["session"] = "a@b/c"
	call(t, cs, "python", args)
	call(t, cs, "python", cells("x = 2"))
	require.Contains(t, list(), `"session":"a@b/c"`)
	require.Contains(t, list(), `"session":"default"`)
	require.Contains(t, list(), `"state":"idle"`)

	require.Equal(t, "a@b/c: reset", said(call(t, cs, "sessions_reset", map[string]any{"session": "a@b/c"})))
	for tool, what := range map[string]string{"sessions_interrupt": "interrupted", "sessions_reset": "reset", "sessions_close": "closed"} {
		require.Equal(t, "none: no session of this name and working directory has a kernel; nothing was "+what, said(call(t, cs, tool, map[string]any{"session": "none"})))
	}
	args = cells("'x' in globals()")
	args["session"] = "a@b/c"
	require.Contains(t, text(call(t, cs, "python", args)), "False")
	require.Equal(t, "2", text(call(t, cs, "python", cells("x"))))
	call(t, cs, "sessions_close", nil)
	require.Eventually(t, func() bool { return !strings.Contains(list(), `"session":"default"`) }, 3*time.Minute, 10*time.Millisecond)

	done := make(chan *mcp.CallToolResult, 1)
	go func() {
		r, err := cs.CallTool(context.Background(), &mcp.CallToolParams{Name: "python", Arguments: cells("import time; time.sleep(300)")})
		if err == nil {
			done <- r
		}
	}()
	require.Eventually(t, func() bool { return strings.Contains(list(), `"state":"busy"`) }, 3*time.Minute, 10*time.Millisecond)
	call(t, cs, "sessions_interrupt", nil)
	require.True(t, (<-done).IsError)
}

// progress collects the notifications of a client.
type progress struct {
	mu    sync.Mutex
	text  strings.Builder
	last  float64
	wrong bool
}

func (p *progress) take(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrong = p.wrong || r.Params.Progress <= p.last
	p.last = r.Params.Progress
	p.text.WriteString(r.Params.Message)
}

func (p *progress) seen(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Contains(p.text.String(), text)
}

func TestProgressAndCancel(t *testing.T) {
	t.Parallel()
	var p progress
	cs := client(t, options(t), &mcp.ClientOptions{ProgressNotificationHandler: p.take})
	params := &mcp.CallToolParams{Name: "python", Arguments: cells("import time\nx = 7\nprint('first', flush=True)\ntime.sleep(300)")}
	params.SetProgressToken("token")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := cs.CallTool(ctx, params)
		done <- err
	}()
	require.Eventually(t, func() bool { return p.seen("first") }, 3*time.Minute, 10*time.Millisecond)
	require.Eventually(t, func() bool { return p.seen("running for") }, 3*time.Minute, 10*time.Millisecond, "a sign of life")
	cancel()
	require.Error(t, <-done)
	require.Equal(t, "7", text(call(t, cs, "python", cells("x"))), "the session is kept")
	p.mu.Lock()
	defer p.mu.Unlock()
	require.False(t, p.wrong, "progress only goes up")
}

// What a call showed reaches a client once, as text, and so does what it raised.
func TestOutputIsSentOnce(t *testing.T) {
	t.Parallel()
	cs := client(t, options(t), nil)
	for name, code := range map[string]string{
		"printed": "print('nee' + 'dle')", "value": "'nee' + 'dle'", "raised": "raise ValueError('nee' + 'dle', [])\n",
	} {
		r := call(t, cs, "python", cells(code))
		require.Equal(t, 1, strings.Count(text(r), "needle"), "%s: %s", name, text(r))
		b, err := json.Marshal(r.StructuredContent)
		require.NoError(t, err)
		want := 0
		if name == "raised" {
			want = 1 // the message of the error, by itself
		}
		require.Equal(t, want, strings.Count(string(b), "needle"), "%s: %s", name, b)
		require.Contains(t, string(b), `"reach":"`)
	}
}

func TestArtifacts(t *testing.T) {
	t.Parallel()
	cs := client(t, options(t), nil)
	r := call(t, cs, "python", cells(`print('\n'.join(f'line {i}' for i in range(100_000)))`))
	b, err := json.Marshal(r.StructuredContent)
	require.NoError(t, err)
	var result struct {
		Artifact string `json:"artifact"`
	}
	require.NoError(t, json.Unmarshal(b, &result))
	require.NotEmpty(t, result.Artifact)
	r = call(t, cs, "artifact_read", map[string]any{"artifact": result.Artifact, "first": 50_001, "last": 50_002})
	require.Contains(t, text(r), `line 50000\nline 50001\n`)
	res, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: result.Artifact})
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(res.Contents[0].Text, "line 0\n"))
	require.Contains(t, res.Contents[0].Text, "artifact_read reads on")

	r = call(t, cs, "python", cells("print('x' * 200_000 + 'needle' + 'y' * 100_000)")) // one line
	b, err = json.Marshal(r.StructuredContent)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &result))
	r = call(t, cs, "artifact_read", map[string]any{"artifact": result.Artifact, "search": "needle"})
	require.Contains(t, text(r), `"line":1,"offset":200000`)
	whole := ""
	for next, more := 0, true; more; {
		var part struct {
			Text string `json:"text"`
			More bool   `json:"more"`
			Next int    `json:"next_offset"`
		}
		args := map[string]any{"artifact": result.Artifact, "offset": next}
		if next == 0 {
			args = map[string]any{"artifact": result.Artifact, "first": 1}
		}
		require.NoError(t, json.Unmarshal([]byte(text(call(t, cs, "artifact_read", args))), &part))
		whole, next, more = whole+part.Text, part.Next, part.More
	}
	require.Equal(t, strings.Repeat("x", 200_000)+"needle"+strings.Repeat("y", 100_000)+"\n", whole)
	r = call(t, cs, "artifact_read", map[string]any{"artifact": result.Artifact, "first": 1, "offset": 3})
	require.True(t, r.IsError)
	for _, bad := range []string{"artifact://999", "artifact://..%2Fx", "artifact://../../etc/passwd", "file:///etc/passwd"} {
		_, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: bad})
		require.Error(t, err, bad)
		r := call(t, cs, "artifact_read", map[string]any{"artifact": bad})
		require.True(t, r.IsError, bad)
	}
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	o := options(t)
	h := httptest.NewServer(mcpserver.Handler(serverOf(t, o), "sesame", o))
	t.Cleanup(h.Close)

	for _, row := range []struct {
		name, token, host, origin string
		code                      int
	}{
		{"no token", "", "", "", http.StatusUnauthorized},
		{"another token", "Bearer open", "", "", http.StatusUnauthorized},
		{"another host", "Bearer sesame", "example.com", "", http.StatusForbidden},
		{"another origin", "Bearer sesame", "", "https://example.com", http.StatusForbidden},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL, strings.NewReader(`{}`))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		if row.token != "" {
			req.Header.Set("Authorization", row.token)
		}
		if row.host != "" {
			req.Host = row.host
		}
		if row.origin != "" {
			req.Header.Set("Origin", row.origin)
		}
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, row.code, resp.StatusCode, "%s: %s", row.name, body)
		require.NotContains(t, string(body), "sesame")
	}
}

// httpClient connects a client that speaks a version of the protocol.
func httpClient(t *testing.T, url string, o *mcp.ClientOptions, version string) *mcp.ClientSession {
	t.Helper()
	transport := &http.Transport{}
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, o).Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: url, HTTPClient: &http.Client{Transport: bearer{"sesame", transport}},
	}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, cs.Close())
		transport.CloseIdleConnections()
	})
	return cs
}

// bearer adds a token to requests.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}
