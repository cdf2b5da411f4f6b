package fleettest

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// Proxy is a way to a server on the loopback interface that a test cuts: connections break,
// and there are no others until it is mended. It ends with the test.
type Proxy struct {
	to  *url.URL
	at  string
	all sync.WaitGroup

	mu   sync.Mutex
	cut  bool
	open map[net.Conn]struct{}
}

// NewProxy returns a way to a server that is whole.
func NewProxy(t *testing.T, to string) *Proxy {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{to: u, at: l.Addr().String(), open: map[net.Conn]struct{}{}}
	p.all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.all.Go(func() { p.carry(context.WithoutCancel(t.Context()), c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close() // it ends the loop, however it ends
		p.Cut()
		p.all.Wait()
	})
	return p
}

// URL is that of the way.
func (p *Proxy) URL() string { return (&url.URL{Scheme: p.to.Scheme, Host: p.at}).String() }

// Cut breaks all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for c := range p.open {
		_ = c.Close() // it is broken either way
	}
	clear(p.open)
}

// Mend ends a cut.
func (p *Proxy) Mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
}

// keep notes a connection, or closes it while the way is cut.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut {
		_ = c.Close() // nobody reads it
		return false
	}
	p.open[c] = struct{}{}
	return true
}

// carry carries one connection.
func (p *Proxy) carry(ctx context.Context, c net.Conn) {
	if !p.keep(c) {
		return
	}
	var d net.Dialer
	s, err := d.DialContext(ctx, "tcp", p.to.Host)
	if err != nil || !p.keep(s) {
		_ = c.Close() // there is nothing to carry to
		return
	}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{c, s}, {s, c}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // the end of one is that of both
			_, _ = c.Close(), s.Close()
		})
	}
	both.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
	delete(p.open, s)
}
