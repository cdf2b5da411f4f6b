package kernelserver

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coppice-run/coppice/internal/deadline"
)

// handed is how the host and a gateway in a kernel of its own reach each other: the host
// makes the connections, and hands one end of each in over the gateway's standard input; see
// Handed in walled.py.
type handed struct {
	conn *net.UnixConn

	write  sync.Mutex // held while something is said
	calls  chan net.Conn
	serves atomic.Bool   // somebody accepts the calls of the host
	served chan struct{} // closed when nobody does any more
	// closed is closed by close, and over when the goroutine has ended, which close joins.
	closed, over chan struct{}
	once         sync.Once
}

// newHanded returns it, and what becomes the gateway's standard input, which the caller closes.
func newHanded() (*handed, *os.File, error) {
	ours, theirs, err := ends()
	if err != nil {
		return nil, nil, err
	}
	h := &handed{conn: ours, calls: make(chan net.Conn), served: make(chan struct{}), closed: make(chan struct{}), over: make(chan struct{})}
	go h.listen() // ends with close
	return h, theirs, nil
}

// ends makes two ends of a connection.
func ends() (ours *net.UnixConn, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket pair: %w", err)
	}
	own := os.NewFile(uintptr(pair[0]), "gateway")
	theirs = os.NewFile(uintptr(pair[1]), "gateway")
	conn, err := net.FileConn(own) // a duplicate
	_ = own.Close()
	if err != nil {
		_ = theirs.Close()
		return nil, nil, fmt.Errorf("use a socket pair: %w", err)
	}
	return conn.(*net.UnixConn), theirs, nil
}

// What is said.
const (
	sayServe = 'c' // serve this
	sayCall  = 'h' // a connection for a call of the host: wanted, or here it is
	sayEnd   = 'k' // end this kernel
)

// dial returns a new connection to the gateway, which has it when it next looks.
func (h *handed) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return h.connect(ctx, sayServe)
}

func (h *handed) connect(ctx context.Context, kind byte) (net.Conn, error) {
	ours, theirs, err := ends()
	if err != nil {
		return nil, err
	}
	err = h.say(ctx, []byte{kind}, unix.UnixRights(int(theirs.Fd())))
	_ = theirs.Close()
	if err != nil {
		_ = ours.Close()
		return nil, &net.OpError{Op: "dial", Net: "unix", Err: fmt.Errorf("hand the gateway a connection: %w", err)}
	}
	return ours, nil
}

// sayTime bounds what is said to a gateway that does not read.
const sayTime = 5 * time.Second

func (h *handed) say(ctx context.Context, text, rights []byte) error {
	h.write.Lock()
	defer h.write.Unlock()
	until := time.Now().Add(sayTime)
	if limit, ok := ctx.Deadline(); ok && limit.Before(until) {
		until = limit
	}
	if err := h.conn.SetWriteDeadline(until); err != nil {
		return err
	}
	defer deadline.Past(ctx, h.conn.SetWriteDeadline)()
	_, _, err := h.conn.WriteMsgUnix(text, rights, nil)
	if errors.Is(err, syscall.EPIPE) { // as where nobody listens on a port
		return errors.Join(syscall.ECONNREFUSED, err)
	}
	return err
}

// end asks the gateway to end the kernel that has this number there.
func (h *handed) end(ctx context.Context, pid int) error {
	return h.say(ctx, binary.BigEndian.AppendUint32([]byte{sayEnd}, uint32(pid)), nil) //nolint:gosec // a process id
}

// listen makes the connections for calls of the host, until the gateway has ended.
func (h *handed) listen() {
	defer close(h.over)
	var asked [64]byte
	for {
		n, err := h.conn.Read(asked[:])
		if err != nil {
			return
		}
		for range n { // code behind the walls may say anything: each byte asks for one more
			conn, err := h.connect(context.Background(), sayCall)
			if err != nil {
				continue
			}
			if !h.serves.Load() {
				_ = conn.Close()
				continue
			}
			select {
			case h.calls <- conn:
			case <-h.served:
				_ = conn.Close()
			case <-h.closed:
				_ = conn.Close()
			}
		}
	}
}

// close ends it. What was dialled goes on until the gateway ends.
func (h *handed) close() {
	if h == nil {
		return
	}
	h.once.Do(func() {
		close(h.closed)
		_ = h.conn.Close()
	})
	<-h.over
}

// listener hands out the connections on which the host is called.
type listener struct {
	h    *handed
	once sync.Once
}

// Listener returns what accepts the calls of the host from code in a kernel of the gateway's own;
// nil where that code dials the host itself. It is asked for once.
func (s *Server) Listener() net.Listener {
	if s.handed == nil {
		return nil
	}
	s.handed.serves.Store(true)
	return &listener{h: s.handed}
}

// Accept waits for the next.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.h.calls:
		return conn, nil
	case <-l.h.served:
	case <-l.h.closed:
	}
	return nil, net.ErrClosed
}

// Close ends the wait.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.h.served) })
	return nil
}

// Addr is that of the gateway.
func (l *listener) Addr() net.Addr { return l.h.conn.LocalAddr() }
