package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/cmd/internal/liveview"
	"github.com/coppice-run/coppice/cmd/internal/liveview/vitals"
	"github.com/coppice-run/coppice/cmd/internal/toolapi"
	"github.com/coppice-run/coppice/cmd/internal/workspaceapi"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/sinks/prom"
	"github.com/coppice-run/coppice/test/testpython"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// token opens the servers of these tests; no log may hold it.
const token = "sesame-open-0123456789"

// server is one that serves real sessions. Its client's requests and answers are
// held against the OpenAPI document.
type server struct {
	t      *testing.T
	url    string
	cwd    string
	socket string
	api    *httpapi.API
	mounts []httpserver.Mount
	host   *coppice.Host
	spec   *spec
	http   *http.Client
	log    *safeBuffer
	*client.Client
}

// safeBuffer is a log that is read while it is written.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

// Write adds to the log.
func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

// String returns the log.
func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// serve starts a server with a host of its own.
func serve(t *testing.T, ho coppice.Options, o httpapi.Options) *server {
	t.Helper()
	return serveAs(t, load(t), ho, o, toolapi.Options{})
}

// serveAs starts a server that is held against a document with others.
func serveAs(t *testing.T, spec *spec, ho coppice.Options, o httpapi.Options, to toolapi.Options) *server {
	t.Helper()
	s := &server{t: t, cwd: t.TempDir(), spec: spec, log: &safeBuffer{}}
	metrics := prom.New(prom.Options{})
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	ho.Home, ho.Backend, ho.Python, ho.Env = t.TempDir(), coppice.Runner(coppice.RunnerOptions{}), testpython.Path(t), append(os.Environ(), "COPPICE_TOKEN="+token)
	v := vitals.New()
	ho.Sinks, ho.Metrics, ho.OnEvent = []sinks.Attachment{metrics.Attachment(), v.Attachment()}, metrics.Hub(), v.Hear
	host, err := coppice.Start(t.Context(), ho)
	require.NoError(t, err)
	o.Host, o.Cwd, o.Version, o.Metrics, o.Logger = host, s.cwd, "test", registry, slog.New(slog.NewTextHandler(s.log, nil))
	o.Of, o.Answered = vitals.Of, v.Answered
	s.host = host
	s.api, err = httpapi.New(o)
	require.NoError(t, err)
	run, err := os.MkdirTemp("", "coppice-sock-") // the name of a socket has to be short
	require.NoError(t, err)
	s.socket = filepath.Join(run, "s")
	v.Show(vitals.Source{Sessions: s.api.Sessions, Tree: host.Snapshot, Hibernated: s.api.Hibernated, Fork: true})
	s.mounts, err = liveview.Mounts(liveview.Options{Version: "test", Cwd: s.cwd, Vitals: v})
	require.NoError(t, err)
	s.mounts = append(s.mounts, s.api.Mounts()...)
	if to.Tools = host.Launcher(); to.Tools != nil {
		s.mounts = append(s.mounts, toolapi.Mounts(to)...)
	}
	s.mounts = append(s.mounts, workspaceapi.Mounts(workspaceapi.Options{Host: host, KeepAlive: o.KeepAlive, Logger: o.Logger})...)
	l, err := httpserver.Listen(t.Context(), httpserver.Options{Addr: "127.0.0.1:0", Token: token, Socket: s.socket, Logger: o.Logger}, s.mounts...)
	require.NoError(t, err)
	s.url = l.URL()
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Serve(ctx) }()
	transport := &http.Transport{MaxIdleConnsPerHost: 64, ExpectContinueTimeout: time.Minute}
	s.http = &http.Client{Transport: &checked{s.spec, t, transport}}
	s.Client, err = client.New(client.Options{URL: s.url, Token: token, Transport: s.http.Transport})
	require.NoError(t, err)
	t.Cleanup(func() {
		end()
		require.NoError(t, <-ended)
		transport.CloseIdleConnections()
		v.Close()
		require.NoError(t, s.api.Close())
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.True(t, host.Shutdown(ctx).Clean())
		require.NoError(t, os.RemoveAll(run))
		require.NotContains(t, s.log.String(), token)
	})
	return s
}

// ask makes a request with the token; the answer is held against the document.
func (s *server) ask(method, path, body string, headers ...string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, bytes.NewReader([]byte(body)))
	require.NoError(s.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	resp, err := s.http.Do(req)
	require.NoError(s.t, err)
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return resp.StatusCode, string(data)
}

// cells are cells of code.
func cells(code ...string) []messages.Cell {
	list := make([]messages.Cell, len(code))
	for i, c := range code {
		list[i].Code = c
	}
	return list
}

// run makes a call and returns its result.
func (s *server) run(session string, code ...string) messages.Result {
	s.t.Helper()
	x, err := s.Start(s.t.Context(), client.Execute{Session: session, Cells: cells(code...)})
	require.NoError(s.t, err)
	x, err = s.Wait(s.t.Context(), x.ID)
	require.NoError(s.t, err)
	require.NotNil(s.t, x.Result)
	return *x.Result
}

// text is v as JSON.
func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return string(data)
}
