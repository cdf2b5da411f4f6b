package httpapi

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpapi/handing"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/internal/eventlog"
	"github.com/coppice-run/coppice/internal/file/temp"
	"github.com/coppice-run/coppice/messages"
)

// Options make an API. The zero value of a field is its default.
type Options struct {
	// Host runs the calls. Required.
	Host *coppice.Host
	// Cwd is the working directory of sessions that name none. "": that of the
	// process.
	Cwd string
	// Root is the folder below which the working directories are that clients name; Cwd is
	// it, or in it. Notebooks are not opened by their paths then. "": anywhere.
	Root string
	// Version is the program's.
	Version string
	// Why says why the host has its backend, where something of the server has chosen it. "": the
	// host's own reason.
	Why string
	// Metrics are what /metrics shows. nil: nothing.
	Metrics prometheus.Gatherer
	// KeepAlive is how often a stream without events says that it lives. 0: 15 s.
	KeepAlive time.Duration
	// Since is when the server began to serve of which this is a part. What was asked of it before
	// was asked of another one, though this process may have lived: it may have waited to take that
	// one's place. Zero: now.
	Since time.Time
	// Retention says which executions that have ended are kept.
	Retention
	// MaxRunning is how many executions may run or wait at once; more are refused.
	// 0: 1,024.
	MaxRunning int
	// LockWait is how long a notebook that another program saves is waited for. 0:
	// 10 s.
	LockWait time.Duration
	// LogMemory and LogMax bound the log of one execution, in bytes: in memory, and
	// beyond which output is left out. 0: 64 KiB and 256 MiB.
	LogMemory int
	LogMax    int64
	// Of says with a context which execution a call belongs to, for the sinks of the host.
	// nil: they are not told.
	Of func(ctx context.Context, execution string) context.Context
	// Answered is called with the id of an execution when a question of it has got its
	// answer, from the goroutine of a request. It must not block. nil: it is not called.
	Answered func(execution string)
	// Forgets says that nothing of the sessions is there once the API has ended: a call that is
	// stopped by that has lost its variables.
	Forgets bool
	// Logger hears what the API gives up on. nil: it is not logged.
	Logger *slog.Logger
}

// API serves the sessions of a host. Make it with New.
type API struct {
	o     Options
	began time.Time
	dir   string // for the files of logs

	life    context.Context // of all executions
	end     context.CancelFunc
	running sync.WaitGroup
	changes *changes
	kept    checkpoints
	asleep  count
	cpu     func(pid int) float64 // of a process, in seconds; as cpu
	unwatch func()
	handing *handing.Handing

	mu    sync.Mutex
	table map[string]*execution // guarded by mu
	order []*execution          // as they were started; guarded by mu
	over  bool                  // guarded by mu
}

//go:embed openapi.json
var openAPI []byte

// New makes an API. Close it before the host is shut down. [API.TakeOver] has it go on with
// what a server before this one has left.
func New(o Options) (*API, error) {
	if o.Cwd == "" {
		var err error
		if o.Cwd, err = os.Getwd(); err != nil {
			return nil, fmt.Errorf("find the working directory: %w", err)
		}
	}
	if o.KeepAlive <= 0 {
		o.KeepAlive = 15 * time.Second
	}
	o.Retention = o.Retention.settle()
	if o.LockWait <= 0 {
		o.LockWait = 10 * time.Second
	}
	if o.LogMax <= 0 {
		o.LogMax = eventlog.DefaultMax
	}
	if o.MaxRunning <= 0 {
		o.MaxRunning = 1024
	}
	if o.Of == nil {
		o.Of = func(ctx context.Context, _ string) context.Context { return ctx }
	}
	if o.Answered == nil {
		o.Answered = func(string) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	if o.Since.IsZero() {
		o.Since = time.Now()
	}
	dir, err := temp.Make("serve")
	if err != nil {
		return nil, fmt.Errorf("make a folder for events: %w", err)
	}
	a := &API{o: o, began: o.Since, dir: dir, table: map[string]*execution{}, changes: newChanges(), cpu: cpu, handing: handing.New()}
	a.kept.in = o.Host.Workspaces()
	life, end := context.WithCancelCause(context.Background())
	a.life, a.end = life, func() { end(coppice.ErrClosed) }
	a.unwatch = o.Host.Watch(a.changes.tree)
	return a, nil
}

// Sessions lists the sessions that have a kernel. Any goroutine may call it.
func (a *API) Sessions(ctx context.Context) ([]client.Session, error) { return a.kernels(ctx) }

// Cwd is the working directory of sessions that name none.
func (a *API) Cwd() string { return a.o.Cwd }

// End takes no new executions and cancels those that run. It returns when they
// have ended, which their readers learn, or with ctx.
func (a *API) End(ctx context.Context) {
	a.handing.Release()
	a.mu.Lock()
	a.over = true
	order := slices.Clone(a.order)
	a.mu.Unlock()
	a.end()
	for _, x := range order {
		select {
		case <-x.settled:
		case <-ctx.Done():
			return
		}
		if x.refused != nil {
			continue
		}
		select {
		case <-x.ended:
		case <-x.returned: // the next server tells of it
		case <-ctx.Done():
			return
		}
	}
}

// Close cancels what runs and returns when it has ended, and removes the logs.
func (a *API) Close() error {
	a.handing.Release()
	a.mu.Lock()
	a.over = true
	a.mu.Unlock()
	a.end()
	a.unwatch()
	a.running.Wait()
	a.kept.close()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, x := range a.order {
		x.close(a.o.Logger)
	}
	a.order, a.table = nil, map[string]*execution{}
	if err := os.RemoveAll(a.dir); err != nil {
		return fmt.Errorf("remove the folder of events: %w", err)
	}
	return nil
}

// Mounts are the parts of the server.
func (a *API) Mounts() []httpserver.Mount {
	disk := saved{
		host: a.o.Host, body: a.body, problem: a.problem, named: a.anyOf, forget: a.asleep.forget,
		known: func(r *http.Request) (*coppice.Session, client.Session, error) { return a.named(r, a.known) },
	}
	looks := map[string]http.HandlerFunc{
		"GET /api/openapi.json": a.openAPI, healthRoute: a.health, "GET /api/tree": a.tree, "GET /api/changes": a.watch,
		"GET /api/sessions": a.sessions, "GET /api/sessions/{session}": a.session, "GET /api/checkpoints": a.checkpoints,
		"GET /api/saved-checkpoints":           disk.list,
		"GET /api/sessions/{session}/notebook": a.transcript, "GET /api/events": a.past,
		"GET /api/executions": a.list, "GET /api/executions/{id}": a.show, "GET /api/executions/{id}/events": a.events,
		"GET /api/artifacts": a.artifacts, "GET /api/artifacts/{id}": a.artifact,
		"GET /metrics": promhttp.HandlerFor(a.o.Metrics, promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP,
	}
	runs := map[string]http.HandlerFunc{
		"POST /api/sessions": a.open, "DELETE /api/sessions/{session}": a.act(a.known, (*coppice.Session).Close),
		"POST /api/sessions/{session}/interrupt": a.act(a.find, func(s *coppice.Session, _ context.Context) error { return s.Interrupt() }),
		"POST /api/sessions/{session}/reset":     a.act(a.known, (*coppice.Session).Reset),
		"POST /api/sessions/{session}/pin":       a.act(a.find, pin(true)), "POST /api/sessions/{session}/unpin": a.act(a.find, pin(false)),
		"POST /api/sessions/{session}/hibernate": a.hibernate,
		"POST /api/sessions/{session}/complete":  a.complete, "POST /api/sessions/{session}/inspect": a.inspect,
		"POST /api/sessions/{session}/fork": a.fork, "POST /api/sessions/{session}/checkpoint": a.checkpoint, "POST /api/sessions/{session}/rewind": a.rewind,
		"POST /api/sessions/{session}/save": disk.save, "POST /api/sessions/{session}/restore": disk.restore,
		"DELETE /api/saved-checkpoints/{name}": disk.drop,
		"DELETE /api/checkpoints/{id}":         a.dropCheckpoint, "POST /api/executions": a.start,
		"POST /api/executions/{id}/input": a.input, "POST /api/executions/{id}/cancel": a.cancel,
	}
	if a.o.Root == "" { // a notebook is opened by this process, which has the whole machine
		looks["POST /api/notebooks/show"] = a.showNotebook
		runs["POST /api/notebooks/apply"], runs["POST /api/notebooks/run"] = a.applyNotebook, a.runNotebook
	}
	mounts := make([]httpserver.Mount, 0, len(looks)+len(runs))
	for need, routes := range map[httpserver.Scope]map[string]http.HandlerFunc{httpserver.Read: looks, httpserver.Run: runs} {
		for pattern, f := range routes {
			mounts = append(mounts, httpserver.Mount{Pattern: pattern, Handler: f, Scope: need, Public: pattern == healthRoute})
		}
	}
	return mounts
}

func (a *API) openAPI(w http.ResponseWriter, r *http.Request) {
	httpserver.AnswerText(w, r, http.StatusOK, openAPI)
}

// healthRoute answers without the token too: a probe has none.
const healthRoute = "GET /api/health"

// health says how the server is: in detail to those who have the token, to others whether it
// lives.
func (a *API) health(w http.ResponseWriter, r *http.Request) {
	if !httpserver.Trusted(r.Context()) {
		httpserver.JSON(w, http.StatusOK, map[string]any{"status": "ok"})
		return
	}
	list, err := a.kernels(r.Context())
	if err != nil {
		a.problem(w, err)
		return
	}
	h := client.Health{Status: "ok", Version: a.o.Version, PID: os.Getpid(), Cwd: a.o.Cwd, Started: a.began, Uptime: time.Since(a.began).Seconds(), Sessions: len(list), Executions: a.Running()}
	h.Backend, h.Why = a.o.Host.Backend()
	h.Why = cmp.Or(a.o.Why, h.Why)
	h.Hibernated = a.Hibernated(r.Context())
	if a.life.Err() != nil {
		h.Status = "draining"
	}
	httpserver.JSON(w, http.StatusOK, h)
}

func (a *API) tree(w http.ResponseWriter, r *http.Request) {
	node, err := a.o.Host.Snapshot(r.Context())
	if err != nil {
		a.problem(w, err)
		return
	}
	httpserver.Answer(w, r, http.StatusOK, node)
}

// key is the session that a request names.
func (a *API) key(name, cwd string) messages.SessionKey {
	return messages.SessionKey{Session: name, Cwd: a.o.Cwd}.In(cwd)
}

// anyOf is the session in the path of a request, which need not have a kernel.
func (a *API) anyOf(r *http.Request) (*coppice.Session, error) {
	query, name := r.URL.Query(), r.PathValue("session")
	if err := checkName(name); err != nil {
		return nil, unfit{err.Error(), ""}
	}
	session, _, err := a.at(name, query.Get("cwd"), query.Get("workspace"), query.Get("kernel"))
	return session, err
}
