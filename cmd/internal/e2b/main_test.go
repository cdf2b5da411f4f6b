package e2b_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/e2b"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/test/testpython"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// key opens the servers of these tests.
const key = "sesame-open-0123456789"

// server is one that serves sandboxes of a real host.
type server struct {
	t    *testing.T
	url  string // with the base
	root string
	host *coppice.Host
	api  *e2b.API
	// asked takes the next request in place of the API; nil: that serves it.
	asked atomic.Pointer[func(r *http.Request)]
	http  *http.Client
}

// serve starts one, whose host keeps no sessions on disk.
func serve(t *testing.T) *server {
	t.Helper()
	return serveKeeping(t, hibernate.Never)
}

// serveKeeping starts one that keeps sessions on disk.
func serveKeeping(t *testing.T, keep hibernate.Policy) *server {
	t.Helper()
	return serveOn(t, coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{}), Env: os.Environ(), Hibernate: keep})
}

// serveOn starts one for a host with these options.
func serveOn(t *testing.T, o coppice.Options) *server {
	t.Helper()
	o.Home, o.Python = t.TempDir(), testpython.Path(t)
	keep := o.Hibernate
	host, err := coppice.Start(t.Context(), o)
	require.NoError(t, err)
	api := e2b.New(e2b.Options{Host: host, Keeps: keep != "" && keep != hibernate.Never, Logger: slog.New(slog.DiscardHandler)})
	s := &server{t: t, host: host, api: api}
	mounts := api.Mounts()
	for i := range mounts {
		mounts[i].Handler = s.listening(mounts[i].Handler)
	}
	l, err := httpserver.Listen(t.Context(), httpserver.Options{Addr: "127.0.0.1:0", Token: key}, mounts...)
	require.NoError(t, err)
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Serve(ctx) }()
	transport := &http.Transport{}
	t.Cleanup(func() {
		end()
		require.NoError(t, <-ended)
		transport.CloseIdleConnections()
		api.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.True(t, host.Shutdown(ctx).Clean())
	})
	s.root, s.url, s.http = l.URL(), l.URL()+e2b.Base, &http.Client{Transport: transport}
	return s
}

// listening lets a test have a request.
func (s *server) listening(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := s.asked.Load(); f != nil {
			(*f)(r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	text   string
}

// json reads the answer.
func (a answer) json(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	require.NoError(t, json.Unmarshal([]byte(a.text), &v), a.text)
	return v
}

// ask makes a request with the headers, which are names and values.
func (s *server) ask(method, url, body string, headers ...string) answer {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, url, strings.NewReader(body))
	require.NoError(s.t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := s.http.Do(req)
	require.NoError(s.t, err)
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return answer{resp.StatusCode, resp.Header, string(data)}
}

// control asks the control plane.
func (s *server) control(method, path, body string, headers ...string) answer {
	s.t.Helper()
	return s.ask(method, s.url+path, body, append([]string{"X-API-Key", key}, headers...)...)
}

// box is a sandbox with what opens it.
type box struct {
	s               *server
	id              string
	access, traffic string
}

// make makes a sandbox.
func (s *server) make(body string) box {
	s.t.Helper()
	a := s.control("POST", "/v2/sandboxes", body)
	require.Equal(s.t, http.StatusCreated, a.status, a.text)
	v := a.json(s.t)
	b := box{s: s}
	b.id, _ = v["sandboxID"].(string)
	b.access, _ = v["envdAccessToken"].(string)
	b.traffic, _ = v["trafficAccessToken"].(string)
	return b
}

// headers are those that clients send with each request to the inside.
func (b box) headers() []string {
	return []string{"E2b-Sandbox-Id", b.id, "E2b-Sandbox-Port", "49983", "X-Access-Token", b.access}
}

// inside asks the inside of the sandbox.
func (b box) inside(method, path, body string, headers ...string) answer {
	b.s.t.Helper()
	return b.s.ask(method, b.s.url+path, body, append(b.headers(), headers...)...)
}

// run runs code, and returns the lines.
func (b box) run(body string) []map[string]any {
	b.s.t.Helper()
	a := b.inside("POST", "/execute", body)
	require.Equal(b.s.t, http.StatusOK, a.status, a.text)
	var lines []map[string]any
	for line := range bytes.Lines([]byte(a.text)) {
		var v map[string]any
		require.NoError(b.s.t, json.Unmarshal(line, &v))
		lines = append(lines, v)
	}
	return lines
}

// of are the lines of a kind.
func of(lines []map[string]any, kind string) []map[string]any {
	var found []map[string]any
	for _, line := range lines {
		if line["type"] == kind {
			found = append(found, line)
		}
	}
	return found
}
