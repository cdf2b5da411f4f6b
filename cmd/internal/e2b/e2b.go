package e2b

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/e2b/answer"
	"github.com/coppice-run/coppice/cmd/internal/e2b/envd"
	"github.com/coppice-run/coppice/cmd/internal/e2b/interpreter"
	"github.com/coppice-run/coppice/cmd/internal/e2b/shelf"
	"github.com/coppice-run/coppice/cmd/internal/e2b/wire/filesystem/filesystemconnect"
	"github.com/coppice-run/coppice/cmd/internal/e2b/wire/process/processconnect"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/workspace"
)

// Base is the path that everything stands below.
const Base = "/e2b"

// Host is what sandboxes need of one; a *coppice.Host is one.
type Host interface {
	interpreter.Host
	Workspace(ctx context.Context, name string, o workspace.Options) (*workspace.Workspace, error)
	Workspaces() *workspace.Set
	Sessions(ctx context.Context) ([]coppice.SessionInfo, error)
	Hibernated(ctx context.Context) ([]hibernate.Asleep, error)
	Snapshots() *hibernate.Snapshots
	// Dir is a folder of this user, in which snapshots are kept.
	Dir() string
	Options() coppice.Options
}

// Options make an API. Host is required.
type Options struct {
	Host Host
	// Keeps says that the host keeps sessions on disk as a whole, with hibernate.Lossless as
	// its coppice.Options.Hibernate: a sandbox can be paused with its memory. false: that is
	// refused.
	Keeps bool
	// Secret is what the tokens of sandboxes are made of, the same at all nodes of a fleet, and
	// Elsewhere lists the sandboxes of the other nodes. nil: the server is in none.
	Secret    []byte
	Elsewhere func(ctx context.Context) []string
	// Logger hears what went wrong with no one to tell. nil: it is not logged.
	Logger *slog.Logger
}

// API serves the sandboxes of one host. Make it with New, and Close it.
type API struct {
	o      Options
	secret []byte // what the tokens of sandboxes are made of
	mux    *httpserver.Routes
	shelf  *shelf.Shelf
	life   context.Context
	end    context.CancelFunc
	runs   sync.WaitGroup // waits for the ends of sandboxes; Close joins them

	elsewhere elsewhere
	finder    *finder

	mu     sync.Mutex
	all    map[*workspace.Workspace]*sandbox // guarded by mu
	making map[string]chan struct{}          // sandboxes that are being made of a snapshot, by name; guarded by mu
	closed bool                              // guarded by mu
}

// sandbox is a workspace that was asked for.
type sandbox struct {
	w        *workspace.Workspace
	template string
	envd     *envd.Sandbox
	code     *interpreter.Interpreter
	usage    usage
	rest     *rest
}

// New returns the API of a host.
func New(o Options) *API {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	a := &API{o: o, secret: o.Secret, elsewhere: elsewhere{turn: make(chan struct{}, 1)}, mux: httpserver.NewRoutes(), all: map[*workspace.Workspace]*sandbox{}, making: map[string]chan struct{}{}, shelf: shelfOf(o.Host)}
	if a.secret == nil {
		a.secret = make([]byte, 32)
		_, _ = rand.Read(a.secret) // never fails: crypto/rand ends the program instead
	}
	a.life, a.end = context.WithCancel(context.Background())
	a.finder = newFinder(a.life, o.Host.Options())
	for _, version := range []string{"", "/v2"} {
		a.mux.HandleFunc("POST "+version+"/sandboxes", httpserver.Run, a.create)
		a.mux.HandleFunc("POST "+version+"/sandboxes/{id}/connect", httpserver.Run, a.connect)
	}
	for need, routes := range map[httpserver.Scope]map[string]http.HandlerFunc{
		httpserver.Read: {
			"GET /v2/sandboxes": a.list, "GET /sandboxes": a.list, "GET /sandboxes/{id}": a.get, "GET /sandboxes/{id}/metrics": a.metrics,
			"GET /snapshots": a.listSnapshots, "GET /files": a.inside, "GET /health": a.inside, "GET /contexts": a.inside,
			"/": func(w http.ResponseWriter, r *http.Request) {
				answer.Error(w, http.StatusNotFound, "there is nothing at "+r.URL.Path)
			},
		},
		httpserver.Run: {
			"DELETE /sandboxes/{id}": a.kill, "POST /sandboxes/{id}/timeout": a.timeout, "POST /sandboxes/{id}/refreshes": a.refresh,
			"POST /sandboxes/{id}/pause": a.pause, "POST /sandboxes/{id}/resume": a.resume, "POST /sandboxes/{id}/snapshots": a.snapshot,
			"POST /sandboxes/{id}/fork": a.fork, "DELETE /templates/{id}": a.deleteTemplate,
		},
	} {
		for pattern, serve := range routes {
			a.mux.HandleFunc(pattern, need, serve)
		}
	}
	a.lacking()
	for _, path := range inside {
		a.mux.HandleFunc(path, httpserver.Run, a.inside)
	}
	return a
}

// inside are the paths of what is asked of one sandbox. Those of the code interpreter come
// first.
var inside = []string{"/execute", "/contexts", "/contexts/", "/health", "/files", "/filesystem.Filesystem/", "/process.Process/"}

// interpreters is how many of them are the code interpreter's.
const interpreters = 3

// Mounts are the parts of a server.
func (a *API) Mounts() []httpserver.Mount {
	base := http.StripPrefix(Base, a)
	return []httpserver.Mount{
		{Pattern: Base + "/", Handler: base, Routes: a.mux, Prefix: Base, Knows: func(r *http.Request, opens func(string) bool) bool {
			return a.knows(r, strings.TrimPrefix(r.URL.Path, Base), opens)
		}},
		{Pattern: "/files", Handler: a, Routes: a.mux, Knows: func(r *http.Request, opens func(string) bool) bool { return a.knows(r, r.URL.Path, opens) }},
	}
}

// ServeHTTP serves a request below the base. It is for a server of package httpserver: who
// may ask is what that has found.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !httpserver.Trusted(r.Context()) {
		a.o.Logger.Warn("refused a request", "status", http.StatusUnauthorized, "method", r.Method, "remote", r.RemoteAddr)
		w.Header().Set("Connection", "close") // who may not ask has nothing more to say
		why := "the API key, or the access token of the sandbox, is missing or wrong"
		if r.URL.Path == "/files" && expired(r.URL.Query()) {
			why = "signature is already expired" // clients may look for these words
		}
		answer.Error(w, http.StatusUnauthorized, why)
		return
	}
	a.mux.ServeHTTP(w, r)
}

// Close ends what goes on for sandboxes, and leaves them to the host. It waits for that.
func (a *API) Close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.end()
	a.runs.Wait()
}

// sandbox returns the one of this name that has not ended; nil: there is none.
func (a *API) sandbox(id string) *sandbox {
	w, err := a.o.Host.Workspaces().Get(id)
	if err != nil {
		return nil
	}
	return a.of(w, "")
}

// of returns what serves a workspace; nil: the server ends. Of one that was made elsewhere the template is not known.
func (a *API) of(w *workspace.Workspace, template string) *sandbox {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.all[w]; s != nil || a.closed {
		return s
	}
	if template == "" {
		template = templates[0]
	}
	s := &sandbox{w: w, template: template, envd: envd.New(w, a.finder.python), code: interpreter.New(a.o.Host, w), rest: newRest()}
	a.all[w] = s
	a.runs.Go(func() { // ends with the sandbox, or with Close
		a.follow(s)
		s.envd.Close()
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.all, w)
	})
	return s
}

// inside serves what is asked of one sandbox.
func (a *API) inside(w http.ResponseWriter, r *http.Request) {
	id := a.meant(r)
	s := a.sandbox(id)
	if s == nil {
		answer.Ended(w, id)
		return
	}
	leave, err := a.enter(r, s)
	if err != nil {
		answer.Ended(w, id) // as of one that is gone: clients take it for one that does not run
		return
	}
	defer leave()
	for _, path := range inside[:interpreters] {
		if r.URL.Path == path || strings.HasSuffix(path, "/") && strings.HasPrefix(r.URL.Path, path) {
			s.code.ServeHTTP(w, r)
			return
		}
	}
	s.envd.ServeHTTP(w, r)
}

// enter lets a request into a sandbox, and resumes that if it is paused and is to be.
func (a *API) enter(r *http.Request, s *sandbox) (leave func(), err error) {
	for {
		leave, ok, err := s.rest.enter(r.Context(), does(r))
		if err != nil {
			return nil, err
		}
		if ok {
			return leave, nil
		}
		if do, _ := s.rest.does(); !do.resume {
			return nil, errPaused
		}
		if _, err := a.wake(context.WithoutCancel(r.Context()), s, defaultTimeout, true); err != nil {
			return nil, err
		}
	}
}

// does is what a request may do. What changes files may go on while the sandbox is paused,
// and not while it is copied.
func does(r *http.Request) use {
	switch path := r.URL.Path; {
	case path == processconnect.ProcessStartProcedure, slices.ContainsFunc(inside[:interpreters], func(p string) bool { return strings.HasPrefix(path, p) }):
		return starts
	case path == "/files" && r.Method != http.MethodGet && r.Method != http.MethodHead,
		path == filesystemconnect.FilesystemMakeDirProcedure, path == filesystemconnect.FilesystemMoveProcedure, path == filesystemconnect.FilesystemRemoveProcedure:
		return writes
	default:
		return looks
	}
}

// endTime is how long a request waits for the end of a sandbox.
const endTime = time.Minute
