package envd

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// quiet is how long a client that sends a file, or input, may send nothing.
const quiet = time.Minute

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// patient lets a request take as long as it likes, as long as something of it comes: a
// large file, or the input of a process. It is not waited for when the server ends.
func patient(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, stop := patientBody(w, r)
		defer stop()
		r = r.WithContext(r.Context()) // net/http looks at its own request for what it does with the body
		r.Body = body
		next.ServeHTTP(w, r)
	})
}

// patientBody is the body of a request that is patient. stop is called when it was read.
func patientBody(w http.ResponseWriter, r *http.Request) (body io.ReadCloser, stop func() bool) {
	b := &slowBody{ReadCloser: r.Body, conn: http.NewResponseController(w)}
	return b, context.AfterFunc(r.Context(), b.end)
}

// slowBody begins the time of its client again with each read.
type slowBody struct {
	io.ReadCloser
	conn *http.ResponseController

	mu    sync.Mutex
	ended bool // guarded by mu
}

// Read reads on.
func (b *slowBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	if !b.ended {
		_ = b.conn.SetReadDeadline(time.Now().Add(quiet)) // a connection that has none has no deadline either
	}
	b.mu.Unlock()
	return b.ReadCloser.Read(p)
}

// end lets the read that waits fail, and those after it.
func (b *slowBody) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	_ = b.conn.SetReadDeadline(past) // as above
}
