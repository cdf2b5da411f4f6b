package hostcall

import (
	"context"
	"log/slog"

	"github.com/coppice-run/coppice/agent/primitive"
	"github.com/coppice-run/coppice/messages"
)

// Options say what a host offers to the code of its calls. The zero value of a
// field is what its comment says.
type Options struct {
	// Functions are offered to every call. nil: none.
	Functions []Function
	// Tools returns further functions, as they are now; it is asked for a name that
	// Functions does not have. nil: no further functions.
	Tools func(ctx context.Context) map[string]Function
	// Lacking says why there is no function of a name that somebody would expect to be
	// there; "" when nobody would. nil: nobody would.
	Lacking func(ctx context.Context, name string) string
	// MaxCalls is how many calls one cell may make. 0: no limit.
	MaxCalls int
	// MaxAtOnce is how many calls of one Execute may run at a time; more wait.
	// Required.
	MaxAtOnce int
	// Logger hears of functions that fail inside. Required.
	Logger *slog.Logger
}

// Host is what one host offers, and what of that runs. Any goroutine may use it.
type Host struct {
	o       Options
	offered map[string]Function
	inputs  *inputs
	running running
}

// New returns the host calls of a host.
func New(o Options) *Host { return &Host{o: o, offered: ByName(o.Functions), inputs: newInputs()} }

// Wait returns when no function, primitive or input handler runs any more, or with
// the names of those that still do when ctx ends.
func (h *Host) Wait(ctx context.Context) []messages.Leftover { return h.running.wait(ctx) }

// Offer is what one call offers besides what its host does.
type Offer struct {
	// Functions are offered to this call; one with the name of another takes its
	// place. nil: none.
	Functions []Function
	// Input answers questions of the code. nil: only Submit does.
	Input InputHandler
	// Primitives serves runtime.<pack>.<name>(...). Required.
	Primitives *primitive.Registry
	// Memory is the key of the conversation that the call belongs to.
	Memory string
}
