// Package handing is how far a server of executions has come with leaving them to the next
// server: who reads is sent away, and how executions end is held back, so that what nobody has
// been told yet can be told by the other one.
//
//	           Hold               Leave
//	served ──────────▶ held ───────────────────▶ left
//	   ▲                │                          what executions come to from then on
//	   └────Release─────┘ what ended meanwhile      is the next server's to tell
//	                      is told
//
// Its methods may be called from any goroutine.
package handing

import (
	"context"
	"errors"
	"sync"
)

// ErrHeld is what a reader hears whose server is being replaced: it comes back, from the last
// event that it saw.
var ErrHeld = errors.New("the server is being replaced")

// Handing is that of one server. Make it with [New].
type Handing struct {
	mu     sync.Mutex
	life   context.Context // of who reads; guarded by mu
	end    context.CancelCauseFunc
	opened chan struct{} // closed when ends are told again; nil: they are; guarded by mu
	left   bool          // guarded by mu
}

// New returns one of a server that serves.
func New() *Handing {
	h := &Handing{}
	h.life, h.end = context.WithCancelCause(context.Background())
	return h
}

// Reading returns the context of one who waits for what executions come to: it ends with
// that of the request, and with Hold.
func (h *Handing) Reading(ctx context.Context) (context.Context, func()) {
	h.mu.Lock()
	life := h.life
	h.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(life, func() { cancel(context.Cause(life)) })
	return ctx, func() { stop(); cancel(nil) }
}

// Ends waits while ends are held back, and reports whether this server tells of one.
func (h *Handing) Ends() bool {
	h.mu.Lock()
	opened, left := h.opened, h.left
	h.mu.Unlock()
	if opened != nil {
		<-opened // it had come before, whatever has been decided since
		return true
	}
	return !left
}

// open lets ends through that were held back. h.mu is held.
func (h *Handing) open() {
	if h.opened != nil {
		close(h.opened)
		h.opened = nil
	}
}

// Hold sends away who reads, and holds ends back.
func (h *Handing) Hold() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.opened == nil && !h.left {
		h.opened = make(chan struct{})
		h.end(ErrHeld)
	}
}

// Release goes on after Hold. After Leave it does nothing.
func (h *Handing) Release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.opened != nil {
		h.open()
		h.life, h.end = context.WithCancelCause(context.Background())
	}
}

// Leave says that the next server tells what executions come to from now on. What was held
// back has ended here.
func (h *Handing) Leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left = true
	h.open()
}

// HasLeft reports whether Leave was called.
func (h *Handing) HasLeft() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.left
}
