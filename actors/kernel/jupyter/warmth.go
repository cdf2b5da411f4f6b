package jupyter

import (
	"fmt"
	"runtime"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/home"
	"github.com/coppice-run/coppice/internal/machine"
)

// What a machine needs so that a kernel waits although none was asked for.
const (
	warmProcessors = 4
	warmMemory     = 2 << 30
)

// warming is what becomes of [HostOptions.WarmKernels].
type warming struct {
	kernels int
	lazy    bool   // not before a session has answered, and not for ever
	why     string // a sentence for people
}

// warmth decides how many kernels wait for new sessions.
func warmth(o HostOptions, s kernel.Site) warming {
	switch {
	case o.URL != "":
		return warming{why: "none waits: the gateway is external"}
	case o.WarmKernels < 0:
		return warming{why: "none waits, as WarmKernels says"}
	case o.WarmKernels > 0:
		return warming{kernels: o.WarmKernels, why: fmt.Sprintf("%d wait, as WarmKernels says", o.WarmKernels)}
	case s.MaxSessions < 2:
		return warming{why: "none waits: there is one session at a time"}
	}
	return warmOn(runtime.GOMAXPROCS(0), machine.Look(home.TempDir(s.Env)).Available)
}

// warmOn decides it for a machine; a system that does not tell its free memory (0)
// is taken to have enough.
func warmOn(processors int, free uint64) warming {
	switch {
	case processors < warmProcessors:
		return warming{why: fmt.Sprintf("none waits for new sessions of the gateway backend: of %d processors %d are there, and its start would slow others", warmProcessors, processors)}
	case free > 0 && free < warmMemory:
		return warming{why: fmt.Sprintf("none waits for new sessions of the gateway backend: %s of memory is free, less than %s", machine.Size(free), machine.Size(warmMemory))}
	}
	return warming{kernels: 1, lazy: true, why: fmt.Sprintf("one waits for new sessions of the gateway backend once the first has answered (%d processors)", processors)}
}
