package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
	"github.com/coppice-run/coppice/messages"
)

// cutter is a proxy that cuts its connections after some bytes of answers, so
// often, and then lets them be.
type cutter struct {
	l     net.Listener
	to    string
	cuts  atomic.Int64
	most  int64
	joins sync.WaitGroup
}

func cut(t *testing.T, to string, most int64) *cutter {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &cutter{l: l, to: strings.TrimPrefix(to, "http://"), most: most}
	c.joins.Go(func() { // ends when the listener is closed
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.joins.Go(func() { c.carry(conn) })
		}
	})
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		c.joins.Wait()
	})
	return c
}

// carry carries one connection, until either side ends it or the cut.
func (c *cutter) carry(conn net.Conn) {
	defer conn.Close()
	var d net.Dialer
	there, err := d.DialContext(context.Background(), "tcp", c.to)
	if err != nil {
		return
	}
	defer there.Close()
	var up sync.WaitGroup
	up.Go(func() { // ends when a side is closed
		_, _ = io.Copy(there, conn)
		_ = there.Close()
	})
	if c.cuts.Load() < c.most {
		sizes := []int64{1, 300, 3000, 30000}
		_, err = io.CopyN(conn, there, 1+rand.Int64N(sizes[rand.IntN(len(sizes))]))
		if err == nil {
			c.cuts.Add(1)
		}
		_ = conn.(*net.TCPConn).SetLinger(0) // what was sent is lost too
	} else {
		_, _ = io.Copy(conn, there)
	}
	_ = conn.Close()
	_ = there.Close()
	up.Wait()
}

// TestAHundredCuts reads one execution over a connection that is cut a hundred
// times: every event comes once.
func TestAHundredCuts(t *testing.T) {
	t.Parallel()
	s := serve(t, coppice.Options{}, httpapi.Options{LogMemory: 16 << 10})
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	const lines = 8000
	// Lines of one stream come together, in events that can be larger than what any connection
	// lets through; lines of two streams by turns, one by one.
	code := fmt.Sprintf("import sys\nfor i in range(%d): print('line', i, 'x' * 60, file=(sys.stdout, sys.stderr)[i %% 2])", lines)
	proxy := cut(t, s.url, 100)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	// The answer to a start that is repeated when the execution has ended has its result, which no
	// connection that is cut lets through: it comes when there are no more cuts.
	c, err := client.New(client.Options{URL: "http://" + proxy.l.Addr().String(), Token: token, Transport: transport, Patience: 3 * time.Minute})
	require.NoError(t, err)
	// The start is cut too, and is repeated: it runs once.
	var seen []messages.Event
	for e, err := range c.Run(ctx, client.Execute{ID: "cut", Session: "a", Cells: cells("n = globals().get('n', 0) + 1", code, "print(n)")}) {
		require.NoError(t, err)
		seen = append(seen, e)
	}
	require.GreaterOrEqual(t, proxy.cuts.Load(), int64(100))
	final, ok := seen[len(seen)-1].(messages.Final)
	require.True(t, ok)
	require.Equal(t, messages.OutcomeOK, final.Result.Outcome)
	require.Equal(t, "1", final.Result.Cells[2].Output)
	line, out := 0, ""
	for i, e := range seen {
		require.Equal(t, uint64(i+1), e.Pos().Seq)
		if text, ok := e.(messages.Stream); ok && text.Cell == 1 {
			out += text.Text
			for {
				one, rest, whole := strings.Cut(out, "\n")
				if !whole {
					break
				}
				require.Equal(t, fmt.Sprintf("line %d %s", line, strings.Repeat("x", 60)), one)
				line, out = line+1, rest
			}
		}
	}
	require.Equal(t, lines, line)
	require.Greater(t, len(seen), lines)
	t.Logf("%d events, %d lines, %d cuts", len(seen), line, proxy.cuts.Load())

	again := overSocket(ctx, t, cut(t, s.url, 100), len(seen))
	for i, e := range again {
		require.Equal(t, text(t, seen[i]), text(t, e))
	}
}

// overSocket reads the events over WebSockets that are cut, each time from the one
// after the last that came.
func overSocket(ctx context.Context, t *testing.T, proxy *cutter, most int) []messages.Event {
	t.Helper()
	var seen []messages.Event
	for dials := 1; ; dials++ {
		url := fmt.Sprintf("ws://%s/api/executions/cut/events?after=%d", proxy.l.Addr(), len(seen))
		conn, resp, err := websocket.DefaultDialer.DialContext(ctx, url, http.Header{"Authorization": {"Bearer " + token}})
		require.NoError(t, ctx.Err())
		if err != nil {
			continue // cut before it was there
		}
		require.NoError(t, resp.Body.Close())
		for err == nil {
			var data []byte
			if _, data, err = conn.ReadMessage(); err != nil {
				break
			}
			e, bad := messages.ParseEvent(data)
			require.NoError(t, bad)
			require.Equal(t, uint64(len(seen)+1), e.Pos().Seq)
			seen = append(seen, e)
		}
		require.NoError(t, conn.Close())
		if websocket.IsCloseError(err, websocket.CloseNormalClosure) {
			require.Len(t, seen, most)
			if proxy.cuts.Load() >= proxy.most {
				t.Logf("over WebSockets: %d events, %d cuts, %d connections", len(seen), proxy.cuts.Load(), dials)
				return seen
			}
			seen = nil // read once more, until there were enough
		}
	}
}

// TestAClientThatLeaves cancels what it has started.
func TestAClientThatLeaves(t *testing.T) {
	t.Parallel()
	s := serve(t, coppice.Options{}, httpapi.Options{LogMax: 2000, KeepAlive: 50 * time.Millisecond})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	outcome := messages.Outcome("")
	for e, err := range s.Run(ctx, client.Execute{ID: "ctx", Session: "a", Cells: cells("import time\nprint('here', flush=True)\ntime.sleep(600)")}) {
		require.NoError(t, err)
		if final, ok := e.(messages.Final); ok {
			outcome = final.Result.Outcome
		} else if e.Type() == "stdout" {
			leave()
		}
	}
	require.Equal(t, messages.OutcomeCancelled, outcome)
	for e, err := range s.Run(t.Context(), client.Execute{ID: "loop", Session: "a", Cells: cells("print('here', flush=True)\ntime.sleep(600)")}) {
		require.NoError(t, err)
		if e.Type() == "stdout" {
			break
		}
	}
	x, err := s.Wait(t.Context(), "loop")
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeCancelled, x.Outcome)

	// Executions that are started one after the other run in that order.
	var last string
	for i := range 30 {
		x, err := s.Start(t.Context(), client.Execute{Session: "a", Cells: cells(fmt.Sprintf("order = [*globals().get('order', []), %d]", i))})
		require.NoError(t, err)
		last = x.ID
	}
	_, err = s.Wait(t.Context(), last)
	require.NoError(t, err)
	require.Equal(t, "True", s.run("a", "order == list(range(30))").Cells[0].Output)

	// A log that is full leaves output out and says so; the rest is there.
	x, err = s.Start(t.Context(), client.Execute{Session: "a", Cells: cells("for i in range(50): print('x' * 100, flush=True); time.sleep(.001)", "raise ValueError('told')")})
	require.NoError(t, err)
	var types []string
	for e, err := range s.Events(t.Context(), x.ID, 0) {
		require.NoError(t, err)
		types = append(types, e.Type())
	}
	require.Contains(t, types, "notice")
	require.Contains(t, types, "error")
	// The server's token is not in the sessions' environment.
	require.Equal(t, "None", s.run("a", "import os; print(os.environ.get('COPPICE_TOKEN'))").Cells[0].Output)
}

// TestTheSocket serves the same, to who can open it and knows the token.
func TestTheSocket(t *testing.T) {
	t.Parallel()
	s := serve(t, coppice.Options{}, httpapi.Options{})
	c, err := client.New(client.Options{URL: "http://127.0.0.1:1", Token: token, Socket: s.socket})
	require.NoError(t, err)
	defer c.Close()
	h, err := c.Health(t.Context())
	require.NoError(t, err)
	require.Equal(t, "test", h.Version)
	c, err = client.New(client.Options{URL: "http://127.0.0.1:1", Token: "other", Socket: s.socket})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Health(t.Context())
	require.Equal(t, http.StatusUnauthorized, statusOf(t, err))
}
