package coppice

import (
	"context"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/actors/kernel/runner"
)

// Limits bound what one session uses. 0: no limit. A result whose code met one has
// Exceeded set. With the gateway backend only Runtime can be set.
//
// On Linux, where the control group of the host (version 2) is left to it, every
// session of a host with limits gets a control group of its own, and Memory and
// Processes hold for all that the session has started, too; [Host.ControlGroups]
// says whether, and why not. The host then moves itself to a group named
// coppice-host below its own.
type Limits struct {
	// Memory is how much more address space the session's process may map than it
	// had at its start, in bytes; so may each process that it starts. Code beyond
	// it gets a MemoryError. A thread maps about 72 MiB and uses little of it. With a
	// control group, the session and what it has started may use as much together,
	// and 64 MiB for the session itself; beyond, the system ends all of them, and the
	// result is lost with Exceeded.
	Memory int64
	// CPU is the processor time of one cell, in whole seconds, rounded up. It is
	// interrupted then; when it goes on for two seconds more, its session ends.
	CPU time.Duration
	// Runtime is how long one cell may run. It is interrupted then, as by a
	// timeout, whatever the timeout of its call is.
	Runtime time.Duration
	// Files is how many descriptors code may have open.
	Files int
	// Processes is how many processes a session may have started that live. They
	// are counted ten times a second while a cell runs; when there are more, all
	// of them are ended and the cell is interrupted. A control group refuses to start
	// more than 256 processes and threads beyond it, also of processes that have
	// left the session.
	Processes int
	// Processors is how many processors a session and what it has started may keep
	// busy, 0.5 for half of one. It needs a control group: where there is none to be
	// had, Start fails.
	Processors float64
}

// check refuses what a backend cannot do.
func (l Limits) check(backend string) error {
	if l.Memory < 0 || l.CPU < 0 || l.Runtime < 0 || l.Files < 0 || l.Processes < 0 || l.Processors < 0 {
		return fmt.Errorf("%w: a limit of sessions is negative: %+v", ErrOptions, l)
	}
	if rest := (Limits{Runtime: l.Runtime}); backend != BackendRunner && l != rest {
		return fmt.Errorf("%w: the gateway backend has no limits but Runtime; use the runner backend", ErrOptions)
	}
	if err := l.runner().Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return nil
}

// ControlGroups returns the controllers (memory, pids, cpu) of the control groups
// that the host's sessions have, none when they have no group, and why those are
// not there that Options.Limits could use: such limits are then kept to by each
// process of a session for itself. It waits while the fork server starts; the error
// is why it could not.
func (h *Host) ControlGroups(ctx context.Context) (controllers []string, why string, err error) {
	if h.runner == nil {
		return nil, "the gateway backend has no limits that want control groups", nil
	}
	return h.runner.Groups(ctx)
}

// runner returns the limits that the interpreter itself is bound by.
func (l Limits) runner() runner.Limits {
	return runner.Limits{Memory: l.Memory, CPU: l.CPU, Files: l.Files, Processes: l.Processes, Processors: l.Processors}
}
