package supervisor_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

var stormSize = flag.Int("storm", 15_000, "how many works TestStorm sends; 100,000 is a thorough run")

const (
	stormKeys    = 400
	stormSenders = 8
)

// storm is what TestStorm keeps account of.
type storm struct {
	begun, done, lost, refused, again atomic.Int64
	started, ended                    atomic.Int64

	works []stormWork // by number
	last  [stormKeys]atomic.Int64
	alive [stormKeys]atomic.Int32
	mu    sync.Mutex
	wrong []string
}

// stormWork is one work's history.
type stormWork struct {
	begun, answered atomic.Int32
}

func (s *storm) problem(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.wrong) < 20 {
		s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
	}
}

// gust is a work of the storm.
type gust struct {
	n, key int
	order  int64 // among the works of the key
	fate   int   // 0 to 999: what happens to the child
	w      supervisor.Work
}

// Dropped is for those that the supervisor took and could not handle any more.
func (g *gust) Dropped() { g.w.Settle(supervisor.ErrGone) }

// ship is a child in the storm.
type ship struct {
	s   *storm
	key int
}

func (c *ship) Init(*supervisor.Ctx) error {
	c.s.started.Add(1)
	if n := c.s.alive[c.key].Add(1); n != 1 {
		c.s.problem("key %d has %d live incarnations", c.key, n)
	}
	if rand.IntN(200) == 0 {
		return errors.New("does not start")
	}
	return nil
}

func (c *ship) Terminate(*supervisor.Ctx, supervisor.Exit) {
	c.s.ended.Add(1)
	c.s.alive[c.key].Add(-1)
}

func (c *ship) Handle(ctx *supervisor.Ctx, msg any) error {
	w, ok := msg.(supervisor.Work)
	if !ok {
		return errors.New("hit by a stray message")
	}
	g := w.Msg.(*gust)
	c.s.begun.Add(1)
	if n := c.s.works[g.n].begun.Add(1); n != 1 {
		c.s.problem("work %d was begun %d times", g.n, n)
	}
	if before := c.s.last[c.key].Swap(g.order); before >= g.order {
		c.s.problem("key %d began work %d after %d", c.key, g.order, before)
	}
	switch {
	case g.fate < 25:
		panic("swept overboard")
	case g.fate < 50:
		return errors.New("ran aground")
	}
	if !ctx.Finish(w, g.n) {
		c.s.problem("work %d had an answer before", g.n)
	}
	switch {
	case g.fate < 75:
		return supervisor.ErrDone
	case g.fate < 80:
		return errors.New("sank in the harbour")
	}
	return nil
}

func (s *storm) handler() *handler {
	d := &handler{}
	d.spec = func(_ *supervisor.Supervisor, _ string, w supervisor.Work) (supervisor.Spec, error) {
		key := w.Msg.(*gust).key
		return supervisor.Spec{Kind: "ship", New: func() supervisor.Behaviour { return &ship{s, key} }}, nil
	}
	d.handle = func(sh *supervisor.Supervisor, m any) error {
		g := m.(*gust)
		key := fmt.Sprint(g.key)
		if g.fate >= 990 {
			sh.Send(key, "stray")
		}
		if g.fate == 989 {
			sh.Restart(key, supervisor.Exit{})
		}
		sh.Submit(key, g.w)
		return nil
	}
	d.unserved = func(sh *supervisor.Supervisor, w supervisor.Work, e *supervisor.ServiceError) {
		g := w.Msg.(*gust)
		begun := s.works[g.n].begun.Load()
		switch {
		case e.Dispatched && begun == 1:
			s.lost.Add(1)
			w.Settle(e)
		case e.Dispatched || begun != 0:
			s.problem("work %d was begun %d times and comes back with %v", g.n, begun, e)
			w.Settle(e)
		case errors.Is(e, supervisor.ErrExhausted):
			// Work that was not begun may be asked for again. The order of its
			// key stands, because everything that waited comes back in order.
			s.again.Add(1)
			sh.Restart(w.Key(), supervisor.Exit{})
			sh.Submit(w.Key(), w)
		case errors.Is(e, supervisor.ErrStartFailed):
			s.again.Add(1)
			sh.Submit(w.Key(), w)
		default:
			s.refused.Add(1)
			w.Settle(e)
		}
	}
	return d
}

// TestStorm sends works from several goroutines to many keys whose children
// crash, end, are evicted, reset and fail to start all the time. Every work
// gets exactly one answer; what was begun is never begun again; what was not
// begun is not lost; the works of a key are begun in order; and no key ever
// has two live incarnations.
func TestStorm(t *testing.T) {
	n := *stormSize
	s := &storm{works: make([]stormWork, n)}
	sys := start(t, supervisor.SystemOptions{Children: []supervisor.Spec{supervise("sea", supervisor.Options{
		Handler: s.handler(), MaxQueue: n, Tick: 5 * time.Millisecond,
		Strategy: strategy.Chain(strategy.RestartOnce(),
			strategy.Pin(strategy.Chain(strategy.IdleTTL(5*time.Millisecond), strategy.LRUQueue(150, stormKeys)))),
	})}})
	sea := sys.Ref("sea")
	var senders sync.WaitGroup
	for sender := range stormSenders {
		senders.Go(func() { // each sends to keys of its own, so that it knows their order
			r := rand.New(rand.NewPCG(uint64(sender), 1))
			var orders [stormKeys]int64
			replies := make([]supervisor.Reply[int], 0, n/stormSenders+1)
			for i := sender; i < n; i += stormSenders {
				key := r.IntN(stormKeys/stormSenders)*stormSenders + sender
				orders[key]++
				g := &gust{n: i, key: key, order: orders[key], fate: r.IntN(1000)}
				w, reply := supervisor.NewWork[int](g)
				g.w = w
				sea.Tell(g)
				replies = append(replies, reply)
				if len(replies) > 500 {
					s.collect(replies[len(replies)-500])
				}
			}
			for _, reply := range replies {
				s.collect(reply)
			}
		})
	}
	senders.Wait()
	stop(t, sys)
	require.Empty(t, s.wrong)
	require.Equal(t, s.begun.Load(), s.done.Load()+s.lost.Load(), "begun is done or lost")
	require.EqualValues(t, n, s.done.Load()+s.lost.Load()+s.refused.Load())
	require.Equal(t, s.started.Load(), s.ended.Load(), "every Init has its Terminate")
	t.Logf("%d done, %d lost with their child, %d refused, %d asked for again, %d incarnations",
		s.done.Load(), s.lost.Load(), s.refused.Load(), s.again.Load(), s.started.Load())
}

// collect waits for an answer and counts the first look at each.
func (s *storm) collect(r supervisor.Reply[int]) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	v, err := r.Wait(ctx)
	switch {
	case err == nil:
		if s.works[v].answered.Swap(1) == 0 {
			s.done.Add(1)
		}
	case errors.Is(err, context.DeadlineExceeded):
		s.problem("a work got no answer")
	}
}
