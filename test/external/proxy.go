package external

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy passes TCP connections on to a server and can cut those that became
// WebSockets: what is on its way at that instant is lost, in both directions.
type Proxy struct {
	// URL is where it listens, with the base path of the server.
	URL    string
	target string

	cuts  atomic.Int64
	joins sync.WaitGroup
	done  chan struct{}

	mu    sync.Mutex
	pairs map[*pair]bool // guarded by mu: the WebSockets that are open, and were used by their clients
}

// pair is one connection of a client and the one to the server.
type pair struct{ client, server net.Conn }

func (p *pair) cut() {
	for _, c := range []net.Conn{p.client, p.server} {
		if t, ok := c.(*net.TCPConn); ok {
			_ = t.SetLinger(0) // a reset: what waits in buffers is thrown away
		}
		_ = c.Close()
	}
}

// NewProxy starts a proxy before a server and ends it after the test.
func NewProxy(tb testing.TB, server string) *Proxy {
	tb.Helper()
	u, err := url.Parse(server)
	must(tb, err)
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	must(tb, err)
	p := &Proxy{URL: u.Scheme + "://" + l.Addr().String() + u.Path, target: u.Host, done: make(chan struct{}), pairs: map[*pair]bool{}}
	p.joins.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.joins.Go(func() { p.pass(c) })
		}
	})
	tb.Cleanup(func() {
		close(p.done)
		_ = l.Close()
		p.Cut()
		p.joins.Wait()
	})
	return p
}

// CutEvery cuts every WebSocket again and again, from now on until stop is
// called. A connection counts as one when its client has sent something on it, so
// that a slow machine does not spend all its attempts on handshakes.
func (p *Proxy) CutEvery(d time.Duration) (stop func()) {
	quit := make(chan struct{})
	p.joins.Go(func() {
		t := time.NewTicker(d)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				p.Cut()
			case <-quit:
				return
			case <-p.done:
				return
			}
		}
	})
	return sync.OnceFunc(func() { close(quit) })
}

// Cut cuts every WebSocket once.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for pair := range p.pairs {
		p.cuts.Add(1)
		pair.cut()
		delete(p.pairs, pair)
	}
}

// Cuts counts the WebSockets that were cut.
func (p *Proxy) Cuts() int { return int(p.cuts.Load()) }

// pass serves one connection.
func (p *Proxy) pass(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(context.Background(), "tcp", p.target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	both := &pair{client, server}
	stop := make(chan struct{})
	p.joins.Go(func() {
		select {
		case <-p.done:
			_ = client.Close()
			_ = server.Close()
		case <-stop:
		}
	})
	defer close(stop)

	var up sync.WaitGroup
	up.Go(func() {
		in := bufio.NewReader(client)
		_, _ = in.Peek(1)
		head, _ := in.Peek(in.Buffered()) // a request's first line comes in one piece
		if line, _, _ := bytes.Cut(head, []byte("\r\n")); bytes.Contains(line, []byte("/channels?")) {
			_, _ = io.CopyN(server, in, int64(in.Buffered()))
			if _, err := in.Peek(1); err == nil { // the client has the server's answer, and speaks
				p.mu.Lock()
				p.pairs[both] = true
				p.mu.Unlock()
			}
		}
		_, _ = io.Copy(server, in)
		_ = server.Close()
	})
	_, _ = io.Copy(client, server)
	_ = client.Close()
	up.Wait()
	p.mu.Lock()
	delete(p.pairs, both)
	p.mu.Unlock()
}
