package client_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
)

const token = "token-of-the-test"

// asked is what a request asked for.
type asked struct {
	method string
	path   string // with the query
	body   string
	last   string // Last-Event-ID
}

// server is one whose answers the test gives.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []asked // guarded by mu
}

// serve starts a server and returns a client of it. Each request is noted, and its
// token looked at, before answer gets it.
func serve(t *testing.T, o client.Options, answer http.HandlerFunc) (*server, *client.Client) {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Authorization") != "Bearer "+token {
			http.Error(w, "no token", http.StatusUnauthorized)
			return
		}
		s.mu.Lock()
		s.requests = append(s.requests, asked{r.Method, r.URL.RequestURI(), string(body), r.Header.Get("Last-Event-ID")})
		s.mu.Unlock()
		answer(w, r)
	}))
	o.URL, o.Token = s.URL, token
	c, err := client.New(o)
	require.NoError(t, err)
	require.Equal(t, s.URL, c.URL())
	t.Cleanup(func() {
		c.Close()
		s.CloseClientConnections()
		s.Close()
	})
	return s, c
}

// seen are the requests so far.
func (s *server) seen() []asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]asked(nil), s.requests...)
}

// says is an answer with a status and a body.
func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// streams is an answer of server-sent events, each as the data of one; then the
// connection is cut.
func streams(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		_, _ = fmt.Fprintf(w, "data: %s\n\n", e)
	}
	_ = http.NewResponseController(w).Flush()
}

// cut ends the connection in the midst of an answer.
func cut(w http.ResponseWriter) {
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}
