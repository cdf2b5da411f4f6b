package inbound

import (
	"container/list"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// Limits are the times of a server. The zero value of a field is its default.
type Limits struct {
	// Head is how long a client may take for the head of a request. 0: 10 s.
	Head time.Duration
	// Body is how long it may take for a whole request. 0: 1 min.
	Body time.Duration
	// Idle is how long a connection is kept between two requests. 0: 2 min.
	Idle time.Duration
}

const (
	// patience is how long a new connection has to make itself known before it may
	// be closed for a newer one.
	patience = 100 * time.Millisecond
	// linger is how long the rest of a request is taken after its answer.
	linger = 500 * time.Millisecond
	// maxStrangers and minStrangers bound how many strangers there may be, whatever
	// the system allows; as many known connections may be waited for.
	maxStrangers = 512
	minStrangers = 8
)

// ErrEnding is matched by the error of reading a body that the server does not wait
// for any more, because it ends.
var ErrEnding = errors.New("the server is ending")

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// key finds the connection of a request in its context.
type key struct{}

// Connections are those of one server.
type Connections struct {
	most func() int // how many strangers there may be, and how many to wait for
	// room is signalled when there is one stranger fewer.
	room chan struct{}

	mu        sync.Mutex
	all       map[net.Conn]*connection // guarded by mu
	strangers list.List                // of *connection, the oldest first; guarded by mu
	waited    list.List                // of *connection that are known; guarded by mu
	ending    bool                     // guarded by mu
}

// connection is one of them. Its fields are guarded by the mu of its Connections.
type connection struct {
	of    *Connections
	conn  net.Conn
	known bool
	// reading: the server waits for the client, for a request or the rest of one.
	reading bool
	// asked: the head of a request has come, and the request is not over.
	asked bool
	since time.Time
	place *list.Element // nil: in no list
	in    *list.List
}

// Guard makes a server keep to the limits, and watches its connections. It is called
// once, before the server serves and after its Handler and ConnContext were set; the
// server's ConnState and its times of reading become Guard's.
func Guard(server *http.Server, l Limits) *Connections {
	return guard(server, l, func() int { return bound(openFiles()) })
}

// bound is how many strangers a process with that many descriptors may have.
func bound(files int) int { return min(max(files/4, minStrangers), maxStrangers) }

func guard(server *http.Server, l Limits, most func() int) *Connections {
	c := &Connections{most: most, room: make(chan struct{}, 1), all: map[net.Conn]*connection{}}
	server.ReadHeaderTimeout, server.ReadTimeout, server.IdleTimeout = 10*time.Second, time.Minute, 2*time.Minute
	for own, given := range map[*time.Duration]time.Duration{&server.ReadHeaderTimeout: l.Head, &server.ReadTimeout: l.Body, &server.IdleTimeout: l.Idle} {
		if given > 0 {
			*own = given
		}
	}
	server.Handler = watch(server.Handler)
	before := server.ConnContext
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		if before != nil {
			ctx = before(ctx, conn)
		}
		return context.WithValue(ctx, key{}, c.take(conn))
	}
	server.ConnState = c.state
	return c
}

// Known says that the client of a request may ask: it has shown its token. ctx is that
// of the request; another one changes nothing. Any goroutine may call it.
func Known(ctx context.Context) {
	if one, ok := ctx.Value(key{}).(*connection); ok {
		one.of.mu.Lock()
		defer one.of.mu.Unlock()
		one.known = true
		one.placeLocked()
	}
}

// End gives up every connection that the server waits for, now and from now on.
// It is called before the server's Shutdown, which waits for none of them then.
func (c *Connections) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending = true
	for c.strangers.Len() > 0 {
		c.dropLocked(&c.strangers)
	}
	for e := c.waited.Front(); e != nil; e = e.Next() {
		one := e.Value.(*connection)
		if one.asked { // it gets an answer
			_ = one.conn.SetReadDeadline(past) // it is closed already, then
		} else {
			one.close() // its goroutine sees that
		}
	}
}

// take begins with a connection. It waits, for no longer than patience, when strangers
// have come that had no time to make themselves known.
func (c *Connections) take(conn net.Conn) *connection {
	one := &connection{of: c, conn: conn, reading: true, known: conn.LocalAddr().Network() == "unix"}
	for !one.known {
		wait := c.crowded()
		if wait <= 0 {
			break
		}
		timer := time.NewTimer(wait)
		select {
		case <-c.room:
		case <-timer.C:
		}
		timer.Stop()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[conn] = one
	one.placeLocked()
	if c.ending {
		_ = conn.Close() // no request has been taken yet
	}
	return one
}

// crowded makes room for a stranger, or returns how long to wait before that may be
// done.
func (c *Connections) crowded() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	for most := c.most(); c.strangers.Len() >= most && !c.ending; {
		if age := time.Since(c.strangers.Front().Value.(*connection).since); age < patience {
			return patience - age
		}
		c.dropLocked(&c.strangers)
	}
	return 0
}

// state follows what the server says of a connection.
func (c *Connections) state(conn net.Conn, s http.ConnState) {
	switch s {
	case http.StateIdle:
		c.mu.Lock()
		defer c.mu.Unlock()
		if one := c.all[conn]; one != nil {
			one.asked = false
			one.readLocked(true)
		}
	case http.StateHijacked, http.StateClosed:
		c.mu.Lock()
		defer c.mu.Unlock()
		if one := c.all[conn]; one != nil {
			delete(c.all, conn)
			one.leaveLocked()
		}
	case http.StateNew, http.StateActive: // see take and watch
	}
}

// shed closes a connection for want of descriptors; false: none can be closed.
func (c *Connections) shed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dropLocked(&c.strangers) || c.dropLocked(&c.waited)
}

// dropLocked closes the oldest of a list.
func (c *Connections) dropLocked(l *list.List) bool {
	oldest := l.Front()
	if oldest == nil {
		return false
	}
	one := oldest.Value.(*connection)
	one.leaveLocked()
	delete(c.all, one.conn)
	one.close() // its goroutine sees that
	return true
}

// readLocked says whether the server waits for the client now.
func (one *connection) readLocked(on bool) {
	one.reading = on
	if one.in == &one.of.waited {
		one.leaveLocked() // its wait begins again
	}
	one.placeLocked()
}

// placeLocked puts a connection where it belongs, unless it is gone.
func (one *connection) placeLocked() {
	var to *list.List
	switch {
	case one.of.all[one.conn] != one:
	case !one.known:
		to = &one.of.strangers
	case one.reading:
		to = &one.of.waited
	}
	if to == one.in {
		return
	}
	one.leaveLocked()
	if to == nil {
		return
	}
	one.since, one.in, one.place = time.Now(), to, to.PushBack(one)
	if to == &one.of.waited {
		for most := one.of.most(); to.Len() > most; {
			one.of.dropLocked(to)
		}
	}
}

// close closes a connection without a word: TLS would say that it ends, and wait for room
// to do so.
func (one *connection) close() {
	conn := one.conn
	if over, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = over.NetConn()
	}
	_ = conn.Close() // whoever uses it sees that
}

// leaveLocked takes a connection out of its list.
func (one *connection) leaveLocked() {
	if one.in == nil {
		return
	}
	one.in.Remove(one.place)
	if one.in == &one.of.strangers {
		select {
		case one.of.room <- struct{}{}:
		default: // it is signalled already
		}
	}
	one.in, one.place = nil, nil
}
