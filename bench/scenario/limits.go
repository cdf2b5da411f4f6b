package scenario

import (
	"fmt"

	"github.com/coppice-run/coppice/test/backends"
)

// machine is what a run may be short of; -1 where it is not known.
type machine struct {
	files  int64 // descriptors that this process may have, at most
	pids   int64 // processes and threads that may be added
	memory int64 // bytes that are available
	cpus   int
}

// What one session takes, about: see the report.
const (
	filesEach          = 3
	pidsEach           = 2
	memoryEach         = 3 << 20
	kernelPIDs         = 14
	kernelMemory       = 60 << 20
	kernelFiles        = 12   // of the gateway, which inherits the limit
	callsOfOneCPU      = 3000 // a second, runner
	kernelCallsPerCPU  = 100
	supervisionPerCPU  = 20_000
	supervisionSession = 64 << 10
)

// Warnings lists what of this machine would bias a run: limits that it would
// meet, and a load that it cannot make.
func Warnings(o Setup) []string { return o.warnings(thisMachine()) }

func (o Setup) warnings(m machine) []string {
	files, pids, memory, calls := int64(filesEach), int64(pidsEach), int64(memoryEach), float64(callsOfOneCPU)
	switch o.Backend {
	case backends.Gateway:
		files, pids, memory, calls = kernelFiles, kernelPIDs, kernelMemory, kernelCallsPerCPU
	case Fake:
		files, pids, memory, calls = 0, 0, supervisionSession, supervisionPerCPU
	}
	n := int64(o.Sessions)
	var out []string
	if m.files >= 0 && n*files+64 > m.files {
		out = append(out, fmt.Sprintf("%d sessions need about %d descriptors, and this process may have %d: raise it with `ulimit -n`, or use fewer --sessions", n, n*files+64, m.files))
	}
	if m.pids >= 0 && n*pids > m.pids {
		out = append(out, fmt.Sprintf("%d sessions need about %d processes and threads, and %d are left: raise kernel.pid_max or `ulimit -u`, or use fewer --sessions", n, n*pids, m.pids))
	}
	if m.memory >= 0 && n*memory > m.memory {
		out = append(out, fmt.Sprintf("%d sessions need about %d MiB, and %d are available: the machine would swap or kill; use fewer --sessions", n, n*memory>>20, m.memory>>20))
	}
	if o.Rate > calls*float64(m.cpus) {
		out = append(out, fmt.Sprintf("%g calls a second are more than %d processors make: the latencies would be those of a queue that only grows; use a lower --rate", o.Rate, m.cpus))
	}
	return out
}
