package jupyter_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/test/fakegateway"
)

// serve makes a server of a handler, and a client of it.
func serve(t *testing.T, h http.HandlerFunc) (*httptest.Server, *jupyter.Client) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := jupyter.NewClient(jupyter.Options{URL: s.URL, Token: "hunter2", DialTimeout: 2 * time.Second, StartGrace: time.Second})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return s, c
}

// A server that sends a client elsewhere does not send the token along.
func TestARedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	var came atomic.Int64
	thief, _ := serve(t, func(http.ResponseWriter, *http.Request) { came.Add(1) })
	for _, code := range []int{301, 302, 303, 307, 308} {
		_, c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && r.URL.Path == "/api/kernels/k" {
				_, _ = w.Write([]byte(`{"id": "k", "name": "python3", "execution_state": "idle"}`))
				return
			}
			http.Redirect(w, r, thief.URL+r.URL.Path, code)
		})
		require.ErrorContains(t, c.Healthy(within(t)), "the server redirects elsewhere")
		_, err := c.Start(within(t), jupyter.StartRequest{})
		require.ErrorContains(t, err, "the server redirects elsewhere")
		_, err = c.Adopt(within(t), "k", nil) // the handshake is redirected
		require.ErrorContains(t, err, "the server redirects elsewhere")
		require.ErrorContains(t, c.Delete(within(t), "k"), "the server redirects elsewhere")
		require.NotContains(t, err.Error(), "hunter2")
	}
	require.Zero(t, came.Load(), "requests that went elsewhere")
}

// A header that does not end fills no memory, neither of an answer nor of a
// handshake.
func TestAHeaderWithoutEnd(t *testing.T) {
	t.Parallel()
	var most atomic.Int64
	flood := func(w http.ResponseWriter, first string) {
		h, ok := w.(http.Hijacker)
		if !ok {
			return
		}
		conn, _, err := h.Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		line, sent := []byte("X-Long: "+strings.Repeat("a", 64<<10)+"\r\n"), int64(0)
		_, err = conn.Write([]byte("HTTP/1.1 " + first + "\r\n"))
		for err == nil && sent < 1<<30 {
			var n int
			n, err = conn.Write(line)
			sent += int64(n)
		}
		for before := most.Load(); before < sent && !most.CompareAndSwap(before, sent); before = most.Load() {
		}
	}
	_, c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/channels"):
			flood(w, "101 Switching Protocols")
		case strings.HasSuffix(r.URL.Path, "/kernelspecs"):
			flood(w, "200 OK")
		default:
			_, _ = w.Write([]byte(`{"id": "k", "name": "python3", "execution_state": "idle", "connections": 0}`))
		}
	})
	require.Error(t, c.Healthy(within(t)))
	_, err := c.Adopt(within(t), "k", nil)
	require.Error(t, err)
	require.Less(t, most.Load(), int64(16<<20), "what lies in the buffers of the system is little")
	require.NotZero(t, most.Load())
}

// A deletion that a server does not answer ends in time, and may be asked for
// again.
func TestASlowDelete(t *testing.T) {
	t.Parallel()
	s, c := fake(t, fakegateway.Options{}, func(o *jupyter.Options) { o.RequestTimeout = 100 * time.Millisecond })
	k := startKernel(t, c)
	s.Set(func(f *fakegateway.Faults) { f.Hang = map[string]bool{"delete": true} })
	var un *jupyter.UnreachableError
	require.ErrorAs(t, k.Delete(within(t)), &un)
	require.True(t, un.Timeout)
	await(t, k.Done())
	s.Set(func(f *fakegateway.Faults) { f.Hang = nil })
	require.Eventually(t, func() bool { return k.Delete(within(t)) == nil }, patience, tick)
	require.Empty(t, s.Live())
}

// A server that gives two sessions one kernel, or a kernel an id that leads
// elsewhere.
func TestIDsOfHostileServers(t *testing.T) {
	t.Parallel()
	s, c := fake(t, fakegateway.Options{})
	k := startKernel(t, c)
	s.Set(func(f *fakegateway.Faults) { f.ID = k.ID() })
	for range 2 {
		_, err := c.Start(within(t), jupyter.StartRequest{})
		require.ErrorIs(t, err, jupyter.ErrShared)
		require.ErrorContains(t, err, k.ID())
	}
	_, err := c.Adopt(within(t), k.ID(), nil)
	require.ErrorIs(t, err, jupyter.ErrShared)
	r, _ := run(t, k, "out the kernel of the first session lives")
	require.Equal(t, jupyter.ReplyOK, r.Status)

	for _, id := range []string{"../../kernelspecs", "a/b", ".", "..", "a?b", "a#b", "a b", "a\r\nb", "\x00", "é", "%2e%2e", strings.Repeat("a", 129), strings.Repeat("a", 1<<20)} {
		s.Set(func(f *fakegateway.Faults) { f.ID = id })
		_, err := c.Start(within(t), jupyter.StartRequest{})
		require.ErrorIs(t, err, jupyter.ErrBadID)
		require.Less(t, len(err.Error()), 200)
	}
	require.Len(t, s.Live(), 3, "what has our id and is not ours to use was deleted, except where it would be another's")

	// A kernel that somebody is connected to before we are.
	_, busy := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			t.Error("it is not ours to touch")
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"id": "k", "name": "python3", "execution_state": "idle", "connections": 1}`))
	})
	_, err = busy.Start(within(t), jupyter.StartRequest{})
	require.ErrorIs(t, err, jupyter.ErrShared)

	// When the first session has ended, its id is anybody's.
	s.Set(func(f *fakegateway.Faults) { f.ID = "" })
	k.Detach()
	again, err := c.Adopt(within(t), k.ID(), nil)
	require.NoError(t, err)
	require.NoError(t, again.Delete(within(t)))
}

// A server that stops reading in the middle of a large request: the write ends in
// time, the connection counts as broken, and no goroutine stays.
func TestAServerThatStopsReading(t *testing.T) {
	t.Parallel()
	s, c := fake(t, fakegateway.Options{}, func(o *jupyter.Options) { o.WriteTimeout = 200 * time.Millisecond })
	k := startKernel(t, c)
	s.Live()[0].Freeze()
	out := &outputs{}
	r, err := k.Execute(within(t), jupyter.ExecuteRequest{Code: "out a\n" + strings.Repeat("#", 9<<20)}, out.emit)
	if err != nil { // half of a request does not count, but its sender cannot know what arrived
		require.ErrorIs(t, err, jupyter.ErrNoReply)
	}
	require.True(t, r.Broken || r.Status == jupyter.ReplyOK)
	require.GreaterOrEqual(t, k.Stats().Reconnects, int64(1))
	r, _ = run(t, k, "out b")
	require.Equal(t, jupyter.ReplyOK, r.Status)

	// One that never reads again: the kernel is lost when the time to reconnect is up.
	s, c = fake(t, fakegateway.Options{}, func(o *jupyter.Options) {
		o.WriteTimeout, o.Reconnect, o.DialTimeout = 200*time.Millisecond, 300*time.Millisecond, 2*time.Second
	})
	k = startKernel(t, c)
	s.Set(func(f *fakegateway.Faults) { f.HoldHandshake = make(chan struct{}) })
	s.Live()[0].Freeze()
	_, err = k.Execute(within(t), jupyter.ExecuteRequest{Code: strings.Repeat("#", 9<<20)}, nil)
	_ = requireLost(t, k, err, false)
}
