package client

import (
	"net/http"
	"sync"
)

// What the headers of an answer say of the server: which life of its process it is, of which "?"
// in a request asks, and which node of a fleet.
const (
	headerServer = "Coppice-Server"
	headerNode   = "Coppice-Node"
)

// lives is which life of a server has started a process, by its path: with that life the process
// is gone. The zero value is empty.
type lives struct {
	mu sync.Mutex
	of map[string]string // guarded by mu
}

// mostLives bounds what is remembered. Of what is forgotten it is only not found.
const mostLives = 1 << 16

// lifeOf is the life of the server that has answered; "": it does not say, or is a fleet, which
// has nodes in place of lives.
func lifeOf(header http.Header) string {
	if header.Get(headerNode) != "" {
		return ""
	}
	return header.Get(headerServer)
}

func (l *lives) started(path string, header http.Header) {
	life := lifeOf(header)
	if life == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil || len(l.of) >= mostLives {
		l.of = map[string]string{}
	}
	l.of[path] = life
}

// startedBy is the life of the server that has started a process; "": it is not known.
func (l *lives) startedBy(path string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of[path]
}
