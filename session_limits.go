package coppice

import (
	"fmt"
	"time"

	"github.com/coppice-run/coppice/actors/kernel/runner"
)

// Limits bound what one session uses. 0: no limit. A result whose code met one has
// Exceeded set. With the gateway backend only Runtime can be set.
type Limits struct {
	// Memory is how much more address space the session's process may map than it
	// had at its start, in bytes; so may each process that it starts. Code beyond
	// it gets a MemoryError. A thread maps about 72 MiB and uses little of it.
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
	// of them are ended and the cell is interrupted.
	Processes int
}

// check refuses what a backend cannot do.
func (l Limits) check(backend string) error {
	if l.Memory < 0 || l.CPU < 0 || l.Runtime < 0 || l.Files < 0 || l.Processes < 0 {
		return fmt.Errorf("%w: a limit of sessions is negative: %+v", ErrOptions, l)
	}
	if rest := (Limits{Runtime: l.Runtime}); backend != BackendRunner && l != rest {
		return fmt.Errorf("%w: the gateway backend has no limits but Runtime; use the runner backend", ErrOptions)
	}
	return nil
}

// runner returns the limits that the interpreter itself is bound by.
func (l Limits) runner() runner.Limits {
	return runner.Limits{Memory: l.Memory, CPU: l.CPU, Files: l.Files, Processes: l.Processes}
}
