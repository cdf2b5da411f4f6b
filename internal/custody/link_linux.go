package custody

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/coppice-run/coppice/internal/deadline"
	"github.com/coppice-run/coppice/internal/rights"
)

// bounds are those of a message: the names of all that is kept are in one.
var bounds = rights.Bounds{Body: 16 << 20, Files: MostFiles}

// request is what a host asks for. Its members depend on Op; a hello has none.
type request struct {
	N       uint64          `json:"n"`
	Op      string          `json:"op,omitempty"`
	Name    string          `json:"name,omitempty"`
	Note    json.RawMessage `json:"note,omitempty"`
	Common  bool            `json:"common,omitempty"`
	Token   string          `json:"token,omitempty"`
	PID     int             `json:"pid,omitempty"`
	Start   string          `json:"start,omitempty"`
	Dir     string          `json:"dir,omitempty"`
	KeepFor float64         `json:"keep_for,omitempty"` // seconds
}

// The requests of a host that has a custody.
const (
	opPut   = "put"
	opNote  = "note"
	opDrop  = "drop"
	opHand  = "hand"
	opLeave = "leave"
	opEnd   = "end"
)

// answer is what a custodian says to one.
type answer struct {
	N       uint64          `json:"n"`
	Refused string          `json:"refused"`
	PID     int             `json:"pid"`
	Names   []string        `json:"names"`
	Note    json.RawMessage `json:"note"`
	Common  bool            `json:"common"`
	files   []*os.File
}

func (a answer) close() {
	for _, f := range a.files {
		_ = f.Close()
	}
}

// link is a host's connection to a custodian. Any goroutine may use it.
type link struct {
	conn *net.UnixConn

	write sync.Mutex // held while a request is written

	mu    sync.Mutex
	last  uint64                 // guarded by mu: the number of the last request
	waits map[uint64]chan answer // guarded by mu: those that have no answer
	quiet bool                   // guarded by mu: there will be no answer any more

	done chan struct{} // closed when the custodian says nothing more
}

// newLink begins to read from a connection: until it ends, which close sees to.
func newLink(conn *net.UnixConn) *link {
	l := &link{conn: conn, waits: map[uint64]chan answer{}, done: make(chan struct{})}
	go l.read() // done is its join
	return l
}

func (l *link) read() {
	for {
		a, err := receive(l.conn)
		if err != nil {
			break
		}
		l.mu.Lock()
		wait := l.waits[a.N]
		delete(l.waits, a.N)
		l.mu.Unlock()
		if wait == nil {
			a.close() // who asked has gone
			continue
		}
		wait <- a // there is room for one
	}
	l.mu.Lock()
	l.quiet = true
	for n, wait := range l.waits {
		close(wait)
		delete(l.waits, n)
	}
	l.mu.Unlock()
	close(l.done)
}

// close ends the connection and returns when nothing reads it any more.
func (l *link) close() {
	_ = l.conn.Close()
	<-l.done
}

// call makes a request and waits for its answer. A refusal is an error. Nothing is asked when ctx
// has ended before.
func (l *link) call(ctx context.Context, r request, files []*os.File) (answer, error) {
	if ctx.Err() != nil {
		return answer{}, fmt.Errorf("ask the process that keeps sessions: %w", context.Cause(ctx))
	}
	wait := make(chan answer, 1)
	l.mu.Lock()
	if l.quiet {
		l.mu.Unlock()
		return answer{}, ErrGone
	}
	l.last++
	r.N = l.last
	l.waits[r.N] = wait
	l.mu.Unlock()
	if err := l.send(ctx, r, files); err != nil {
		l.forget(r.N, wait)
		return answer{}, err
	}
	select {
	case a, ok := <-wait:
		switch {
		case !ok:
			return a, ErrGone
		case a.Refused != "":
			a.close()
			return a, &RefusedError{Reason: a.Refused}
		}
		return a, nil
	case <-ctx.Done():
		l.forget(r.N, wait)
		return answer{}, fmt.Errorf("wait for the process that keeps sessions: %w", context.Cause(ctx))
	}
}

// forget gives a request up. Its answer may just have come.
func (l *link) forget(n uint64, wait chan answer) {
	l.mu.Lock()
	delete(l.waits, n)
	l.mu.Unlock()
	select {
	case a := <-wait:
		a.close()
	default:
	}
}

// send writes a request with its descriptors. One that was written in part breaks the
// connection, and with it the custody.
func (l *link) send(ctx context.Context, r request, files []*os.File) error {
	// As it is: a note full of what HTML has a meaning for would be six times as long.
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("ask the process that keeps sessions: %w", err)
	}
	l.write.Lock()
	defer l.write.Unlock()
	defer deadline.Free(ctx, l.conn.SetWriteDeadline)()
	n, err := rights.Send(l.conn, text.Bytes(), files)
	switch {
	case err == nil:
		return nil
	case n > 0:
		_ = l.conn.Close()
	case errors.Is(err, rights.ErrFile):
		return fmt.Errorf("keep a descriptor: %w", err)
	case ctx.Err() != nil: // nothing went out, and the custody is as it was
		return fmt.Errorf("ask the process that keeps sessions: %w", context.Cause(ctx))
	}
	return fmt.Errorf("%w: %w", ErrGone, err)
}

// receive reads a message and its descriptors.
func receive(conn *net.UnixConn) (answer, error) {
	body, files, err := rights.Receive(conn, bounds)
	missing := errors.Is(err, rights.ErrMissing)
	if err != nil && !missing {
		return answer{}, err
	}
	a := answer{files: files}
	if e := json.Unmarshal(body, &a); e != nil {
		a.close()
		return answer{}, e
	}
	if missing {
		a.Refused = err.Error()
	}
	return a, nil
}
