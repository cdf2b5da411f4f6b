package httpserver_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
)

// says answers with a text.
func says(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
}

// TestGate: who comes while it is held waits, and is served here, or elsewhere.
func TestGate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g httpserver.Gate
		slow := make(chan struct{})
		h := g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				<-slow
			}
			_, _ = io.WriteString(w, "here")
		}))
		answers := make(chan string, 8)
		ask := func(ctx context.Context, path string) {
			go func() {
				w := httptest.NewRecorder()
				w.Header().Set("Cache-Control", "no-store")
				h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
				answers <- w.Body.String() + w.Header().Get("Cache-Control")
			}()
			synctest.Wait()
		}
		ask(t.Context(), "/")
		require.Equal(t, "hereno-store", <-answers)
		require.NoError(t, g.EmptySoon(t.Context()))
		ask(t.Context(), "/slow")
		g.Hold()
		g.Hold()
		ask(t.Context(), "/")
		gone, leave := context.WithCancel(t.Context())
		ask(gone, "/")
		leave()
		held := <-answers
		require.Contains(t, held, `"code":"draining"`, "its client has gone, or the server ends: then it must not look served")
		require.NotContains(t, held, "here")
		require.EqualError(t, g.EmptySoon(t.Context()), "requests are being served: GET /slow (1)")
		require.Empty(t, answers)
		close(slow)
		require.Equal(t, "hereno-store", <-answers)
		require.NoError(t, g.Empty(t.Context()))
		g.Release()
		require.Equal(t, "hereno-store", <-answers)
		g.Hold()
		ask(t.Context(), "/")
		g.Pass(says("there"))
		require.Equal(t, "there", <-answers)
		ask(t.Context(), "/")
		require.Equal(t, "there", <-answers)
		g.Hold() // it has passed
		ask(t.Context(), "/")
		require.Equal(t, "there", <-answers)
	})
}

// TestRelay: the other server answers, with its headers; a stream is broken off, and none who
// answers is said.
func TestRelay(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/mute/") {
			<-r.Context().Done()
			return
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		data, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s %s", r.Host, r.Header.Get("Authorization"), data)
		if strings.HasSuffix(r.URL.Path, "/events") {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}))
	defer other.Close()
	addr := strings.TrimPrefix(other.URL, "http://")
	front := httptest.NewServer(httpserver.Relay(addr, time.Second))
	defer front.Close()
	ask := func(path string) (*http.Response, string, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+path, strings.NewReader("body"))
		require.NoError(t, err)
		r.Host = "named"
		r.Header.Set("Authorization", "Bearer sesame")
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		data, err := io.ReadAll(resp.Body)
		return resp, string(data), err
	}
	resp, text, err := ask("/x")
	require.NoError(t, err)
	require.Equal(t, "named Bearer sesame body", text)
	require.Equal(t, []string{"nosniff"}, resp.Header.Values("X-Content-Type-Options"))
	require.True(t, resp.Close, "the next request goes to the other server by itself")
	_, text, err = ask("/x/events")
	require.Error(t, err)
	require.Equal(t, "named Bearer sesame body", text)
	hasty := httptest.NewServer(httpserver.Relay(addr, 20*time.Millisecond))
	defer hasty.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, hasty.URL+"/mute/events", nil)
	require.NoError(t, err)
	resp, err = http.DefaultClient.Do(r)
	if err == nil {
		_ = resp.Body.Close()
	}
	require.Error(t, err, "one that had not begun is broken off, too: an answer would end it for good")
	other.Close()
	resp, text, err = ask("/x")
	require.NoError(t, err)
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
	require.Contains(t, text, "the server was replaced")
}

// TestListenersGoFromServerToServer: no connection is refused meanwhile, at the address or at
// the Unix socket, which stays.
func TestListenersGoFromServerToServer(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "coppice-sock-") // the name of a socket has to be short
	require.NoError(t, err)
	defer func() { require.NoError(t, os.RemoveAll(dir)) }()
	socket := filepath.Join(dir, "s")
	serve := func(s *httpserver.Server) (end func()) {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(ctx) }()
		return func() { cancel(); require.NoError(t, <-ended) }
	}
	o := httpserver.Options{Addr: "127.0.0.1:0", Token: "sesame", Socket: socket}
	first, err := httpserver.Listen(t.Context(), o, httpserver.Mount{Pattern: "GET /who", Public: true, Handler: says("first")})
	require.NoError(t, err)
	url, end := first.URL(), serve(first)
	ask := func(network, addr string) string {
		tr := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, addr)
		}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/who", nil)
		require.NoError(t, err)
		resp, err := (&http.Client{Transport: tr}).Do(r)
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		data, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return string(data)
	}
	both := func() string { return ask("tcp", strings.TrimPrefix(url, "http://")) + ask("unix", socket) }
	require.Equal(t, "firstfirst", both())
	first.Pause()
	first.Pause()
	waits := make(chan string, 1)
	go func() { waits <- both() }()
	first.Resume()
	require.Equal(t, "firstfirst", <-waits)
	first.Pause()
	in, err := first.Bequeath()
	require.NoError(t, err)
	go func() { waits <- both() }()
	second, err := httpserver.Listen(t.Context(), httpserver.Options{Token: "sesame", Inherited: &in}, httpserver.Mount{Pattern: "GET /who", Public: true, Handler: says("second")})
	require.NoError(t, err)
	in.Close()
	require.Equal(t, url, second.URL())
	require.Equal(t, socket, second.Socket())
	first.Yield()
	end()
	end = serve(second)
	require.Equal(t, "secondsecond", <-waits)
	require.Equal(t, "secondsecond", both())
	end()
	_, err = os.Stat(socket)
	require.ErrorIs(t, err, os.ErrNotExist)
}
