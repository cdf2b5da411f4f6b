package inbound_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/inbound"
)

// lateEnd is a body whose end comes when the answer has begun.
type lateEnd struct {
	io.ReadCloser
	begun chan struct{}
	rest  bool
	// over takes what its end was.
	over chan error
}

// Read implements [io.Reader].
func (l *lateEnd) Read(p []byte) (int, error) {
	if !l.rest {
		l.rest = true
		n, _ := l.ReadCloser.Read(p) // all of it
		return n, nil
	}
	<-l.begun
	n, err := l.ReadCloser.Read(p)
	l.over <- err
	return n, err
}

// noting says when an answer has begun.
type noting struct {
	http.ResponseWriter
	begun func()
}

// FlushError is that of [http.ResponseController].
func (n *noting) FlushError() error {
	defer n.begun()
	return http.NewResponseController(n.ResponseWriter).Flush()
}

// Unwrap is for [http.ResponseController].
func (n *noting) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// TestAnswersThatBeginBeforeTheEndOfTheBody are not cut off where they are sent on, and what reads the
// body does not touch them.
func TestAnswersThatBeginBeforeTheEndOfTheBody(t *testing.T) {
	t.Parallel()
	over := make(chan error, 8)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		_ = http.NewResponseController(w).Flush()
		if r.URL.Path == "/late" && !errors.Is(<-over, io.EOF) {
			<-r.Context().Done() // it is given up
		}
		_, _ = w.Write(data)
	}))
	defer other.Close()
	to, err := url.Parse(other.URL)
	require.NoError(t, err)
	transport := &http.Transport{MaxIdleConnsPerHost: 8}
	defer transport.CloseIdleConnections()
	relay := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: transport, FlushInterval: -1}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:gosec // the guard bounds it
		inbound.Known(r.Context())
		w, r = inbound.Relayed(w, r)
		if r.URL.Path == "/nowhere" {
			_ = r.Body.Close() // as who cannot reach the other server does
			inbound.Unsent(w, r)
			http.Error(w, "it is not there", http.StatusBadGateway)
			return
		}
		begun := make(chan struct{})
		if r.URL.Path == "/late" {
			r.Body = &lateEnd{ReadCloser: r.Body, begun: begun, over: over}
		}
		relay.ServeHTTP(&noting{w, sync.OnceFunc(func() { close(begun) })}, r)
	})}
	guarded := inbound.Guard(s, inbound.Limits{})
	served := make(chan error, 1)
	go func() { served <- s.Serve(guarded.Listener(l)) }()
	client := &http.Client{Transport: &http.Transport{}}
	for path := range strings.FieldsSeq("/late /late " + strings.Repeat("/ ", 200)) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+l.Addr().String()+path, strings.NewReader("body"))
		require.NoError(t, err)
		resp, err := client.Do(r)
		require.NoError(t, err)
		data, err := io.ReadAll(resp.Body)
		require.NoError(t, err, path)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, "body", string(data))
		require.False(t, resp.Close, "the connection serves the next one")
	}
	for range 20 { // one that was not sent is answered, and the client knows that its connection ends with that
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+l.Addr().String()+"/nowhere", strings.NewReader("body"))
		require.NoError(t, err)
		resp, err := client.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusBadGateway, resp.StatusCode)
		require.True(t, resp.Close)
	}
	client.CloseIdleConnections()
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-served, http.ErrServerClosed)
	inbound.Relayed(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)) // which has no body to take away
}
