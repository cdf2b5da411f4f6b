package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"sync"
	"time"
)

// pending counts the requests of a client that were not answered yet. The
// transport takes the end of the input for the end of the client; a client that
// writes its requests and closes its end still wants the answers.
type pending struct {
	ctx  context.Context
	gone func() bool   // no one reads the answers
	idle chan struct{} // has a value when n may have become 0

	mu sync.Mutex
	n  int // guarded by mu
	// ids are those of the requests that have no answer yet; guarded by mu.
	ids map[string]bool
}

// begin counts a request; false: one with the same id has no answer yet, and nobody could tell
// their answers apart.
func (p *pending) begin(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ids[id] {
		return false
	}
	if p.ids == nil {
		p.ids = map[string]bool{}
	}
	p.ids[id] = true
	p.n++
	return true
}

// end counts an answer, or that there will be none.
func (p *pending) end(id string) {
	p.mu.Lock()
	delete(p.ids, id)
	p.mu.Unlock()
	p.add(-1)
}

func (p *pending) add(by int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n += by; p.n <= 0 {
		select {
		case p.idle <- struct{}{}:
		default:
		}
	}
}

// lookForReader is how often it is looked whether the client is still there.
const lookForReader = 500 * time.Millisecond

// wait returns when every request is answered, when there is no one to read the
// answers, or at the end of the server.
func (p *pending) wait() {
	look := time.NewTicker(lookForReader)
	defer look.Stop()
	for {
		p.mu.Lock()
		n := p.n
		p.mu.Unlock()
		if n <= 0 {
			return
		}
		select {
		case <-p.idle:
		case <-look.C:
			if p.gone() {
				return
			}
		case <-p.ctx.Done():
			return
		}
	}
}

// message is what tells requests, answers and notifications apart.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		RequestID json.RawMessage `json:"requestId"` // of a request that is cancelled
	} `json:"params"`
}

func (m message) named() bool { return len(m.ID) > 0 && string(m.ID) != "null" }

// lineScanner finds the lines of a stream that comes in pieces.
type lineScanner struct{ rest []byte }

// feed calls found for each line that p completes.
func (l *lineScanner) feed(p []byte, found func(message)) {
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			l.rest = append(l.rest, p...)
			return
		}
		line := p[:i]
		if len(l.rest) > 0 {
			line = append(l.rest, line...)
			l.rest = nil
		}
		var m message
		if json.Unmarshal(line, &m) == nil { // what it cannot be the transport says
			found(m)
		}
		p = p[i+1:]
	}
}

// answers is the output, which is not the transport's to close. The transport writes
// whole lines.
type answers struct {
	out  io.Writer
	open *pending

	mu    sync.Mutex
	lines lineScanner // guarded by mu
}

// refuse writes an answer that is not the transport's.
func (a *answers) refuse(line []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, _ = a.out.Write(line) // who has gone is found by the transport
}

// Write writes to the output.
func (a *answers) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, err := a.out.Write(p)
	a.lines.feed(p[:n], func(m message) {
		if m.named() && m.Method == "" {
			a.open.end(string(m.ID))
		}
	})
	return n, err
}

// Close does nothing.
func (*answers) Close() error { return nil }
