package fleetapi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/fleetapi/relay"
	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/fleet/fleettest"
)

// errRefused is what a connection says that takes nothing any more.
var errRefused = errors.New("broken pipe")

// stale is a connection that takes nothing more once it is broken.
type stale struct {
	net.Conn
	broken atomic.Bool
}

// Write implements [net.Conn].
func (s *stale) Write(p []byte) (int, error) {
	if s.broken.Load() {
		return 0, errRefused
	}
	return s.Conn.Write(p)
}

// TestAConnectionThatWasKept: the server at its other end is no more when it is used again.
// What was not written is sent again, and so is what the owner does once; what may have been
// done is not.
func TestAConnectionThatWasKept(t *testing.T) {
	for name, tc := range map[string]struct {
		deaf, once bool
		key        string // the client's
		want       relay.Outcome
	}{
		"nothing was written":                 {deaf: true},
		"it has an id":                        {once: true},
		"it may have been done":               {want: relay.Unknown},
		"it may have been done, with a key":   {key: "mine", want: relay.Unknown},
		"nothing was written, and has an id":  {deaf: true, once: true},
		"nothing was written, and with a key": {deaf: true, key: "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			require.NoError(t, err)
			got := make(chan http.Header, 3)
			served := make(chan struct{})
			go func() { // ends with the listener
				defer close(served)
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					in := bufio.NewReader(c)
					if r, err := http.ReadRequest(in); err == nil {
						body, _ := io.ReadAll(r.Body)
						r.Header.Set("Body", string(body))
						got <- r.Header
						_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nCoppice-Node: b\r\nContent-Length: 2\r\n\r\nok")
						_, _ = http.ReadRequest(in) // the second gets no answer
					}
					_ = c.Close()
				}
			}()
			var first *stale
			transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
				made := &stale{Conn: c}
				if first == nil {
					first = made
				}
				return made, err
			}}
			defer func() {
				transport.CloseIdleConnections()
				require.NoError(t, l.Close())
				<-served
			}()
			n := New(Options{Transport: transport})
			p := &peer{Node: fleet.Node{ID: "b", URL: "http://" + l.Addr().String()}, gone: t.Context()}
			send := func() relay.Outcome {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://a.test/api/executions", strings.NewReader("{}"))
				if tc.key != "" {
					r.Header.Set("Idempotency-Key", tc.key)
				}
				rec := httptest.NewRecorder()
				state, err := n.forward(rec, r, p, []byte("{}"), tc.once)
				require.Equal(t, state == relay.Answered, rec.Body.String() == "ok", err)
				if state == relay.Unknown {
					t.Log(err)
				}
				return state
			}
			require.Equal(t, relay.Answered, send())
			first.broken.Store(tc.deaf)
			require.Equal(t, tc.want, send())
			require.Len(t, got, 2-min(1, int(tc.want)))
			for len(got) > 0 {
				header := <-got
				require.Equal(t, "{}", header.Get("Body"))
				require.NotContains(t, header, "Idempotency-Key")
			}
		})
	}
}

// TestAnotherLifeAnswers: what was sent to the life before has not reached it, and is begun
// once it is known to be dead.
func TestAnotherLifeAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		a, b := join(t, m, w, "a"), join(t, m, w, "b")
		defer a.leave()
		require.Equal(t, "1", b.run("e1", "k", 0).Body.String())
		b.kill()
		defer b.leave()
		again := join(t, m, w, "b") // at the same address
		defer again.leave()
		rec := a.run("e2", "k", 1)
		require.Equal(t, "epoch_gone", code(rec), rec.Body)
		require.Equal(t, "1", a.run("e2", "k", 2).Body.String())
	})
}

// TestABodyThatIsNotWanted: whoever waits for word that their body is wanted, waits for that of the
// owner, who may refuse it before.
func TestABodyThatIsNotWanted(t *testing.T) {
	var read atomic.Int64
	owner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/full" {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		n, _ := io.Copy(io.Discard, r.Body)
		read.Add(n)
	}))
	defer owner.Close()
	n := New(Options{})
	defer n.own.CloseIdleConnections()
	p := &peer{Node: fleet.Node{ID: "b", URL: owner.URL}, gone: t.Context()}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = n.forward(w, r, p, nil, false)
	}))
	defer front.Close()
	for path, want := range map[string][]string{
		"/room": {"HTTP/1.1 100 Continue", "HTTP/1.1 200 OK"},
		"/full": {"HTTP/1.1 413 Request Entity Too Large"},
	} {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", front.Listener.Addr().String())
		require.NoError(t, err)
		_, err = io.WriteString(c, "PUT "+path+" HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
		require.NoError(t, err)
		in := bufio.NewReader(c)
		var heads []string
		for len(heads) == 0 || strings.Contains(heads[len(heads)-1], " 100 ") {
			line, err := in.ReadString('\n')
			require.NoError(t, err, path)
			heads = append(heads, strings.TrimSpace(line))
			for line != "\r\n" { // the rest of the head
				line, err = in.ReadString('\n')
				require.NoError(t, err, path)
			}
			if strings.Contains(heads[len(heads)-1], " 100 ") {
				_, err = io.WriteString(c, "body")
				require.NoError(t, err)
			}
		}
		require.Equal(t, want, heads, path)
		require.NoError(t, c.Close())
	}
	require.EqualValues(t, 4, read.Load())
}
