package workspaceapi

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/workspace"
	"github.com/coppice-run/coppice/workspace/files"
)

// Options make the mounts. The zero value of a field is its default.
type Options struct {
	// Host has the workspaces. Required.
	Host *coppice.Host
	// Bound looks at what a client asks of a new workspace, and may change or refuse it.
	// nil: a client may ask for anything.
	Bound func(*workspace.Options) error
	// Inside keeps the working directories of processes in the folder of their workspace.
	Inside bool
	// KeepAlive is how often a stream without events says that it lives. 0: 15 s.
	KeepAlive time.Duration
	// Silence is how long an upload may pause. 0: 1 min.
	Silence time.Duration
	// Logger hears what failed by no one's request. nil: it is not logged.
	Logger *slog.Logger
}

// handler answers requests.
type handler struct {
	o       Options
	landing landing
	prover  prover
}

// Mounts returns the parts of a server that are about workspaces.
func Mounts(o Options) []httpserver.Mount {
	if o.KeepAlive <= 0 {
		o.KeepAlive = 15 * time.Second
	}
	if o.Silence <= 0 {
		o.Silence = time.Minute
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	h := &handler{o: o, prover: newProver()}
	const one, file, process = "/api/workspaces/{workspace}", "/api/workspaces/{workspace}/files", "/api/workspaces/{workspace}/processes/{process}"
	looks := map[string]http.HandlerFunc{
		"GET /api/workspaces": h.list, "GET " + one: h.in(h.show),
		"GET " + file: h.files(h.read), "GET " + file + "/list": h.files(h.entries), "GET " + file + "/stat": h.files(h.stat), "GET " + file + "/watch": h.files(h.watch),
		"GET " + one + "/processes": h.in(h.processes), "GET " + process: h.process(h.showProcess), "GET " + process + "/events": h.process(h.events),
	}
	runs := map[string]http.HandlerFunc{
		"POST /api/workspaces": h.create, "PATCH " + one: h.in(h.change), "DELETE " + one: h.end, "POST " + one + "/prove": h.in(h.prove),
		"PUT " + file: h.files(h.write), "POST " + file: h.files(h.upload), "DELETE " + file: h.files(h.remove),
		"POST " + file + "/make": h.files(h.makeDir), "POST " + file + "/move": h.files(h.move),
		"POST " + one + "/processes": h.in(h.start), "DELETE " + process: h.process(h.endProcess),
		"POST " + process + "/input": h.process(h.input), "POST " + process + "/close": h.process(h.closeInput),
		"POST " + process + "/signal": h.process(h.signal), "POST " + process + "/resize": h.process(h.resize),
	}
	mounts := make([]httpserver.Mount, 0, len(looks)+len(runs))
	for need, routes := range map[httpserver.Scope]map[string]http.HandlerFunc{httpserver.Read: looks, httpserver.Run: runs} {
		for pattern, f := range routes {
			mounts = append(mounts, httpserver.Mount{Pattern: pattern, Handler: f, Scope: need})
		}
	}
	return mounts
}

// place is what a request is about.
type place struct {
	w     *workspace.Workspace
	files *files.Folder      // of requests about files
	proc  *workspace.Process // of requests about a process
}

// inside answers a request about a place. What it returns is answered as a problem.
type inside func(w http.ResponseWriter, r *http.Request, at place) error

// in finds the workspace of a request.
func (h *handler) in(do inside) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ws, err := h.o.Host.Workspaces().Get(r.PathValue("workspace"))
		if err == nil {
			err = do(w, r, place{w: ws})
		}
		if err == nil {
			return
		}
		if ws != nil && ws.Err() != nil {
			err = ws.Err() // what failed because of that does not say so
		}
		h.problem(w, r, err)
	}
}

// files finds the files of a request's workspace.
func (h *handler) files(do inside) http.HandlerFunc {
	return h.in(func(w http.ResponseWriter, r *http.Request, at place) (err error) {
		if at.files, err = at.w.Files(); err != nil {
			return err
		}
		return do(w, r, at)
	})
}

// process finds the process of a request.
func (h *handler) process(do inside) http.HandlerFunc {
	return h.in(func(w http.ResponseWriter, r *http.Request, at place) (err error) {
		if at.proc, err = at.w.Process(r.PathValue("process")); err != nil {
			return err
		}
		return do(w, r, at)
	})
}
