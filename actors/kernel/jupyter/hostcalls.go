package jupyter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/internal/pysrc"
	"github.com/coppice-run/coppice/messages"
)

// Variables of a kernel that may call its host, for the programs that its code
// starts. The token opens nothing but the session's own functions, while a cell
// of it runs.
const (
	bridgeURL     = "PI_TOOL_BRIDGE_URL"
	bridgeToken   = "PI_TOOL_BRIDGE_TOKEN"
	bridgeSession = "PI_TOOL_BRIDGE_SESSION"
)

// hostCalls is what an interpreter's code asks of the host.
type hostCalls struct {
	// session names the interpreter at the bridge; set before it is handed out.
	session string

	mu       sync.Mutex
	serve    func(context.Context, messages.HostCall) messages.HostResult // of the running cell, nil between cells; guarded by mu
	question string                                                       // that waits; guarded by mu
}

// begin lets the calls of a cell in.
func (h *hostCalls) begin(serve func(context.Context, messages.HostCall) messages.HostResult) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.serve = serve
}

// end closes it.
func (h *hostCalls) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.serve, h.question = nil, ""
}

// asked notes the question that waits: a kernel has one at a time.
func (h *hostCalls) asked(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.question = id
}

// open says whether a question still waits, and ends it.
func (h *hostCalls) open(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if id == "" || h.question != id {
		return false
	}
	h.question = ""
	return true
}

// call serves a call that came over the bridge.
func (h *hostCalls) call(ctx context.Context, c messages.HostCall) messages.HostResult {
	h.mu.Lock()
	serve := h.serve
	h.mu.Unlock()
	if serve == nil {
		return messages.HostResult{Error: &messages.HostError{Type: "CellEnded", Message: fmt.Sprintf("No active Python tool bridge session: %s: no cell is running, and the host answers only while one does", h.session)}}
	}
	return serve(ctx, c)
}

// hostPlace returns the environment with which a new kernel can reach its host, and
// where that is.
func (i *Interpreter) hostPlace(env map[string]string) (map[string]string, pysrc.KernelSession) {
	b := i.server.Bridge
	if b == nil {
		return env, pysrc.KernelSession{}
	}
	i.calls.session = messages.NewID()
	token := b.Register(i.calls.session, i.calls.call)
	env = maps.Clone(env)
	if env == nil {
		env = map[string]string{}
	}
	env[bridgeURL], env[bridgeToken], env[bridgeSession] = b.URL(), token, i.calls.session
	return env, pysrc.KernelSession{URL: b.URL(), Token: token, Session: i.calls.session}
}

// resetNames removes what cells have defined.
func (i *Interpreter) resetNames(ctx context.Context) (kernel.CellReply, error) {
	out, err := i.kernel.Execute(ctx, jupyter.ExecuteRequest{Code: pysrc.ResetCode, Silent: true}, nil)
	if errors.Is(err, jupyter.ErrNoReply) {
		return kernel.CellReply{Interrupted: true}, nil
	}
	reply := kernel.CellReply{OK: err == nil && out.Status == jupyter.ReplyOK, Duration: out.Duration}
	if out.Error != nil {
		reply.Error = &messages.ErrorDetails{Name: out.Error.Name, Message: out.Error.Message}
	}
	return reply, i.lost(err)
}
