package inbound

import (
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
		r = r.WithContext(r.Context()) // net/http looks at its own request for what it does with the body
		r.Body = b
		defer func() {
			if !b.whole.Load() {
				one.lingers()
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// body is that of a request. The goroutine of the handler reads it, before it answers:
// the end of the body changes the head of the answer.
type body struct {
	io.ReadCloser

	header http.Header
	one    *connection
	whole  atomic.Bool
}

// Read reads on. The error matches ErrEnding when the server ends.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		if b.whole.CompareAndSwap(false, true) {
			b.header.Del("Connection")
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
