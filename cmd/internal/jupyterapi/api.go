package jupyterapi

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/cmd/internal/jupyterapi/contents"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/messages"
)

const (
	// Base is the path that everything stands below.
	Base = "/jupyter"
	// spoken is the version of Jupyter Server whose API this is, as far as it goes.
	spoken = "2.20.0"
	// maxKernels is how many kernels there may be, whether they live or not.
	maxKernels = 512
	// maxSessions is about how many documents may have a kernel.
	maxSessions = 1024
)

// Host is what kernels need of one; a *coppice.Host is one.
type Host interface {
	Session(name string, options ...coppice.SessionOption) *coppice.Session
	Sessions(ctx context.Context) ([]coppice.SessionInfo, error)
	Hibernated(ctx context.Context) ([]hibernate.Asleep, error)
	Kernelspecs(ctx context.Context) ([]coppice.Kernelspec, error)
	Watch(fn func(messages.Lifecycle)) (stop func())
}

// Options make an API. Host and Cwd are required.
type Options struct {
	Host Host
	// Cwd is the directory that the paths of kernels, sessions and files are relative to.
	Cwd string
	// Root is the folder below which the directories are that clients name; Cwd is it, or in
	// it. "": anywhere.
	Root string
	// Left is a file in which the names of the kernels are for the next server of this host's
	// user, where sessions outlive their host or are kept on disk: it goes on with them. "": no
	// server does.
	Left string
	// Own makes a session this node's, where the server is one of a fleet's, until done is called
	// and nothing of it lives any more. nil: it is in no fleet.
	Own func(ctx context.Context, key messages.SessionKey) (done func(), err error)
	// Version is that of the program, for kernel_info_reply.
	Version string
	// Logger hears what went wrong with no one to tell. nil: it is not logged.
	Logger *slog.Logger
}

// API serves the kernels of one host. Make it with New, and Close it.
type API struct {
	o       Options
	mux     *httpserver.Routes
	files   *contents.Contents
	started time.Time
	life    context.Context
	end     context.CancelFunc
	unwatch func()
	runs    sync.WaitGroup // of kernels and connections; Close joins them
	leaving sync.Mutex     // held while the kernels are written down
	news    chan struct{}  // has room for one: code was counted

	mu       sync.Mutex
	kernels  map[string]*kernel       // guarded by mu
	sessions []*document              // in the order in which they were made; guarded by mu
	opening  map[string]chan struct{} // the paths of documents that are being made, each closed when it is; guarded by mu
	language string                   // the version of Python, once it was asked for; guarded by mu
	closed   bool                     // guarded by mu
}

// New returns the API of a host. It starts no kernel.
func New(o Options) *API {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	a := &API{o: o, mux: httpserver.NewRoutes(), started: time.Now(), kernels: map[string]*kernel{}, opening: map[string]chan struct{}{}, news: make(chan struct{}, 1)}
	a.files = contents.New(o.Cwd, Base)
	for pattern, serve := range a.files.Routes() {
		a.mux.HandleFunc(pattern, method(pattern), serve)
	}
	a.life, a.end = context.WithCancel(context.Background())
	a.unwatch = o.Host.Watch(a.changed)
	if o.Left != "" {
		if err := a.inherit(a.life); err != nil {
			o.Logger.Warn("the kernels of the server before are not known", "file", o.Left, "err", err)
		}
		a.begin(a.note)
	}
	for need, routes := range map[httpserver.Scope]map[string]http.HandlerFunc{
		httpserver.Read: {
			"GET /api":                    a.version,
			"GET /api/status":             a.status,
			"GET /api/me":                 a.me,
			"GET /api/kernelspecs":        a.specs,
			"GET /api/kernelspecs/{name}": a.spec,
			"GET /api/kernels":            a.listKernels,
			"GET /api/kernels/{id}":       a.getKernel,
			"GET /api/sessions":           a.listSessions,
			"GET /api/sessions/{id}":      a.getSession,
			"/api/terminals":              lacking("this server has no terminals"),
			"/api/terminals/":             lacking("this server has no terminals"),
			"/":                           nothing,
		},
		httpserver.Run: {
			"POST /api/kernels":                a.startKernel,
			"DELETE /api/kernels/{id}":         a.deleteKernel,
			"POST /api/kernels/{id}/interrupt": a.interruptKernel,
			"POST /api/kernels/{id}/restart":   a.restartKernel,
			"GET /api/kernels/{id}/channels":   a.channels, // code comes by them
			"POST /api/sessions":               a.createSession,
			"PATCH /api/sessions/{id}":         a.changeSession,
			"DELETE /api/sessions/{id}":        a.deleteSession,
		},
	} {
		for pattern, serve := range routes {
			a.mux.HandleFunc(pattern, need, serve)
		}
	}
	return a
}

// method is the scope of a route of the files: what changes them is more than a look.
func method(pattern string) httpserver.Scope {
	if strings.HasPrefix(pattern, http.MethodGet+" ") {
		return httpserver.Read
	}
	return httpserver.Run
}

// Mounts are the parts of a server.
func (a *API) Mounts() []httpserver.Mount {
	return []httpserver.Mount{{Pattern: Base + "/", Handler: http.StripPrefix(Base, a), Knows: knows, Routes: a.mux, Prefix: Base}}
}

// knows reports whether a request has the token where Jupyter's clients put it.
func knows(r *http.Request, opens func(string) bool) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); token != "" {
		return (strings.EqualFold(scheme, "token") || strings.EqualFold(scheme, "bearer")) && opens(token)
	}
	token = r.URL.Query().Get("token")
	return token != "" && opens(token)
}

// ServeHTTP serves a request below the base. It is for a server of package httpserver: who
// may ask is what that has found.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !httpserver.Trusted(r.Context()) {
		a.o.Logger.Warn("refused a request", "status", http.StatusForbidden, "method", r.Method, "remote", r.RemoteAddr)
		w.Header().Set("Connection", "close") // who may not ask has nothing more to say
		refuse(w, http.StatusForbidden, "Forbidden", "the token is missing or wrong; send it as Authorization: token TOKEN, or as ?token=TOKEN")
		return
	}
	a.mux.ServeHTTP(w, r)
}

// Close lets all clients go, interrupts what they run, and waits for that. The sessions are
// left to the host.
func (a *API) Close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.unwatch()
	a.leave()
	a.end()
	a.runs.Wait()
	if err := a.files.Close(); err != nil {
		a.o.Logger.Warn("the folder of files did not close", "err", err)
	}
}

// begin runs something that Close joins; false: the API is closed, and it does not run.
func (a *API) begin(run func()) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false
	}
	a.runs.Go(run) // ends with the life of the API
	return true
}

// changed hears of the supervision tree. It must not block.
func (a *API) changed(e messages.Lifecycle) {
	c, ok := e.(messages.ChildChanged)
	if !ok || c.Exit == nil {
		return
	}
	key, ok := messages.ParseSessionKey(c.Key)
	if !ok {
		return
	}
	a.mu.Lock()
	k := a.kernels[key.Session]
	a.mu.Unlock()
	if k != nil && k.s.Key() == key {
		k.died(*c.Exit)
	}
}
