package gateway

import (
	"strings"
	"time"

	"github.com/coppice-run/coppice/internal/owned"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// Kind is that of a gateway in its host's tree.
const Kind = "gateway"

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
	// StartTimeout bounds the start of a kernel that does not end it itself. A kernel
	// has a budget of its own, and may have to wait for its turn. 0: 24 h.
	StartTimeout time.Duration
	// Hibernation keeps sessions on disk while they have no kernel; NewKernel gives its
	// kernels what they need of it. nil: nothing does.
	Hibernation Forgetter
	// Left ends what an earlier host has left of a session that is closed or begins anew. It
	// must not block. nil: nothing is left.
	Left func(key messages.SessionKey)
	// Servers are the children with the processes that kernels share; their kind is
	// [KindServer]. Empty: they share no process.
	Servers []supervisor.Spec
	// Strategy decides about kernels. nil: Policy{}.Strategy().
	Strategy strategy.Strategy
	// ServerStrategy decides about each of Servers. nil: restart with backoff, from a tenth of
	// a second to ten.
	ServerStrategy strategy.Strategy
	// Exhausted tells whether a failed start means that the machine has no
	// descriptors, processes or memory left. nil: by the text that operating
	// systems use.
	Exhausted func(error) bool
	// MaxQueue bounds the calls that wait for one key. 0: 1024.
	MaxQueue int
	// Tick is how often time-based policies are applied. 0: 1 s.
	Tick time.Duration
}

// Forgetter drops what is kept on disk of sessions. Its methods return at once, and what
// starts afterwards finds nothing.
type Forgetter interface {
	Forget(key messages.SessionKey)
	ForgetWorkspace(name string)
	// Begin has the next kernel of a session begin with a checkpoint that was made ready.
	// False: that was given up.
	Begin(key messages.SessionKey, ready string) bool
}

// KernelSpec says which kernel to make.
type KernelSpec struct {
	Key messages.SessionKey
	// Once says that it serves one call and then ends.
	Once bool
	// Owner is whom the session's first call is for, "" for no one in particular.
	Owner string
	// Past says why the session's earlier kernel ended; nil when there was
	// none, or when it never ran anything.
	Past *messages.Exit
	// Served is where the kernel notes whose calls it has served; nil when it serves one
	// call. It is that of all incarnations.
	Served *owned.Owners
}

// Policy is what happens to kernels, in numbers. The zero value of a field is
// its default.
type Policy struct {
	// Heartbeat is how often kernels are expected to give a sign of life. 0: 5 s.
	Heartbeat time.Duration
	// HeartbeatCeiling is how long a kernel may be silent that has no processor to
	// answer with, without the time in which this process stood still. 0: 120 times
	// Heartbeat.
	HeartbeatCeiling time.Duration
	// IdleTTL is after how long an idle kernel is ended. 0: 5 min.
	IdleTTL time.Duration
	// Hibernate has idle kernels hibernate after IdleTTL instead of ending. One that
	// cannot goes on, and is asked again after as long.
	Hibernate bool
	// MaxKernels is how many may live at once. 0: 4.
	MaxKernels int
	// MaxWaiting is how many new sessions may wait for a place when none can be
	// evicted. 0: they are refused at once.
	MaxWaiting int
	// MaxPerOwner is how many kernels one owner may have. 0: no limit.
	MaxPerOwner int
	// MaxRSS is the memory in bytes beyond which an idle kernel is ended, so
	// that its session's next call gets a new one. 0: no limit.
	MaxRSS int64
}

// Strategy returns the policy as a strategy:
//
//	Chain(RestartOnce(), Heartbeat(5s), Pin(Chain(IdleTTL(5m), LRU(4))))
//
// with Quota and MaxRSS beside IdleTTL when they are set.
func (p Policy) Strategy() strategy.Strategy {
	if p.Heartbeat == 0 {
		p.Heartbeat = 5 * time.Second
	}
	if p.IdleTTL == 0 {
		p.IdleTTL = 5 * time.Minute
	}
	if p.MaxKernels == 0 {
		p.MaxKernels = 4
	}
	evict := []strategy.Strategy{strategy.IdleTTL(p.IdleTTL)}
	if p.Hibernate {
		evict[0] = strategy.Hibernating(evict[0])
	}
	if p.MaxRSS > 0 {
		evict = append(evict, strategy.MaxRSS(p.MaxRSS))
	}
	if p.MaxPerOwner > 0 {
		evict = append(evict, strategy.Quota(p.MaxPerOwner))
	}
	evict = append(evict, strategy.LRUQueue(p.MaxKernels, p.MaxWaiting))
	hung := strategy.HeartbeatWithin(strategy.HeartbeatOptions{Every: p.Heartbeat, Ceiling: p.HeartbeatCeiling})
	return strategy.Chain(strategy.RestartOnce(), hung, strategy.Pin(strategy.Chain(evict...)))
}

// New returns the gateway as a behaviour for a supervisor's tree.
func New(o Options) *supervisor.Supervisor {
	if o.StopTimeout == 0 {
		o.StopTimeout = 17 * time.Second
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = 24 * time.Hour
	}
	if o.Strategy == nil {
		o.Strategy = Policy{}.Strategy()
	}
	if o.Exhausted == nil {
		o.Exhausted = exhausted
	}
	policy := strategy.For(KindKernel, o.Strategy)
	var children []supervisor.Spec
	if len(o.Servers) > 0 {
		if o.ServerStrategy == nil {
			// Calls wait for it: what was up for a while is started again at once, and
			// what does not come up soon enough for whoever tries again.
			o.ServerStrategy = strategy.Backoff(strategy.BackoffOptions{Initial: 100 * time.Millisecond, Max: 10 * time.Second})
		}
		policy = strategy.Chain(policy, strategy.For(KindServer, o.ServerStrategy))
		for _, server := range o.Servers {
			server.Kind = KindServer
			children = append(children, server)
		}
	}
	return supervisor.New(supervisor.Options{
		Name: o.Name, Strategy: policy, Children: children, MaxQueue: o.MaxQueue, Tick: o.Tick,
		// The capacity bounds them already: a kernel whose end is not confirmed
		// keeps its place.
		MaxAbandoned: 1 << 16,
		Handler:      &handler{o: o, calls: map[string]*call{}, byKey: map[string][]*call{}, starting: map[string]time.Time{}, served: map[string]bool{}, past: newPast(4096), owners: owners{}},
	})
}

// exhausted goes by the words of POSIX for EMFILE, ENFILE and EAGAIN, and by those
// of a Kernel Gateway that other hosts have filled, since
// much of what fails so fails in another process and arrives as text.
func exhausted(err error) bool {
	if err == nil {
		return false
	}
	text := strings.ToLower(err.Error())
	for _, sign := range []string{"too many open files", "emfile", "enfile", "resource temporarily unavailable", "kernel limit is reached"} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}
