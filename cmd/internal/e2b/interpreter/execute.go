package interpreter

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/e2b/answer"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/workspace"
)

// keepAlive is how often a client gets a line while its code shows nothing, so that one
// that has gone without a word is missed.
const keepAlive = 15 * time.Second

// charts is the variable that asks kernels for the data of charts and tables.
const charts = "COPPICE_CHARTS"

// refuse answers a request that no kernel took.
func (i *Interpreter) refuse(w http.ResponseWriter, err error) {
	_, ended := errors.AsType[*workspace.EndedError](err)
	_, request := errors.AsType[*coppice.RequestError](err)
	switch {
	case ended, errors.Is(err, coppice.ErrClosed):
		answer.Ended(w, i.w.Name())
	case request:
		answer.Error(w, http.StatusBadRequest, err.Error())
	case errors.Is(err, messages.ErrOverloaded):
		answer.Error(w, http.StatusTooManyRequests, err.Error())
	default:
		answer.Error(w, http.StatusInternalServerError, err.Error())
	}
}

// execute runs code.
func (i *Interpreter) execute(w http.ResponseWriter, r *http.Request) {
	var o struct {
		Code     string            `json:"code"`
		Context  string            `json:"context_id"`
		Language string            `json:"language"`
		Env      map[string]string `json:"env_vars"`
	}
	if !answer.Body(w, r, maxBody, &o) {
		return
	}
	if strings.TrimSpace(o.Language) != "" && o.Context != "" {
		answer.Error(w, http.StatusBadRequest, "Only one of context_id or language can be provided")
		return
	}
	var c *session
	if o.Context != "" {
		if c = i.find(o.Context); c == nil {
			unknown(w, o.Context)
			return
		}
	} else {
		t, err := i.speaks(r.Context(), o.Language)
		if err != nil {
			refuseLanguage(w, err)
			return
		}
		if c = i.speaking(t); c == nil {
			full(w)
			return
		}
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	out := newLines(w, cancel) // at once: clients do not wait long for the head of an answer
	defer out.close()
	req := coppice.Request{Cells: []messages.Cell{{Code: o.Code}}, Timeout: coppice.NoTimeout, Count: true, CallEnv: o.Env}
	if c.Language == python { // others take code as it stands, and have no environment that could be set
		req.Cells[0].Code, req.Env = outdented(o.Code), map[string]string{charts: "1"}
	}
	run(ctx, c, out, req)
	if i.w.Err() != nil {
		// What was sent is not whole. A client whose stream breaks off asks whether the
		// sandbox is there, and tells its user that it has ended.
		panic(http.ErrAbortHandler)
	}
	out.send(plainLine{"end_of_execution"})
}

// outdented is code without the indentation of its first line, as IPython takes it: code
// stands within other code, where it is written.
func outdented(code string) string {
	lines := strings.SplitAfter(code, "\n")
	first := slices.IndexFunc(lines, func(l string) bool { return strings.TrimSpace(l) != "" })
	if first < 0 {
		return code
	}
	indent := lines[first][:len(lines[first])-len(strings.TrimLeft(lines[first], " \t"))]
	if indent == "" {
		return code
	}
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, indent)
	}
	return strings.Join(lines, "")
}

// run makes the call.
func run(ctx context.Context, c *session, out *lines, req coppice.Request) {
	for e, err := range c.s.Stream(ctx, req) {
		if err != nil {
			out.send(failure("ExecutionError", err.Error()))
			return
		}
		for _, line := range linesOf(e) {
			out.send(line)
		}
	}
}

// lines writes JSON lines to a client.
type lines struct {
	w      http.ResponseWriter
	conn   *http.ResponseController
	cancel func() // ends the call, when the client has gone
	over   chan struct{}
	done   chan struct{} // closed when the goroutine of keep-alives has ended

	mu   sync.Mutex
	last time.Time // when a line was written; guarded by mu
}

// newLines begins the answer.
func newLines(w http.ResponseWriter, cancel func()) *lines {
	l := &lines{w: w, conn: http.NewResponseController(w), cancel: cancel, over: make(chan struct{}), done: make(chan struct{}), last: time.Now()}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	_ = l.conn.Flush() // a client that has gone is missed with the first line
	go l.alive()       // ends with close, which joins it
	return l
}

// send writes a line. Any goroutine may call it.
func (l *lines) send(v any) {
	data, err := json.Marshal(v)
	if err != nil {
		data, _ = json.Marshal(failure("ValueError", "a result could not be written: "+err.Error())) // it is made of strings
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = time.Now()
	_, err = l.w.Write(append(data, '\n'))
	if err == nil {
		err = l.conn.Flush()
	}
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		l.cancel()
	}
}

// alive writes a line when none was written for a while.
func (l *lines) alive() {
	defer close(l.done)
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for {
		select {
		case <-l.over:
			return
		case <-tick.C:
		}
		l.mu.Lock()
		idle := time.Since(l.last) >= keepAlive/2
		l.mu.Unlock()
		if idle {
			l.send(plainLine{"keepalive"})
		}
	}
}

// close ends the stream.
func (l *lines) close() {
	close(l.over)
	<-l.done
}
