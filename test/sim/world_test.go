package sim_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/gateway"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// settings make a world.
type settings struct {
	capacity, waiting int
	perOwner          int // 0: no limit
	ttl, heartbeat    time.Duration
	grace, tick       time.Duration
	faults            faults
	history           int  // entries kept for each place
	loose             bool // reasons are not checked: there are more sessions than the gateway remembers
}

// world is a tree with one gateway, and everything that is known about it from
// outside. Its lock guards all that is below it, and all places, calls and
// interpreters.
type world struct {
	t       *testing.T
	seed    uint64
	o       settings
	system  *supervisor.System
	began   time.Time
	waiters sync.WaitGroup // who waits for an answer
	broken  chan struct{}  // closed by the first breach

	// starving guards who has no processor: the host, and the places' hungry. It may be
	// taken while mu is held.
	starving sync.Mutex
	stalls   spans // of the host

	mu                    sync.Mutex
	places                map[string]*place
	calls                 map[string]*call
	order                 []*call // by seq
	alive, starting, peak int
	made                  int           // interpreters that started
	entries               int           // of the history
	asked, answered       int           // questions besides Execute
	closing               time.Duration // when the tree was shut down, -1 before
	draining              bool          // no more calls are taken
	drained               time.Duration // when no call ran any more, -1 before
	breaches              []string
	involved              []*place
	doubts                []func() // what can only be judged afterwards
	tally                 map[messages.Outcome]int
}

// place is a child of the gateway: a session, or a call with a kernel of its
// own.
type place struct {
	name               string
	starts, starting   int
	startedAt          time.Duration // the present start
	waits, ends        time.Duration // what all starts took, and all ends
	live               *interp
	last               int // the call that began last
	prior              int // the interpreter that ran something last, 0 after a close
	closedAt           time.Duration
	lostAt             time.Duration // when an interpreter that had run something ended
	recent, news       *call         // that ran something last; that an interpreter died under
	hung               time.Duration // when it was found frozen
	hungry             spans         // when its interpreters have no processor
	ended              time.Duration // when the actor was gone
	stopped            time.Duration // when somebody asked for the end of what runs
	pins               int           // how often it was asked for, or for its end
	pinned             bool          // since pinnedAt, as the gateway has confirmed
	pinnedAt, unpinned time.Duration
	log                []entry
	logged             int
}

// call is one Execute.
type call struct {
	seq       int
	exec      messages.Execute
	place     *place
	submitted time.Duration
	deadline  time.Duration // 0: none
	cancelled time.Duration // when its caller left; 0: it did not
	waits     time.Duration // place.waits when it was submitted
	ends      time.Duration // place.ends likewise
	ran       []*ran
	after     int  // the session's interpreter before the fresh one that it ran in
	late      bool // submitted when no more calls were taken
	touched   bool // a cell was to run when its interpreter was gone already
	answered  bool
	result    messages.Result
	at        time.Duration // of the answer
	out       *outlet
}

// ran is a cell that was begun.
type ran struct {
	interp  *interp
	call    *call
	counter int
	began   time.Duration
	how     string // how it ended, "" while it runs
}

// text is what the cell prints.
func (r *ran) text() string {
	return fmt.Sprintf("%s %d:%d", r.interp.at.name, r.interp.id, r.counter)
}

// newWorld starts a tree.
func newWorld(t *testing.T, seed uint64, o settings) *world {
	t.Helper()
	w := &world{
		t: t, seed: seed, o: o, broken: make(chan struct{}), closing: -1, drained: -1,
		places: map[string]*place{}, calls: map[string]*call{}, tally: map[messages.Outcome]int{},
	}
	g := gateway.Options{
		Name: "sim", Tick: o.tick, StartTimeout: startTimeout + 10*time.Second, StopTimeout: stopTimeout,
		Strategy: gateway.Policy{
			Heartbeat: o.heartbeat, IdleTTL: o.ttl, MaxKernels: o.capacity, MaxWaiting: o.waiting, MaxPerOwner: o.perOwner,
		}.Strategy(),
		NewKernel: func(s gateway.KernelSpec) supervisor.Behaviour { return &child{w: w, spec: s} },
	}
	w.began = time.Now()
	system, err := supervisor.Start(t.Context(), supervisor.SystemOptions{
		OnEvent:  w.hear,
		Stalls:   w,
		Children: []supervisor.Spec{{Key: "sim", Kind: "gateway", New: func() supervisor.Behaviour { return gateway.New(g) }}},
	})
	require.NoError(t, err)
	w.system = system
	return w
}

// startTimeout is what a kernel actor allows its interpreter.
const startTimeout = 20 * time.Second

// stopTimeout is how long the gateway waits for the end of a kernel actor, and
// longestEnd how long an interpreter may take to end.
var stopTimeout = kernel.Options{}.StopTimeout()

const longestEnd = 3 * time.Minute

// child is a kernel actor that knows its place, so that the interpreters of a
// session are told from those of a single call, and that can be made to fail.
type child struct {
	*kernel.Actor
	w    *world
	spec gateway.KernelSpec
}

// poke makes a child fail.
type poke string

// The failures of an actor, as against those of its interpreter.
const (
	pokePanic  poke = "panic"
	pokeGoexit poke = "goexit"
)

// Init makes the actor.
func (c *child) Init(ctx *supervisor.Ctx) error {
	c.Actor = kernel.New(kernel.Options{
		Backend: backend{c.w, ctx.Key()}, Key: c.spec.Key, Past: c.spec.Past,
		StartTimeout: startTimeout, InterruptGrace: c.w.o.grace, HeartbeatEvery: c.w.o.heartbeat,
	})
	return c.Actor.Init(ctx)
}

// Handle fails when it is poked.
func (c *child) Handle(ctx *supervisor.Ctx, msg any) error {
	switch msg {
	case pokePanic:
		panic("poked")
	case pokeGoexit:
		runtime.Goexit()
	}
	return c.Actor.Handle(ctx, msg)
}

// now is the time since the tree began.
func (w *world) now() time.Duration { return time.Since(w.began) }

// place returns the place called name. The lock is held.
func (w *world) place(name string) *place {
	p := w.places[name]
	if p == nil {
		p = &place{name: name, closedAt: -1, lostAt: -1, ended: -1, stopped: -1, unpinned: -1}
		w.places[name] = p
	}
	return p
}

func (w *world) ref() supervisor.Ref { return w.system.Ref("sim") }

// hear follows what the tree tells of itself, for invariants 5 and 7.
func (w *world) hear(e messages.Lifecycle) {
	ev, ok := e.(messages.ChildChanged)
	if !ok || ev.Kind != gateway.KindKernel {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.place(ev.Key)
	at := ev.At.Sub(w.began)
	text := "actor " + string(ev.To)
	if ev.Exit != nil {
		text += ": " + string(ev.Exit.Kind)
	}
	p.note(w, text, "", int(ev.Epoch))
	if ev.Exit != nil && ev.Exit.Kind == messages.ExitEvicted && ev.To != messages.ChildGone {
		if ev.From != messages.ChildIdle && ev.From != messages.ChildFailed {
			w.breach(5, p, "evicted while it was %s", ev.From)
		}
		if p.pinned && at > p.pinnedAt && (p.unpinned < 0 || at < p.unpinned) {
			w.breach(7, p, "evicted while it was pinned")
		}
	}
	if ev.Exit != nil && ev.Exit.Kind == messages.ExitHung && ev.To == messages.ChildSuspended {
		p.hung = at
		answers := ev.From == messages.ChildIdle || ev.From == messages.ChildBusy // another limit ends the others
		// This is heard in a goroutine of its own, so the next one may be up already, at the same instant.
		if i := p.live; answers && i != nil && !i.silent && !i.gone && i.upAt < at {
			w.breach(13, p, "interpreter %d is called hung and would have answered: %v", i.id, ev.Exit)
		}
	}
	if ev.To == messages.ChildGone {
		p.pinned, p.ended = false, at
	}
}

// outlet keeps what a call prints, as the result sink does.
type outlet struct {
	w     *world
	c     *call
	pause time.Duration // before each event that is not the first

	// mu: the world's.
	text map[int]*strings.Builder
	n    int
}

// Emit takes an event.
func (o *outlet) Emit(ctx context.Context, e messages.Event) error {
	o.w.mu.Lock()
	o.n++
	pause := o.pause
	if o.n == 1 {
		pause = 0
	}
	o.w.mu.Unlock()
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	o.w.mu.Lock()
	defer o.w.mu.Unlock()
	if o.c.answered {
		o.w.breach(1, o.c.place, "%s prints after the result", o.c.exec.ID)
	}
	if s, ok := e.(messages.Stream); ok {
		b := o.text[s.Cell]
		if b == nil {
			b = &strings.Builder{}
			o.text[s.Cell] = b
		}
		b.WriteString(s.Text)
	}
	return nil
}

// Flush returns what was printed.
func (o *outlet) Flush(context.Context) messages.Output {
	o.w.mu.Lock()
	defer o.w.mu.Unlock()
	var out messages.Output
	for i := range o.c.exec.Cells {
		if b := o.text[i]; b != nil {
			out.Cells = append(out.Cells, messages.CellOutput{Index: i, Text: b.String()})
		}
	}
	return out
}

var (
	_ messages.Outlet      = (*outlet)(nil)
	_ supervisor.Behaviour = (*child)(nil)
)
