package inbound_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/internal/inbound"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipes is a listener in memory.
type pipes struct {
	conns chan net.Conn
	full  chan error // Accept fails by it
	over  chan struct{}
	once  sync.Once
}

// Accept waits for dial, or fails as the test wants it.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case err := <-p.full:
		return nil, err
	case c := <-p.conns:
		return c, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.over) })
	return nil
}

// Addr is that of no network.
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{} }

// served is a server in a bubble.
type served struct {
	t *testing.T
	*inbound.Connections
	http  *http.Server
	pipes *pipes
}

// serve starts a server with a bound. A request that says so is known.
func serve(t *testing.T, most int, h http.HandlerFunc) *served {
	t.Helper()
	s := &served{t: t, pipes: &pipes{conns: make(chan net.Conn), full: make(chan error), over: make(chan struct{})}}
	s.http = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			inbound.Known(r.Context())
		}
		h(w, r)
	})}
	s.Connections = inbound.GuardMost(s.http, most)
	ended := make(chan error, 1)
	go func() { ended <- s.http.Serve(s.Listener(s.pipes)) }() // ends with Close
	t.Cleanup(func() {
		require.NoError(t, s.http.Close())
		require.ErrorIs(t, <-ended, http.ErrServerClosed)
	})
	return s
}

// client is a connection, and what has come over it.
type client struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

// dial connects and says text.
func (s *served) dial(text string) *client {
	s.t.Helper()
	here, there := net.Pipe()
	s.t.Cleanup(func() { _ = here.Close() })
	s.pipes.conns <- there
	c := &client{s.t, here, bufio.NewReader(here)}
	if text != "" { // a pipe hands over nothing, too
		c.say(text)
	}
	return c
}

func (c *client) say(text string) {
	c.t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(c.t, err)
}

// answer reads an answer with its body.
func (c *client) answer() (*http.Response, string) {
	c.t.Helper()
	resp, err := http.ReadResponse(c.in, nil)
	require.NoError(c.t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(c.t, err)
	return resp, string(text)
}

// closed waits for the end of the connection, and returns how long that took.
func (c *client) closed() time.Duration {
	c.t.Helper()
	began := time.Now()
	_, err := c.in.ReadByte()
	require.ErrorIs(c.t, err, io.EOF)
	return time.Since(began)
}

// open reports whether the connection is open, after all has happened that can.
func (c *client) open() bool {
	synctest.Wait()
	return c.SetReadDeadline(time.Time{}) == nil // a pipe refuses when its other end is closed
}

// echo answers with the body.
func echo(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusRequestTimeout)
	}
	_, _ = w.Write(text)
}

// deaf answers without looking at the body.
func deaf(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }
