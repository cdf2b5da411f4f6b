package runner

import (
	"context"
	"time"

	"github.com/coppice-run/coppice/internal/estate"
	"github.com/coppice-run/coppice/internal/process"
)

// KillWait is how long a session that has closed its descriptors has to end.
const KillWait = killWait

// InGroups has all sessions of a server get control groups under a folder, also
// without limits.
func (o ServerOptions) InGroups(base string) ServerOptions {
	o.groupBase = base
	return o
}

// HoldControl keeps requests from the session's side thread, as a long answer to a call
// of the host does, until the function returned is called.
func (i *Interpreter) HoldControl() func() {
	i.writing <- struct{}{}
	return func() { <-i.writing }
}

// over is a context that has ended.
type over struct{ context.Context }

func (over) Err() error { return context.Canceled }

// SettleLate takes a session over as one of an earlier host whose start is over before
// anything was written to it.
func (i *Interpreter) SettleLate(ctx context.Context) error {
	i.held.Store(&kept{keeper: &keeper{}, log: &estate.Log{}})
	defer i.held.Store(nil)
	_ = i.child.Main.SetDeadline(time.Unix(1, 0))
	return i.settle(over{context.WithoutCancel(ctx)})
}

// CutOff ends a session that cannot be reached; left says that it was left before.
func (i *Interpreter) CutOff(left bool) {
	i.mu.Lock()
	i.left = left
	i.mu.Unlock()
	i.cutOff()
	i.mu.Lock()
	i.left = false
	i.mu.Unlock()
}

// KeepCensus has what the processes of the machine belong to be taken for known for long.
func KeepCensus() {
	_ = theCensus.of(process.Belonging{}, true)
	theCensus.mu.Lock()
	defer theCensus.mu.Unlock()
	theCensus.at, theCensus.took = theCensus.at.Add(time.Hour), time.Hour
}

// Others returns how many processes of the session there are besides its own.
func (i *Interpreter) Others() int {
	b := i.belongs()
	pids, grouped := b.members()
	if !grouped {
		pids = b.related(true)
	}
	return len(b.others(pids))
}
