package toolapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/internal/sse"
	"github.com/coppice-run/coppice/messages"
)

// maxRequest bounds the inputs of a run, in bytes.
const maxRequest = 64 << 20

// keepAlive is how often a stream without events says that it lives.
const keepAlive = 15 * time.Second

// runID is what the name of a run may look like; the document has the same.
// Each repetition is a state of its own, so that it is made when it is first asked.
var runID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`) })

// request reads the body of run and stream, or answers with what is wrong with it.
// A run may do without a body.
func request(w http.ResponseWriter, r *http.Request) (launcher.Request, bool) {
	var body struct { // client.RunTool, with what is empty apart from what is not there
		Inputs  json.RawMessage `json:"inputs,omitempty"`
		Run     *string         `json:"run_id,omitempty"`
		Timeout float64         `json:"timeout_seconds,omitempty"`
	}
	if !empty(r) && !httpserver.Body(w, r, maxRequest, &body) {
		return launcher.Request{}, false
	}
	if in := bytes.TrimSpace(body.Inputs); len(in) > 0 && in[0] != '{' {
		httpserver.Error(w, http.StatusBadRequest, "bad_request", "inputs is no object", `send {"inputs": {"NAME": VALUE}}`)
		return launcher.Request{}, false
	}
	run := ""
	if body.Run != nil {
		if run = *body.Run; !runID().MatchString(run) {
			httpserver.Error(w, http.StatusBadRequest, "bad_request", fmt.Sprintf("run_id is %.80q, and must be of letters, digits, dots, dashes and underscores", run), "leave it out for a new one")
			return launcher.Request{}, false
		}
	}
	const most = 86400
	if body.Timeout < 0 || body.Timeout > most {
		httpserver.Error(w, http.StatusBadRequest, "bad_request", fmt.Sprintf("timeout_seconds must be from 0 to %d", most), "")
		return launcher.Request{}, false
	}
	return launcher.Request{Tool: r.PathValue("id"), Inputs: body.Inputs, ID: run, Timeout: time.Duration(body.Timeout * float64(time.Second))}, true
}

// empty reports whether a request has no body. A body of no known length that is
// not said to be JSON loses its first byte, which is not read.
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
