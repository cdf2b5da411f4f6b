package gateway

import (
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// Kinds of children in a gateway's tree.
const (
	KindKernel = "kernel"
	KindServer = "server"
)

// Options makes a gateway. The zero value of a field is its default.
type Options struct {
	// Name is the gateway's name in the tree, and what results call the
	// backend: "gateway" or "runner". Required.
	Name string
	// NewKernel makes the behaviour that serves one key. It is called in the
	// gateway's goroutine or in the kernel's own, and must not block. Required.
	NewKernel func(KernelSpec) supervisor.Behaviour
	// StopTimeout bounds the end of one kernel. 0: 17 s.
	StopTimeout time.Duration
	// StartTimeout bounds the start of one kernel, the wait for a shared
	// process included. 0: 90 s.
	StartTimeout time.Duration
	// Server is the process that the kernels share, nil when there is none.
	Server *supervisor.Spec
	// Strategy decides about kernels. nil: DefaultStrategy().
	Strategy supervisor.Strategy
	// ServerStrategy decides about Server. nil: restart with backoff.
	ServerStrategy supervisor.Strategy
	// MaxQueue bounds the calls that wait for one key. 0: 1024.
	MaxQueue int
	// Tick is how often time-based policies are applied. 0: 1 s.
	Tick time.Duration
}

// KernelSpec says which kernel to make.
type KernelSpec struct {
	Key messages.SessionKey
	// Past says why the session's earlier kernel ended; nil when there was
	// none, or when it never ran anything.
	Past *messages.Exit
}

// DefaultStrategy is the policy for kernels: one restart after a death, a
// heartbeat of 5 s, and, for sessions that are not pinned, eviction after five
// idle minutes and of the least recently used of more than four.
func DefaultStrategy() supervisor.Strategy {
	return Strategy(5*time.Second, 5*time.Minute, 4, 0)
}

// Strategy is [DefaultStrategy] with other numbers. waiting is how many new
// sessions may wait for a place when none can be evicted; with 0 they are
// refused at once.
func Strategy(heartbeat, idle time.Duration, maxKernels, waiting int) supervisor.Strategy {
	capacity := supervisor.LRU(maxKernels)
	if waiting > 0 {
		capacity = supervisor.LRUQueue(maxKernels, waiting)
	}
	return supervisor.Chain(
		supervisor.RestartOnce(),
		supervisor.Heartbeat(heartbeat),
		supervisor.Pin(supervisor.Chain(supervisor.IdleTTL(idle), capacity)),
	)
}

// New returns the gateway as a behaviour for a supervisor's tree.
func New(o Options) *supervisor.Shell {
	if o.StopTimeout == 0 {
		o.StopTimeout = 17 * time.Second
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = 90 * time.Second
	}
	if o.Strategy == nil {
		o.Strategy = DefaultStrategy()
	}
	strategy := supervisor.For(KindKernel, o.Strategy)
	var children []supervisor.Spec
	if o.Server != nil {
		if o.ServerStrategy == nil {
			o.ServerStrategy = supervisor.Backoff(supervisor.BackoffOptions{})
		}
		strategy = supervisor.Chain(strategy, supervisor.For(KindServer, o.ServerStrategy))
		server := *o.Server
		server.Kind, server.Restart = KindServer, supervisor.Permanent
		children = []supervisor.Spec{server}
	}
	return supervisor.NewShell(supervisor.Options{
		Name: o.Name, Strategy: strategy, Children: children, MaxQueue: o.MaxQueue, Tick: o.Tick,
		Door: &door{o: o, calls: map[string]*call{}, byKey: map[string][]*call{}, starting: map[string]time.Time{}, served: map[string]bool{}, past: newPast(4096)},
	})
}
