package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/loopback"
)

// Inherited are the listeners of a server before this one. Connections that have come
// meanwhile wait in them.
type Inherited struct {
	// Address listens on the address, Socket on the Unix socket; nil: there is none. They
	// are the caller's to close.
	Address, Socket *os.File
}

// listener can stop to take connections, and go on. Those that come meanwhile wait in it.
type listener struct {
	net.Listener

	taking  chan struct{} // has one in it while the system is asked for a connection
	mu      sync.Mutex
	resumed chan struct{} // closed when it goes on; nil: it takes connections; guarded by mu
	closed  chan struct{}
	once    sync.Once
}

func newListener(l net.Listener) *listener {
	return &listener{Listener: l, taking: make(chan struct{}, 1), closed: make(chan struct{})}
}

// Accept waits for a connection.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, resumed, err := l.take()
		switch {
		case resumed != nil:
			select {
			case <-resumed:
			case <-l.closed:
				return nil, net.ErrClosed
			}
		case !errors.Is(err, os.ErrDeadlineExceeded): // else pause has called it away
			return conn, err
		}
	}
}

// take asks the system for a connection, unless none is to be taken: then it returns what is
// closed when that is over.
func (l *listener) take() (net.Conn, <-chan struct{}, error) {
	l.taking <- struct{}{}
	defer func() { <-l.taking }()
	l.mu.Lock()
	resumed := l.resumed
	l.mu.Unlock()
	if resumed != nil {
		return nil, resumed, nil
	}
	conn, err := l.Listener.Accept()
	return conn, nil, err
}

// deadliner is what the listeners of the system can.
type deadliner interface{ SetDeadline(t time.Time) error }

// pause takes no connection any more when it returns.
func (l *listener) pause() {
	d, ok := l.Listener.(deadliner)
	l.mu.Lock()
	if l.resumed == nil {
		l.resumed = make(chan struct{})
		if ok {
			_ = d.SetDeadline(time.Unix(1, 0)) // one that is closed takes none either
		}
	}
	l.mu.Unlock()
	if ok { // who was about to take one has it then, or has been called away
		l.taking <- struct{}{}
		<-l.taking
	}
}

// resume goes on.
func (l *listener) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.resumed == nil {
		return
	}
	if d, ok := l.Listener.(deadliner); ok {
		_ = d.SetDeadline(time.Time{})
	}
	close(l.resumed)
	l.resumed = nil
}

// Close closes it here: another process that has it goes on.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// own returns the listeners of the server.
func (s *Server) own() []*listener {
	all := []*listener{s.l}
	if s.socket != nil {
		all = append(all, s.socket)
	}
	return all
}

// Pause takes no new connections until [Server.Resume]: they wait. The two are called by one
// goroutine at a time.
func (s *Server) Pause() {
	for _, l := range s.own() {
		l.pause()
	}
}

// Resume takes connections again.
func (s *Server) Resume() {
	for _, l := range s.own() {
		l.resume()
	}
}

// Bequeath returns copies of the listeners, for the server that comes after this one. The
// caller closes them.
func (s *Server) Bequeath() (Inherited, error) {
	var in Inherited
	address, ok := s.l.Listener.(*net.TCPListener)
	if !ok {
		return in, fmt.Errorf("hand over %s: it is no listener of the system", s.URL())
	}
	var err error
	if in.Address, err = address.File(); err != nil {
		return in, fmt.Errorf("hand over %s: %w", s.URL(), err)
	}
	if s.socket == nil {
		return in, nil
	}
	if socket, ok := s.socket.Listener.(*net.UnixListener); ok {
		if in.Socket, err = socket.File(); err != nil {
			return in, errors.Join(fmt.Errorf("hand over %s: %w", s.Socket(), err), in.Address.Close())
		}
	}
	return in, nil
}

// Yield leaves the Unix socket where it is when the server ends: another one has it.
func (s *Server) Yield() {
	if s.socket == nil {
		return
	}
	if l, ok := s.socket.Listener.(*net.UnixListener); ok {
		l.SetUnlinkOnClose(false)
	}
}

// Close closes the files.
func (in Inherited) Close() {
	for _, f := range []*os.File{in.Address, in.Socket} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// adopt goes on with the listeners of an earlier server.
func (s *Server) adopt(in Inherited) error {
	l, err := net.FileListener(in.Address)
	if err != nil {
		return fmt.Errorf("take over the address of the server: %w", err)
	}
	s.l = newListener(l)
	if _, is := l.(*net.TCPListener); !is || !loopback.Addr(l.Addr()) {
		return errors.Join(notLoopback(l.Addr().String()), l.Close())
	}
	if in.Socket == nil {
		return nil
	}
	u, err := net.FileListener(in.Socket)
	if err != nil {
		return errors.Join(fmt.Errorf("take over the Unix socket of the server: %w", err), l.Close())
	}
	if socket, is := u.(*net.UnixListener); is {
		socket.SetUnlinkOnClose(true)
	}
	s.socket = newListener(u)
	return nil
}

// plain is what the system says, without the address that we name ourselves.
func plain(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}

// listen listens on the address of the options.
func (s *Server) listen(ctx context.Context, o Options) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", o.Addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w; take another port, 0 for a free one", o.Addr, plain(err))
	}
	s.l = newListener(l)
	if o.Beyond == nil && !loopback.Addr(l.Addr()) { // localhost may be anything in the system's table of hosts
		return errors.Join(notLoopback(o.Addr), l.Close())
	}
	if o.Socket == "" {
		return nil
	}
	u, err := listenSocket(ctx, o.Socket)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	s.socket = newListener(u)
	return nil
}
