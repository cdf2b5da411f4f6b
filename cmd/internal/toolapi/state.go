package toolapi

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/messages"
)

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
	httpserver.Answer(w, r, http.StatusOK, Summarise(entries, s, checks))
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
	httpserver.Answer(w, r, http.StatusOK, report)
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
	limit, _, err := httpserver.Number(r, "limit", 1)
	if err != nil {
		httpserver.Error(w, http.StatusBadRequest, "bad_request", err.Error(), "")
		return
	}
	log, err := h.o.Tools.Logs(r.Context(), r.PathValue("id"))
	switch {
	case err != nil:
		problem(w, err)
	case !log.Known:
		httpserver.Error(w, http.StatusNotFound, "not_found", "the tool had no process since the server was started", "")
	default:
		httpserver.Answer(w, r, http.StatusOK, client.ToolLogs{Lines: lastLines(log.Text, limit), Live: log.Live})
	}
}

// lastLines are the last lines of a text, all of them when limit is 0.
func lastLines(text string, limit int64) []string {
	if text == "" {
		return []string{}
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if limit > 0 && int64(len(lines)) > limit {
		lines = lines[int64(len(lines))-limit:]
	}
	return lines
}
