package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-run/coppice/internal/pause"
)

// Options says what a node is.
type Options struct {
	// Directory is what the fleet shares. Required; the member does not close it.
	Directory Directory
	// Name is the machine's, or what else people know the node by; the ID of each of its
	// lives begins with it. Default: "node".
	Name string
	// URL is where others reach it, as http://10.0.0.7:7777.
	URL string
	// TTL is how long a renewal lasts. Renewals are sent four times as often. The failover
	// of a node takes TTL and a tenth. All nodes of a fleet have the same, but while it is
	// being changed. Default: 15 s. At least 100 ms; below 2 s the
	// directory of a large fleet has more to do with renewals than with anything else.
	TTL time.Duration
	// Strict has each turn confirmed by the directory in place of the clock: see the
	// package comment.
	Strict bool
	// Forget is after how long a key that was released, or whose owner is over, is
	// forgotten: its record is removed, and who asks for it finds a key like any that
	// nobody has had, see the package comment. Default: 24 h. Negative: never.
	Forget time.Duration
	// Most is how many keys all members have together, at most: a claim beyond that is a
	// [*QuotaError]. All members of a fleet have the same. Each claim and each release is one swap
	// more then. Default: any number.
	Most int
	// Free reports whether a key does not count for Most. It gives the same answer for a key always.
	// Default: each counts.
	Free func(key string) bool
	// Version and Labels are for who places keys.
	Version string
	Labels  map[string]string
	// Load says how much there is to do, before each renewal. It must not wait.
	// Default: nothing is said.
	Load func() Load
	// Clock counts the lease. Default: [SystemClock].
	Clock Clock
	// Log gets what becomes of the node and of those that it declares dead. Default: no
	// one.
	Log *slog.Logger
}

// DefaultTTL is how long the lease of a node lasts that is told nothing else.
const DefaultTTL = 15 * time.Second

const (
	leastTTL = 100 * time.Millisecond

	defaultForget = 24 * time.Hour
)

// Member is one life of a node: its lease, the keys that it owns, and its look at the
// others. It has four goroutines, which [Member.Leave] ends and joins. Any goroutine may
// call its methods.
type Member struct {
	o  Options
	id string

	writes atomic.Uint64
	stop   context.CancelFunc
	joined sync.WaitGroup
	// hurry has the next renewal sent at once, look has the silence of others counted.
	hurry, look chan struct{}
	done        chan struct{}
	oblivion    oblivion

	mu   sync.Mutex
	life life
	// state is what the next renewal says, said what the last one did.
	state, said State
	sights      sights
	// changed is closed, and replaced, when the lease is renewed or has ended.
	changed chan struct{}
	slots   map[string]*slot

	quota quota
}

// Join begins a life of a node. It returns when its first renewal is acknowledged; the
// error says why that was not before ctx ended. ctx has no part in the life itself, which
// lasts until [Member.Leave] or until another node declares it dead ([Member.Done]); Leave
// is called in each case.
func Join(ctx context.Context, o Options) (*Member, error) {
	if err := o.settle(); err != nil {
		return nil, fmt.Errorf("join the fleet: %w", err)
	}
	m := &Member{
		o: o, id: newID(o.Name),
		hurry: make(chan struct{}, 1), look: make(chan struct{}, 1),
		done: make(chan struct{}), changed: make(chan struct{}),
		oblivion: oblivion{turn: newLock()}, state: Up, slots: map[string]*slot{}, quota: quota{turn: newLock()},
	}
	m.life = life{id: m.id, ttl: o.TTL, last: Entry{Key: nodeKey(m.id)}}
	for wait := firstPause; ; {
		err := m.renew(ctx)
		if err == nil {
			break
		}
		if m.Err() != nil || errors.Is(err, ErrClosed) || !pause.Wait(ctx, &wait) {
			return nil, fmt.Errorf("join the fleet: %w", err)
		}
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	m.stop = stop
	m.joined.Go(func() { m.renewing(running) })
	m.joined.Go(func() { m.watching(running) })
	m.joined.Go(func() { m.judging(running) })
	m.joined.Go(func() { m.forgetting(running) })
	m.o.Log.Info("joined the fleet", "node", m.id, "ttl", o.TTL)
	return m, nil
}

// settle puts defaults in, and refuses what cannot be.
func (o *Options) settle() error {
	if o.Directory == nil {
		return errors.New("there is no directory")
	}
	if o.Name == "" {
		o.Name = "node"
	}
	if o.TTL == 0 {
		o.TTL = DefaultTTL
	}
	if o.TTL < leastTTL {
		return fmt.Errorf("a TTL of %s: at least %s", o.TTL, leastTTL)
	}
	if o.Forget == 0 {
		o.Forget = defaultForget
	}
	if o.Clock == nil {
		o.Clock = SystemClock()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Labels = maps.Clone(o.Labels)
	if b := encode(Node{URL: o.URL, Version: o.Version, Labels: o.Labels}); len(b) > MaxValue/2 {
		return fmt.Errorf("the URL, the version and the labels have %d bytes: at most %d", len(b), MaxValue/2)
	}
	return nil
}

// ID names this life of the node.
func (m *Member) ID() string { return m.id }

// Done is closed when this life is over: another node has declared it dead, the directory
// has lost its record, or Leave was called. Nothing that its sessions hold is of use then.
func (m *Member) Done() <-chan struct{} { return m.done }

// Err says why this life is over, with an error that matches [ErrOver]; nil until then.
func (m *Member) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.life.over
}

// Check returns nil while the node may act, else an error that matches [ErrSuspended] or
// [ErrOver].
func (m *Member) Check() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.life.check(m.o.Clock())
}

// Drain has the node take no further keys, and returns when the others can know. The keys
// that it has stay its own; release them one by one. A later call, or one whose ctx ended
// before, waits on.
func (m *Member) Drain(ctx context.Context) error {
	m.mu.Lock()
	m.state = Draining
	m.mu.Unlock()
	nudge(m.hurry)
	for {
		m.mu.Lock()
		said, over, changed := m.said, m.life.over, m.changed
		m.mu.Unlock()
		if over != nil {
			return over
		}
		if said == Draining {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("say that the node is draining: %w", ctx.Err())
		}
	}
}

// Leave ends this life: no turn begins, no answer leaves from now on. Once it has ended
// the member's goroutines it says so in the directory, as long as ctx lasts, so that others
// need not wait for the lease to end. The error is about that alone: the member has ended
// in any case. A node that was declared dead has nothing to say. A later call says it again.
func (m *Member) Leave(ctx context.Context) error {
	m.over(fmt.Errorf("%w: it has left", ErrOver))
	m.stop()
	m.joined.Wait()
	m.mu.Lock()
	last, pending := m.life.last, m.life.pending
	m.mu.Unlock()
	return m.sayLeft(ctx, last, max(pending, m.acked())+1)
}

func (m *Member) acked() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.life.acked
}

// sayLeft swaps the node's record to the final one. What another renewal of this life, of
// which nothing was known, has put in the place of the last is swapped in its turn.
func (m *Member) sayLeft(ctx context.Context, last Entry, seq uint64) error {
	left := m.record(seq, Left)
	for {
		met, err := settle(ctx, m.o.Directory, last, encode(left), func(Entry) bool { return false })
		if err == nil {
			return nil
		}
		if !errors.Is(err, ErrConflict) {
			return fmt.Errorf("leave the fleet: %w", err)
		}
		if n, found, err := readNode(met); err != nil || found && n.State.Final() {
			return err
		}
		last = met
	}
}

// record is what the node says of itself.
func (m *Member) record(seq uint64, state State) Node {
	n := Node{ID: m.id, URL: m.o.URL, State: state, Seq: seq, TTL: m.o.TTL, Version: m.o.Version, Labels: m.o.Labels}
	if m.o.Load != nil {
		n.Load = m.o.Load()
		if math.IsNaN(n.Load.Busy) || math.IsInf(n.Load.Busy, 0) { // which JSON has not
			n.Load.Busy = 0
		}
	}
	return n
}

// over ends the life, once.
func (m *Member) over(why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.life.end(why)
	m.tell()
}

// tell wakes whoever waits for the lease. The lock is held.
func (m *Member) tell() {
	close(m.changed)
	m.changed = make(chan struct{})
	if m.life.over == nil {
		return
	}
	select {
	case <-m.done:
	default:
		close(m.done)
	}
}

// nudge sends without waiting to a channel with room for one.
func nudge(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
