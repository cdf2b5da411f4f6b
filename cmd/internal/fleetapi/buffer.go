package fleetapi

import (
	"bytes"
	"maps"
	"net/http"
)

// buffer is an answer that is held back.
type buffer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func newBuffer() *buffer { return &buffer{header: http.Header{}, status: http.StatusOK} }

// serve has a handler answer, in a form that can be read here.
func (b *buffer) serve(h http.Handler, r *http.Request) {
	r = r.Clone(r.Context())
	r.Header.Del("Accept-Encoding")
	h.ServeHTTP(b, r)
}

// Header implements [http.ResponseWriter].
func (b *buffer) Header() http.Header { return b.header }

// WriteHeader implements [http.ResponseWriter].
func (b *buffer) WriteHeader(status int) { b.status = status }

// Write implements [http.ResponseWriter].
func (b *buffer) Write(p []byte) (int, error) { return b.body.Write(p) }

// to lets the answer leave.
func (b *buffer) to(w http.ResponseWriter) {
	maps.Copy(w.Header(), b.header)
	w.WriteHeader(b.status)
	_, _ = w.Write(b.body.Bytes()) // who has gone cannot be told
}
