package jupyter

import (
	"context"
	"errors"

	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
)

// Ping returns nil when the kernel answers on its control channel, which it
// does while a cell runs. A kernel of this machine that does not answer is
// alive all the same while it uses what it gets of a processor: native code that does
// not let other threads run silences it.
//
// Silence does not condemn the kernel either while its server does not answer,
// or while the connection is being dialled again. The connection has bounds of
// its own, and when they are passed the kernel is lost.
func (i *Interpreter) Ping(ctx context.Context) error {
	work := watchWork(i.worker())
	err := i.kernel.Ping(ctx)
	computes := work.computes()
	var silent *jupyter.SilentError
	if !errors.As(err, &silent) {
		return i.lost(err)
	}
	if silent.State == "" || silent.Away {
		return nil
	}
	if computes && (i.within != 0 || !process.Ended(i.identity)) {
		return nil
	}
	if i.server.Shared != nil && silent.State == "" && !process.Ended(i.server.Shared.Process) && !process.Ended(i.identity) {
		// It is the gateway that is silent. No kernel dies for that: it is under
		// suspicion, and Server.Run decides what becomes of it.
		return nil
	}
	return err
}

// worker is who may be seen to compute when the kernel does: of one without a number here all that
// it shares its sandbox with.
func (i *Interpreter) worker() opportunity.Subject {
	if i.within != 0 {
		return i.server.subject()
	}
	return opportunity.Processes(i.identity)
}

// Subject is the kernel's process and that of its gateway, which passes requests and
// answers on. Of a kernel elsewhere nothing is known.
func (i *Interpreter) Subject() opportunity.Subject {
	if i.server.rules.Inside() {
		return i.server.subject()
	}
	return opportunity.Processes(i.identity, i.server.process())
}

// RSS returns the memory of the kernel's process, 0 when it is not local.
func (i *Interpreter) RSS() int64 {
	if i.identity.PID == 0 {
		return 0
	}
	rss, err := process.RSS(i.identity.PID)
	if err != nil {
		return 0
	}
	return rss
}
