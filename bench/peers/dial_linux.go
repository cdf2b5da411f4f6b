package peers

import (
	"context"
	"net"
	"syscall"
)

// quickAck is TCP_QUICKACK, which package syscall does not name everywhere.
const quickAck = 12

// dialTuned dials a connection that acknowledges each read at once.
func dialTuned(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return c, nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	return acknowledging{tcp, raw}, nil
}

type acknowledging struct {
	*net.TCPConn
	raw syscall.RawConn
}

// Read reads, and acknowledges what came.
func (c acknowledging) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	_ = c.raw.Control(func(fd uintptr) { // without it the connection is only slower
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, quickAck, 1)
	})
	return n, err
}
