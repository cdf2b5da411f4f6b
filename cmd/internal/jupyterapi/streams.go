package jupyterapi

import (
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice/messages"
)

const (
	// together is how long what code prints is gathered before it is one message, after there
	// was one: clients take long for each, and notebooks keep each.
	together = 50 * time.Millisecond
	// soon is how long the first of it waits for more: a cell that prints some lines has one
	// output then, as on ipykernel, and notebooks that were run twice are the same.
	soon = 20 * time.Millisecond
	// maxPiece is how much is not gathered any longer, in bytes.
	maxPiece = 64 << 10
)

// streams hands on what code prints: soon when nothing was for a while, else all of an
// interval as one piece. Its methods may be called from any goroutine; pieces are handed on
// one at a time, in the order of the text.
type streams struct {
	publish func(name, text string)

	mu    sync.Mutex
	name  string          // of the stream that waits; guarded by mu, as what follows
	waits strings.Builder // what was not handed on yet
	last  time.Time       // when something was handed on
	timer *time.Timer     // hands on what waits; nil while nothing does
}

// add takes what was printed.
func (s *streams) add(name, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.name != name {
		s.send()
	}
	s.name = name
	s.waits.WriteString(text)
	switch {
	case s.waits.Len() >= maxPiece:
		s.send()
	case s.timer == nil:
		s.timer = time.AfterFunc(max(together-time.Since(s.last), soon), s.flush)
	}
}

// tell takes a sentence of the host, which clients read on stderr; "" is none.
func (s *streams) tell(sentence string) {
	if sentence != "" {
		s.add(string(messages.StderrStream), sentence+"\n")
	}
}

// flush hands on what waits. When it returns, nothing is being handed on.
func (s *streams) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.send()
}

// send is flush for those who hold mu.
func (s *streams) send() {
	if s.timer != nil {
		s.timer.Stop() // one that runs already finds nothing, or what came since
		s.timer = nil
	}
	if s.waits.Len() == 0 {
		return
	}
	s.publish(s.name, s.waits.String())
	s.waits.Reset()
	s.last = time.Now()
}
