package toolapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/internal/sse"
	"github.com/coppice-run/coppice/messages"
)

// Options make a handler.
type Options struct {
	// Tools is the launcher. Required.
	Tools *launcher.Launcher
	// Developer shows the state of the launcher.
	Developer bool
}

// maxRequest bounds the inputs of a run, in bytes.
const maxRequest = 64 << 20

// keepAlive is how often a stream without events says that it lives.
const keepAlive = 15 * time.Second

// handler serves the routes.
type handler struct {
	o     Options
	began time.Time
}

// Mounts returns the parts of a server that are about tools.
func Mounts(o Options) []httpserver.Mount {
	h := &handler{o: o, began: time.Now()}
	routes := map[string]http.HandlerFunc{
		"GET /api/healthz": h.healthz, "GET /api/launcher/state": h.state, "GET /api/tools": h.list,
		"GET /api/tools/{id}/validate": h.validate, "POST /api/tools/{id}/validate": h.validate,
		"POST /api/tools/{id}/run": h.run, "POST /api/tools/{id}/stream": h.stream, "POST /api/tools/{id}/cancel": h.cancel,
		"POST /api/tools/{id}/pin": h.pin(true), "POST /api/tools/{id}/unpin": h.pin(false),
		"POST /api/tools/{id}/stop": h.stop, "POST /api/tools/{id}/prewarm": h.prewarm, "GET /api/tools/{id}/logs": h.logs,
		"GET /api/tools/{id}/autocomplete/{endpoint...}": h.autocomplete, "GET /api/tools/{id}/files/{run}/{name...}": h.file,
	}
	mounts := make([]httpserver.Mount, 0, len(routes))
	for pattern, f := range routes {
		mounts = append(mounts, httpserver.Mount{Pattern: pattern, Handler: f})
	}
	return mounts
}

func (h *handler) healthz(w http.ResponseWriter, r *http.Request) {
	s, err := h.o.Tools.State(r.Context())
	if err != nil {
		problem(w, err)
		return
	}
	health := client.ToolsHealth{OK: true, Uptime: time.Since(h.began).Seconds(), Warm: []messages.ToolState{}}
	for _, t := range s.Tools {
		if t.PID != 0 {
			health.Warm = append(health.Warm, t)
		}
	}
	httpserver.JSON(w, http.StatusOK, health)
}

func (h *handler) state(w http.ResponseWriter, r *http.Request) {
	if !h.o.Developer {
		httpserver.Error(w, http.StatusNotFound, "not_found", "the state is shown in developer mode only", "start coppice serve with --developer")
		return
	}
	s, err := h.o.Tools.State(r.Context())
	if err != nil {
		problem(w, err)
		return
	}
	httpserver.JSON(w, http.StatusOK, s)
}

// Summarise puts the list together. checks has how the last validations went;
// it may be nil.
func Summarise(entries []launcher.Entry, state messages.ToolsState, checks map[string]string) []client.Tool {
	list := make([]client.Tool, 0, len(entries))
	for _, e := range entries {
		s := client.Tool{ID: e.ID, Name: e.ID, Status: "dormant", Validation: "unchecked"}
		if e.Tool != nil {
			s.Name, s.Category = e.Tool.Name, e.Tool.Category
		}
		if v := checks[e.ID]; v != "" {
			s.Validation = v
		}
		for _, t := range state.Tools {
			if t.ID != e.ID {
				continue
			}
			s.Pinned = t.Pinned
			switch {
			case t.PID != 0:
				s.Status = "running"
			case t.Failure != nil:
				s.Status, s.Problem = "failed", t.Failure.Error.Message
			}
		}
		if e.Err != nil {
			s.Status, s.Problem, s.Validation = "failed", e.Err.Error(), "fail"
		}
		list = append(list, s)
	}
	return list
}

func (h *handler) list(w http.ResponseWriter, r *http.Request) {
	entries, err := h.o.Tools.List(r.Context())
	if err != nil {
		problem(w, err)
		return
	}
	s, err := h.o.Tools.State(r.Context())
	if err != nil {
		problem(w, err)
		return
	}
	checks, err := h.o.Tools.Toolbox().Validated(entries)
	if err != nil {
		problem(w, err)
		return
	}
	httpserver.JSON(w, http.StatusOK, Summarise(entries, s, checks))
}

func (h *handler) validate(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	dir := ""
	entry, err := h.o.Tools.Find(r.Context(), id)
	told, ok := errors.AsType[*messages.ToolError](err)
	switch {
	case err == nil || ok && told.Kind == messages.ToolErrorSpec: // a broken one can be validated too
		dir = entry.Dir
	default:
		problem(w, err)
		return
	}
	report, err := h.o.Tools.Toolbox().Validate(r.Context(), dir, nil)
	if err != nil {
		return // the client has gone
	}
	httpserver.JSON(w, http.StatusOK, report)
}

// request reads the body of run and stream, or answers with what is wrong with it.
// A run may do without a body.
func request(w http.ResponseWriter, r *http.Request) (launcher.Request, bool) {
	var body client.RunTool
	if !empty(r) && !httpserver.Body(w, r, maxRequest, &body) {
		return launcher.Request{}, false
	}
	const most = 86400
	if body.Timeout < 0 || body.Timeout > most {
		httpserver.Error(w, http.StatusBadRequest, "bad_request", fmt.Sprintf("timeout_seconds must be from 0 to %d", most), "")
		return launcher.Request{}, false
	}
	return launcher.Request{Tool: r.PathValue("id"), Inputs: body.Inputs, ID: body.Run, Timeout: time.Duration(body.Timeout * float64(time.Second))}, true
}

// empty reports whether a request has no body. A body of no known length that is
// not said to be JSON loses its first byte; nobody reads it.
func empty(r *http.Request) bool {
	if r.ContentLength >= 0 || r.Header.Get("Content-Type") != "" {
		return r.ContentLength == 0
	}
	n, _ := r.Body.Read(make([]byte, 1)) // who has gone cannot be told
	return n == 0
}

func (h *handler) run(w http.ResponseWriter, r *http.Request) {
	req, ok := request(w, r)
	if !ok {
		return
	}
	result, err := h.o.Tools.Run(r.Context(), req)
	if err != nil && result.Error == nil {
		problem(w, err)
		return
	}
	httpserver.JSON(w, statusOf(result), result)
}

// statusOf is the HTTP status of a result.
func statusOf(r messages.ToolResult) int {
	if r.Error == nil {
		return http.StatusOK
	}
	switch r.Error.Kind {
	case messages.ToolErrorNotFound:
		return http.StatusNotFound
	case messages.ToolErrorInput:
		return http.StatusUnprocessableEntity
	case messages.ToolErrorCancelled:
		return http.StatusConflict
	case messages.ToolErrorOverloaded, messages.ToolErrorDraining:
		return http.StatusServiceUnavailable
	case messages.ToolErrorRuntime:
		return http.StatusGatewayTimeout
	case messages.ToolErrorMemory, messages.ToolErrorArtifacts:
		return http.StatusInsufficientStorage
	default:
		return http.StatusBadGateway
	}
}

func (h *handler) stream(w http.ResponseWriter, r *http.Request) {
	req, ok := request(w, r)
	if !ok {
		return
	}
	w.Header().Set("Cache-Control", "no-cache, no-transform")
	out := events{sse.NewWriter(w, 0)}
	_ = out.Start() // a client that has gone ends the context
	ctx, end := context.WithCancel(r.Context())
	var beat sync.WaitGroup
	beat.Go(func() {
		tick := time.NewTicker(keepAlive)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_ = out.Comment("alive")
			}
		}
	})
	result, err := h.o.Tools.Stream(ctx, req, func(e messages.ToolEvent) error { return out.send("output", e) })
	end()
	beat.Wait()
	if err != nil {
		_ = out.send("error", httpserver.Problem{Code: "closed", Message: err.Error()})
		return
	}
	_ = out.send("done", result)
}

// events are those of a run.
type events struct{ *sse.Writer }

func (e events) send(name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write an event: %w", err)
	}
	if err := e.Event(name, "", data); err != nil {
		return fmt.Errorf("write an event: %w", err)
	}
	return nil
}

func (h *handler) cancel(w http.ResponseWriter, r *http.Request) {
	run := r.URL.Query().Get("run_id")
	if run == "" {
		httpserver.Error(w, http.StatusBadRequest, "bad_request", "run_id is missing", "")
		return
	}
	if err := h.o.Tools.Cancel(r.Context(), run); err != nil {
		problem(w, err)
		return
	}
	httpserver.JSON(w, http.StatusAccepted, map[string]any{"run_id": run, "status": "cancelling"})
}

func (h *handler) pin(on bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h.o.Tools.Pin(r.Context(), r.PathValue("id"), on); err != nil {
			problem(w, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

func (h *handler) stop(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	running, err := h.o.Tools.Stop(r.Context(), id)
	if err != nil {
		problem(w, err)
		return
	}
	httpserver.JSON(w, http.StatusOK, client.ToolStopped{Status: "stopped", ToolID: id, WasRunning: running})
}

func (h *handler) prewarm(w http.ResponseWriter, r *http.Request) {
	queued, err := h.o.Tools.Prewarm(r.Context(), r.PathValue("id"))
	if err != nil {
		problem(w, err)
		return
	}
	httpserver.JSON(w, http.StatusAccepted, queued)
}

func (h *handler) logs(w http.ResponseWriter, r *http.Request) {
	limit := 0
	if s := r.URL.Query().Get("limit"); s != "" {
		var err error
		if limit, err = strconv.Atoi(s); err != nil || limit < 1 {
			httpserver.Error(w, http.StatusBadRequest, "bad_request", fmt.Sprintf("limit must be a number from 1, not %q", s), "")
			return
		}
	}
	log, err := h.o.Tools.Logs(r.Context(), r.PathValue("id"))
	switch {
	case err != nil:
		problem(w, err)
	case !log.Known:
		httpserver.Error(w, http.StatusNotFound, "not_found", "the tool had no process since the server was started", "")
	default:
		httpserver.JSON(w, http.StatusOK, client.ToolLogs{Lines: lastLines(log.Text, limit), Live: log.Live})
	}
}

// lastLines are the last lines of a text, all of them when limit is 0.
func lastLines(text string, limit int) []string {
	if text == "" {
		return []string{}
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if limit > 0 && len(lines) > limit {
		lines = lines[len(lines)-limit:]
	}
	return lines
}

// problem answers with an error of the launcher.
func problem(w http.ResponseWriter, err error) {
	told, ok := errors.AsType[*messages.ToolError](err)
	switch {
	case ok:
		httpserver.Error(w, statusOf(messages.ToolResult{Error: told}), string(told.Kind), told.Message, told.Hint)
	case errors.Is(err, launcher.ErrClosed):
		httpserver.Error(w, http.StatusServiceUnavailable, "draining", err.Error(), "")
	default:
		httpserver.Error(w, http.StatusInternalServerError, "internal", err.Error(), "")
	}
}
