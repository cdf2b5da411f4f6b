package jupyter

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/coppice-run/coppice/internal/opportunity"
)

// tunedConn is the TCP connection below a WebSocket.
type tunedConn struct {
	net.Conn
	ack func()
	// silence is how long Read waits for a byte, in nanoseconds; 0 leaves the
	// deadline to others, as during the handshake. subject is who is to send one.
	silence atomic.Int64
	subject func() opportunity.Subject
	// left is how many bytes may still be read, plus one, while the handshake
	// lasts; 0: any number. What parses the answer has no bound of its own.
	left atomic.Int64
}

// maxHeader bounds the header of an answer, in bytes.
const maxHeader = 1 << 20

// errHeader says that a server went on with the header of an answer for ever.
var errHeader = errors.New("the header of the answer has no end")

// Read reads, acknowledges, and moves the deadline: any byte proves that the
// other side lives, also in the middle of a message that takes minutes.
func (c *tunedConn) Read(p []byte) (int, error) {
	n, err := c.listen(p)
	c.ack()
	if left := c.left.Load(); left > 0 {
		if int64(n) >= left {
			return 0, errHeader
		}
		c.left.Store(left - int64(n))
	}
	return n, err
}

// listen reads, and waits for a byte for as long as the other side had the chance to send
// one.
func (c *tunedConn) listen(p []byte) (int, error) {
	silence := time.Duration(c.silence.Load())
	if silence <= 0 {
		return c.Conn.Read(p)
	}
	var q quiet
	defer q.over()
	for wait := silence / quietPart; ; {
		if err := c.SetReadDeadline(time.Now().Add(wait)); err != nil {
			return 0, err
		}
		n, err := c.Conn.Read(p)
		if n > 0 || err == nil || !timedOut(err) {
			return n, err
		}
		if wait = q.goesOn(silence, c.subject()); wait <= 0 {
			return n, err
		}
	}
}

// dialer dials TCP for one handshake and can break it off.
type dialer struct {
	client *Client

	mu     sync.Mutex
	conn   *tunedConn
	broken bool
}

// dial is the NetDialContext of the handshake.
func (d *dialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := d.client.opts.dialer()(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	t := &tunedConn{Conn: conn, ack: quickACK(conn), subject: d.client.server}
	t.left.Store(maxHeader + 1)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	d.conn = t
	return t, nil
}

// breakOff closes the connection, if there is one, and forbids others.
func (d *dialer) breakOff() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.broken = true
	if d.conn != nil {
		_ = d.conn.Close()
	}
}

// dial opens the WebSocket of a kernel. session is the client's session id: the
// server makes it the identity of the connection.
func (c *Client) dial(ctx context.Context, kernel, session string) (*websocket.Conn, *tunedConn, error) {
	ctx, done := opportunity.Within(ctx, patience(c.opts.DialTimeout), c.kernels())
	defer done()
	path := kernelPath(kernel) + "/channels"
	started := time.Now()

	d := &dialer{client: c}
	ws := &websocket.Dialer{
		NetDialContext: d.dial,
		Subprotocols:   []string{subprotocolV1},
		ReadBufferSize: 32 << 10,
	}
	if t, ok := c.http.Transport.(*http.Transport); ok {
		ws.Proxy = t.Proxy
		if t.TLSClientConfig != nil {
			ws.TLSClientConfig = t.TLSClientConfig.Clone()
			ws.TLSClientConfig.NextProtos = []string{"http/1.1"}
		}
	}
	// The handshake itself heeds ctx's deadline, but not its end.
	stop := context.AfterFunc(ctx, d.breakOff)
	conn, resp, err := ws.DialContext(ctx, c.ws+path+"?session_id="+url.QueryEscape(session), c.header()) //nolint:bodyclose // the body of a handshake is in memory, and the caller's connection is its rest
	ended := !stop()

	record := TraceRecord{Direction: Requested, Method: http.MethodGet, Path: path, Duration: time.Since(started)}
	if resp != nil {
		record.Code = resp.StatusCode
	}
	c.trace(record)

	switch {
	case err == nil && !ended:
	case err == nil:
		_ = conn.Close()
		return nil, nil, unanswered(ctx, http.MethodGet, path, net.ErrClosed)
	case ctx.Err() == nil && resp != nil && errors.Is(err, websocket.ErrBadHandshake):
		return nil, nil, newStatusError(http.MethodGet, path, resp.StatusCode, nil)
	default:
		return nil, nil, unanswered(ctx, http.MethodGet, path, err)
	}
	conn.SetReadLimit(c.opts.MaxMessage)
	d.conn.left.Store(0)
	d.conn.silence.Store(int64(c.opts.Silence))
	return conn, d.conn, nil
}
