package kernel

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/supervisor"
)

// Server is the process that the interpreters of a backend come from: a Kernel
// Gateway, a fork server, or a connection to one that somebody else runs.
type Server interface {
	// Run starts the process, calls up once when it can be used, and returns when
	// it has ended: nil when ctx ended and the process was stopped, else why it
	// could not start or why it ended. Whatever Run started is gone when it returns.
	// It is called again after a failure, soon when it was up before, never twice at
	// once.
	Run(ctx context.Context, up func(pid int)) error
}

// server is the actor that runs a Server. It is up at once, so that a host does not
// wait for a process that no session needs yet; kernels wait for the process
// themselves.
type server struct {
	s       Server
	end     context.CancelFunc
	process process.Identity // zero until it is up
	pump    sync.WaitGroup
}

type (
	serverUp    struct{ pid int }
	serverWell  struct{}
	serverEnded struct{ err error }
)

// wellAfter is how long a process has to be up for its earlier failures to be
// forgotten: one that is killed again and again is started again each time, without
// waiting longer for it than for the first.
const wellAfter = time.Second

// Init starts the process; it does not wait for it.
func (a *server) Init(ctx *supervisor.Ctx) error {
	life, end := context.WithCancel(ctx.Context())
	a.end = end
	ctx.Note(supervisor.Facts{Detail: "starting"})
	a.pump.Go(func() {
		err := a.s.Run(life, func(pid int) { ctx.Tell(serverUp{pid}) })
		ctx.Tell(serverEnded{err})
	})
	return nil
}

// Handle follows the process.
func (a *server) Handle(ctx *supervisor.Ctx, msg any) error {
	switch m := msg.(type) {
	case serverUp:
		a.process, _ = process.Identify(m.pid) // without it nothing is known of its waits
		ctx.Note(supervisor.Facts{PID: m.pid})
		ctx.After(wellAfter, serverWell{})
	case serverWell:
		ctx.Well()
	case serverEnded:
		if m.err == nil {
			return supervisor.ErrDone
		}
		return fmt.Errorf("the shared process ended: %w", m.err)
	default:
		return supervisor.Unknown(msg)
	}
	return nil
}

// lookEvery is how often a process that is slow to end is looked at.
const lookEvery = time.Second

// Terminate stops the process and waits for its end. It says how long that had no
// processor to end with, and what it ends: a Kernel Gateway waits for its kernels.
func (a *server) Terminate(ctx *supervisor.Ctx, _ supervisor.Exit) {
	a.end()
	over := make(chan struct{})
	go func() { // ends with the process, and is waited for here
		a.pump.Wait()
		close(over)
	}()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	late := silence{meter: opportunity.Begin(opportunity.Tree(a.process), ctx.Stalls())}
	for {
		select {
		case <-over:
			return
		case <-tick.C:
			late.look(ctx.Waited)
		}
	}
}

// serverStop is enough for a Kernel Gateway that ends its kernels one after the
// other and is then killed, with those that are left: the former is bounded by the
// backend, by half of this.
const serverStop = 20 * time.Second

// ServerSpec is the child of a gateway that runs s, named name.
func ServerSpec(name string, s Server) *supervisor.Spec {
	return &supervisor.Spec{Key: name, New: func() supervisor.Behaviour { return &server{s: s} }, StopTimeout: serverStop}
}

var _ supervisor.Behaviour = (*server)(nil)
