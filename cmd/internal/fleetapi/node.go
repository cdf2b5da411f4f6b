package fleetapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-run/coppice/cmd/internal/fleetapi/about"
	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/internal/inbound"
	"github.com/coppice-run/coppice/internal/pause"
	"github.com/coppice-run/coppice/messages"
)

// Sessions is what a node serves. Any goroutine may call its methods.
type Sessions interface {
	// Live lists those that have a kernel.
	Live(ctx context.Context) ([]messages.SessionKey, error)
	// End ends one, with what runs in it.
	End(ctx context.Context, key messages.SessionKey) error
	// Watch calls f, which does not block, after each change: with the key of a session whose
	// kernel has ended, and with the reason when that was in order, a clause; else "".
	Watch(f func(ended messages.SessionKey, why string)) (stop func())
}

// Options make a Node. The zero value of a field is its default.
type Options struct {
	// Directory is what the fleet shares. Required; the node does not close it.
	Directory fleet.Directory
	// Name is what people know the node by. "": that of package fleet.
	Name string
	// TTL is how long a lease lasts. 0: 15 s.
	TTL time.Duration
	// Version is the program's.
	Version string
	// Cwd is the working directory of sessions that name none.
	Cwd string
	// Kernel is the name that a kernelspec has in the keys of sessions, "" for the one of sessions
	// that name none. nil: the name itself.
	Kernel func(name string) string
	// Sessions and Knows are the sessions of the node, and whether it knows an execution by
	// its id. Required.
	Sessions Sessions
	Knows    func(execution string) bool
	// Running is how many executions run or wait at this node, and Untold of how many that
	// have ended since a time nobody has asked for the result. nil: none.
	Running func() int
	Untold  func(since time.Time) int
	// Records is where the host of the sessions keeps them on disk, and Hibernate keeps one
	// there and ends its kernel; an error says why it goes on. nil: none is kept.
	Records   *Records
	Hibernate func(ctx context.Context, key messages.SessionKey) error
	// Spread has a session that nobody has begin at the node that the fleet chooses, in place of
	// this one. A node with Front has no sessions: it sends on what others have, and chooses as
	// with Spread.
	Spread, Front bool
	// Labels are what requests may ask for of the node at which something begins ([HeaderLabels]).
	Labels map[string]string
	// Most is how many sessions and workspaces all nodes have together, at most; all nodes say the
	// same. 0: any number.
	Most int
	// Seen hears which other nodes there are, whenever that changes, and does not block. nil: nobody does.
	Seen func(others []fleet.Node)
	// Leave has the server drain the node and end; it returns at once. nil: it is not asked
	// to by requests.
	Leave func()
	// Transport carries requests to other nodes. nil: one of the node's own.
	Transport http.RoundTripper
	// Clock counts the lease. nil: [fleet.SystemClock].
	Clock fleet.Clock
	// Metrics takes what the node counts. nil: it is not shown.
	Metrics prometheus.Registerer
	// Logger hears what becomes of the node. nil: it is not logged.
	Logger *slog.Logger
}

// DefaultTTL is that of package fleet.
const DefaultTTL = 15 * time.Second

// Node is a server's part in a fleet. Make it with New.
type Node struct {
	about.Reader

	o       Options
	url     string
	own     *http.Transport // nil when the transport is the caller's
	roster  *fleet.Roster
	running context.Context // of the goroutines
	end     context.CancelFunc
	joined  sync.WaitGroup
	sweep   chan struct{}
	counts  *counts

	mu     sync.Mutex
	member *fleet.Member   // of this life; nil between two
	life   context.Context // ends with it
	over   context.CancelFunc
	keys   map[string]*entry
	peers  map[string]*peer
	placed about.Places
	// told is closed once the directory has said which other nodes there are.
	told chan struct{}
	// draining says that nothing more begins.
	draining bool
}

// New makes a node, which takes part from Join on.
func New(o Options) *Node {
	if o.TTL == 0 {
		o.TTL = DefaultTTL
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	n := &Node{o: o, sweep: make(chan struct{}, 1), keys: map[string]*entry{}, peers: map[string]*peer{}, told: make(chan struct{})}
	if n.o.Transport == nil {
		n.own = &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute, ExpectContinueTimeout: inbound.ContinueTimeout}
		n.o.Transport = n.own
	}
	n.Reader = about.Reader{Cwd: o.Cwd, Kernel: o.Kernel, To: n.route, No: n.refuse}
	n.counts = newCounts(n)
	if o.Records != nil {
		o.Records.node.Store(n)
	}
	return n
}

// Join begins the first life of the node, which others reach at url, as long as ctx lasts.
// It is called once; after an error, Close is not needed.
func (n *Node) Join(ctx context.Context, url string) error {
	n.url = url
	if err := n.begin(ctx); err != nil {
		return err
	}
	n.running, n.end = context.WithCancel(context.WithoutCancel(ctx))
	n.roster = fleet.NewRoster(n.o.Directory, n.o.Transport)
	stop := n.o.Sessions.Watch(n.changed)
	n.joined.Go(func() { n.living(n.running) })
	n.joined.Go(func() { n.watching(n.running) })
	n.joined.Go(func() {
		defer stop()
		n.sweeping(n.running)
	})
	// Whoever asks this node next may count on those that were there before it: a front without them
	// has nowhere to begin anything. A directory that is away meanwhile is not waited for.
	first := time.NewTimer(n.o.TTL)
	defer first.Stop()
	select {
	case <-n.told:
	case <-first.C:
	case <-ctx.Done():
	}
	return nil
}

// begin begins a life.
func (n *Node) begin(ctx context.Context) error {
	m, err := fleet.Join(ctx, fleet.Options{
		Directory: n.o.Directory, Name: n.o.Name, URL: n.url, TTL: n.o.TTL, Most: n.o.Most, Free: isWriting, Version: n.o.Version, Labels: n.labels(), Clock: n.o.Clock, Log: n.o.Logger,
		Load: func() fleet.Load { return fleet.Load{Sessions: n.owned()} },
	})
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.member = m
	n.life, n.over = context.WithCancel(context.Background())
	n.counts.lives.Inc()
	return nil
}

// living goes from life to life until ctx ends.
func (n *Node) living(ctx context.Context) {
	for {
		m, _ := n.now()
		select {
		case <-ctx.Done():
			return
		case <-m.Done():
		}
		n.o.Logger.Warn("this life of the node is over: its sessions are ended", "node", m.ID(), "error", m.Err())
		n.mu.Lock()
		n.member = nil
		n.over()
		n.mu.Unlock()
		cleared := n.clear(ctx)
		_ = m.Leave(ctx) // it was declared dead, and has nothing to say
		if !cleared || n.isDraining() {
			return // another life would begin nothing
		}
		for wait := firstPause; ; {
			err := n.begin(ctx)
			if err == nil {
				break
			}
			n.o.Logger.Warn("the node could not begin another life", "error", err)
			if !pause.Wait(ctx, &wait) {
				return
			}
		}
	}
}

// clear ends all that the sessions of the life before have, and reports whether it did
// before ctx ended. What that life had begun is cancelled first, or else it would make a
// kernel anew.
func (n *Node) clear(ctx context.Context) bool {
	for wait := firstPause; ; {
		busy := n.active()
		live, err := n.o.Sessions.Live(ctx)
		for _, key := range live {
			if key.Workspace != "" && !about.IsWorkspace(key) {
				continue // it ends with its workspace
			}
			busy++
			err = errors.Join(err, n.o.Sessions.End(ctx, key))
		}
		if busy == 0 && err == nil {
			n.mu.Lock()
			defer n.mu.Unlock()
			for _, e := range n.keys {
				e.own = nil
			}
			maps.DeleteFunc(n.keys, func(_ string, e *entry) bool { return e.users == 0 })
			return true
		}
		if err != nil {
			n.o.Logger.Warn("a session of the life before could not be ended", "error", err)
		}
		if !pause.Wait(ctx, &wait) {
			return false
		}
	}
}

// Close ends the node's part in the fleet, after its sessions have ended, and says so in
// the directory as long as ctx lasts.
func (n *Node) Close(ctx context.Context) error {
	if n.running == nil {
		return nil
	}
	n.end()
	n.joined.Wait()
	n.roster.Close()
	if n.own != nil {
		n.own.CloseIdleConnections()
	}
	n.mu.Lock()
	m := n.member
	n.mu.Unlock()
	if m == nil {
		return nil
	}
	err := m.Leave(ctx)
	n.over()
	if err != nil {
		return fmt.Errorf("leave the fleet, which takes the node for dead in %s: %w", n.o.TTL, err)
	}
	return nil
}

// now is the member of this life, with a context that ends with it; nil between two lives.
func (n *Node) now() (*fleet.Member, context.Context) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.member, n.life
}

// ID names this life of the node, "" between two.
func (n *Node) ID() string {
	if m, _ := n.now(); m != nil {
		return m.ID()
	}
	return ""
}

// Ready reports whether the node may serve sessions now, and further ones.
func (n *Node) Ready() bool { return n.leased() && !n.isDraining() }

// leased reports whether the node may serve sessions now.
func (n *Node) leased() bool {
	m, _ := n.now()
	return m != nil && m.Check() == nil
}

// firstPause is the first between two attempts.
const firstPause = 10 * time.Millisecond

// nudge sends without waiting to a channel with room for one.
func nudge(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
