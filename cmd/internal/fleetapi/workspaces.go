package fleetapi

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/coppice-run/coppice/cmd/internal/fleetapi/about"
	"github.com/coppice-run/coppice/fleet"
)

// stream serves a request about a workspace that this node has. The lease is looked at before
// it, and before each part of its answer: where another may have the workspace, the answer ends.
func (n *Node) stream(w http.ResponseWriter, r *http.Request, h http.Handler, t about.Target, c *claim) {
	if n.isDraining() && t.Begins {
		n.refuse(r.Context(), w, n.ending())
		return
	}
	turn, err := c.own.Begin(r.Context(), fleet.Call{})
	if err != nil {
		n.refuse(r.Context(), w, err)
		return
	}
	n.show(w, r, h, turn)
}

// show serves a request in a turn whose answer leaves part by part.
func (n *Node) show(w http.ResponseWriter, r *http.Request, h http.Handler, turn *fleet.Turn) {
	s := &shown{ResponseWriter: w, ctx: r.Context(), turn: turn}
	h.ServeHTTP(s, r)
	switch {
	case !errors.Is(s.lost, fleet.ErrLost):
		return
	case !s.begun:
		w.Header().Del("Content-Length")
		n.refuse(r.Context(), w, s.lost)
	}
	n.counts.lost.Inc()
	if s.begun {
		panic(http.ErrAbortHandler) // an end in order would say that this was all
	}
}

// shown is an answer whose parts leave while nobody else can have the workspace. It belongs to
// the goroutine of the request, as any other.
type shown struct {
	http.ResponseWriter
	ctx   context.Context //nolint:containedctx // it is that of the request
	turn  *fleet.Turn
	lost  error // why nothing more leaves; nil: it does
	begun bool  // something has left
}

// may reports whether something may leave. It waits while that is not known.
func (s *shown) may() bool {
	if s.lost == nil {
		s.lost = s.turn.Show(s.ctx)
	}
	return s.lost == nil
}

// WriteHeader implements [http.ResponseWriter].
func (s *shown) WriteHeader(status int) {
	if s.may() {
		s.begun = s.begun || status >= http.StatusOK
		s.ResponseWriter.WriteHeader(status)
	}
}

// Write implements [http.ResponseWriter].
func (s *shown) Write(p []byte) (int, error) {
	if !s.may() {
		return 0, s.lost
	}
	s.begun = true
	return s.ResponseWriter.Write(p)
}

// Flush implements [http.Flusher].
func (s *shown) Flush() {
	if s.may() {
		s.begun = true
		_ = http.NewResponseController(s.ResponseWriter).Flush() // one that cannot be flushed is sent at its end
	}
}

// Hijack implements [http.Hijacker]. What is said on the connection then is not looked at.
func (s *shown) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(s.ResponseWriter).Hijack()
}

// Unwrap is for [http.ResponseController].
func (s *shown) Unwrap() http.ResponseWriter { return s.ResponseWriter }
