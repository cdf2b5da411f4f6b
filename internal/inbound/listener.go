package inbound

import (
	"errors"
	"net"
	"syscall"
)

// Listener wraps one that the server is to serve: when the process has no descriptor
// left for a new connection, an old one that the server waits for is closed.
func (c *Connections) Listener(l net.Listener) net.Listener { return &listener{l, c.shed} }

type listener struct {
	net.Listener

	shed func() bool
}

// Accept waits for the next connection.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if full := errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE); full && l.shed() {
			continue
		}
		return conn, err
	}
}
