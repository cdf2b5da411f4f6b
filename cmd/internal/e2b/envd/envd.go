package envd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os/user"
	"strings"
	"sync"

	"connectrpc.com/connect"

	"github.com/coppice-run/coppice/cmd/internal/e2b/answer"
	"github.com/coppice-run/coppice/cmd/internal/e2b/wire/filesystem/filesystemconnect"
	"github.com/coppice-run/coppice/cmd/internal/e2b/wire/process/processconnect"
	"github.com/coppice-run/coppice/workspace"
)

// Version is that of E2B's own program for which the clients take this one: they ask for
// what it has, and refuse what it lacks by themselves. From 0.6.4 on, watches describe
// what they tell of.
const Version = "0.6.4"

// maxRequest bounds a request to a service, in bytes, but for the stream of input.
const maxRequest = 16 << 20

// Sandbox serves one workspace. Make it with New, and Close it.
type Sandbox struct {
	w      *workspace.Workspace
	python func(ctx context.Context) Python
	mux    *http.ServeMux
	life   context.Context
	end    context.CancelFunc
	runs   sync.WaitGroup // the watches that are polled; Close waits

	mu       sync.Mutex
	watchers map[string]*watcher // guarded by mu
	closed   bool                // guarded by mu
}

// New returns what serves a workspace. python says which interpreter its processes are to find
// first; it is called for each.
func New(w *workspace.Workspace, python func(ctx context.Context) Python) *Sandbox {
	s := &Sandbox{w: w, python: python, mux: http.NewServeMux(), watchers: map[string]*watcher{}}
	s.life, s.end = context.WithCancel(context.Background())
	s.mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	s.mux.HandleFunc("GET /files", s.download)
	s.mux.HandleFunc("POST /files", s.upload)
	limit := connect.WithReadMaxBytes(maxRequest)
	at, handler := filesystemconnect.NewFilesystemHandler((*filesystemService)(s), limit)
	s.mux.Handle(at, asUser(whole(handler)))
	at, handler = processconnect.NewProcessHandler((*processService)(s), limit)
	s.mux.Handle(at, asUser(whole(handler)))
	s.mux.Handle(processconnect.ProcessStreamInputProcedure, asUser(patient(handler)))
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		answer.Error(w, http.StatusNotFound, "there is nothing at "+r.URL.Path)
	})
	return s
}

// ServeHTTP serves what the clients ask the inside of the sandbox.
func (s *Sandbox) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Close ends the watches that are polled, and returns when they have ended. Requests
// that go on are those of the server to end.
func (s *Sandbox) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	s.runs.Wait()
}

// whole reads a request before it is served: net/http hears that a client has left only
// when nothing of its request is to come.
func whole(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest+1<<10))
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			answer.Error(w, http.StatusRequestEntityTooLarge, "the request is too large")
			return
		}
		if err != nil {
			answer.Error(w, http.StatusBadRequest, "the request cannot be read: "+err.Error())
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(data))
		next.ServeHTTP(w, r)
	})
}

// account is the user whom everything belongs to.
type account struct{ name, group string }

// self is the user of this process.
var self = sync.OnceValue(func() account {
	a := account{"user", "user"}
	u, err := user.Current()
	if err != nil {
		return a
	}
	a.name, a.group = u.Username, u.Gid
	if g, err := user.LookupGroupId(u.Gid); err == nil {
		a.group = g.Name
	}
	return a
})

// allowed reports whether one may ask to be a user: as the user of this process one is,
// and as the one that E2B's sandboxes have.
func allowed(name string) bool { return name == "" || name == "user" || name == self().name }

// otherUser is what is said to who wants to be another.
func otherUser(name string) string {
	return "there is no user " + name + " here: everything belongs to " + self().name + "; name none"
}

// asUser refuses requests that want another user, whom clients name as the user of Basic
// authentication.
func asUser(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, _, ok := r.BasicAuth(); ok && !allowed(strings.TrimSpace(name)) {
			answer.Error(w, http.StatusUnauthorized, otherUser(name))
			return
		}
		next.ServeHTTP(w, r)
	})
}
