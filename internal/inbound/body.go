package inbound

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// watch lets a handler answer before the body of its request has come.
func watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one, _ := r.Context().Value(key{}).(*connection)
		if one == nil { // not a connection of this server's
			next.ServeHTTP(w, r)
			return
		}
		remains := r.Body != nil && r.Body != http.NoBody
		one.reads(remains)
		if !remains {
			next.ServeHTTP(w, r)
			return
		}
		// net/http takes up to 256 KiB of the body before it sends an answer that
		// leaves the connection open, and after one that does not.
		w.Header().Set("Connection", "close")
		b := &body{ReadCloser: r.Body, header: w.Header(), one: one}
		r = r.WithContext(context.WithValue(r.Context(), ofRequest{}, b)) // net/http looks at its own request for what it does with the body
		r.Body = b
		defer func() {
			if !b.whole.Load() {
				one.lingers()
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// ofRequest is the key under which the context of a request has its body.
type ofRequest struct{}

// body is that of a request. The goroutine of the handler reads it, before it answers:
// the end of the body changes the head of the answer, unless it is relayed.
type body struct {
	io.ReadCloser

	header  http.Header
	one     *connection
	whole   atomic.Bool
	relayed bool
}

// ContinueTimeout is how long who sends a request on waits for word that its body is wanted, where
// the client waits for that: what is refused is refused before the body comes.
const ContinueTimeout = time.Second

// Relayed is called before a request is sent on to another server with the body that is still to
// come, which other goroutines read then while the answer is written. Else the end of the body would
// change the head of the answer in the middle of that; and net/http might take it away when the answer
// begins, so that whoever sends it on gives up and an answer that was good is cut off.
//
// What it returns is where the answer goes and the request to send on, whose body stays as it is when
// it could not be sent: then [Unsent] is called.
func Relayed(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *http.Request) {
	_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/2 is so by itself
	w = continued{w}
	b, ok := r.Context().Value(ofRequest{}).(*body)
	if !ok {
		return w, r
	}
	b.relayed = true
	w.Header().Del("Connection")
	on := r.WithContext(r.Context())
	on.Body = io.NopCloser(r.Body)
	return w, on
}

// continued leaves out the word of the other server that the body is wanted: the read of the body,
// which that word begins, tells the client so by itself, and sometimes before it. Once is enough.
type continued struct{ http.ResponseWriter }

// WriteHeader implements [http.ResponseWriter].
func (c continued) WriteHeader(code int) {
	if code != http.StatusContinue {
		c.ResponseWriter.WriteHeader(code)
	}
}

// Unwrap is what [http.ResponseController] asks for.
func (c continued) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// Unsent is called when a request that was [Relayed], or one with its context, could not be sent on, before
// anything else answers: the client learns that the connection ends with the answer, unless all of its
// body has come.
func Unsent(w http.ResponseWriter, r *http.Request) {
	if b, ok := r.Context().Value(ofRequest{}).(*body); ok && !b.whole.Load() {
		w.Header().Set("Connection", "close")
	}
}

// Read reads on. The error matches ErrEnding when the server ends.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		if b.whole.CompareAndSwap(false, true) {
			if !b.relayed {
				b.header.Del("Connection")
			}
			b.one.reads(false)
		}
	case b.one.ends():
		err = errors.Join(ErrEnding, err)
	}
	return n, err
}

// reads says whether the server waits for the rest of a request.
func (one *connection) reads(on bool) {
	one.of.mu.Lock()
	defer one.of.mu.Unlock()
	one.asked = true
	one.readLocked(on)
	if on && one.of.ending {
		_ = one.conn.SetReadDeadline(past)
	}
}

// ends reports whether the server ends.
func (one *connection) ends() bool {
	one.of.mu.Lock()
	defer one.of.mu.Unlock()
	return one.of.ending
}

// lingers bounds how long the rest of a request is waited for that was answered.
func (one *connection) lingers() {
	one.of.mu.Lock()
	defer one.of.mu.Unlock()
	until := time.Now().Add(linger)
	if one.of.ending {
		until = past
	}
	_ = one.conn.SetReadDeadline(until) // a connection that is gone needs none
}
