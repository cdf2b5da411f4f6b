package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// sloth is a child that takes its time for everything, now and then more than
// it has.
type sloth struct{ s *storm }

// dawdle takes no time, or up to so many seconds.
func dawdle(most int) {
	if rand.IntN(8) == 0 {
		time.Sleep(time.Duration(rand.IntN(most*1000)) * time.Millisecond)
	}
}

func (c *sloth) Init(*supervisor.Ctx) error {
	c.s.started.Add(1)
	dawdle(60) // half of what it has, or twice as much
	return nil
}

func (c *sloth) Terminate(*supervisor.Ctx, supervisor.Exit) {
	dawdle(10)
	c.s.ended.Add(1)
}

func (c *sloth) Handle(ctx *supervisor.Ctx, msg any) error {
	w, ok := msg.(supervisor.Work)
	if !ok {
		dawdle(12)
		return nil
	}
	g := w.Msg.(*gust)
	c.s.begun.Add(1)
	if n := c.s.works[g.n].begun.Add(1); n != 1 {
		c.s.problem("work %d was begun %d times", g.n, n)
	}
	dawdle(12)
	if ctx.Finish(w, g.n) {
		c.s.done.Add(1)
	} else if !w.Settled() {
		c.s.problem("work %d is refused without an answer", g.n)
	}
	if g.fate < 50 {
		return errors.New("fell from the tree")
	}
	return nil
}

// TestHangStorm is a storm in virtual time, of children that hang in Init, in
// Handle and in Terminate: they are abandoned again and again, and come back
// when they are not waited for any more.
func TestHangStorm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n, keys = 2000, 40
		s := &storm{works: make([]stormWork, n)}
		d := &handler{spec: func(*supervisor.Supervisor, string, supervisor.Work) (supervisor.Spec, error) {
			return supervisor.Spec{New: func() supervisor.Behaviour { return &sloth{s} }}, nil
		}}
		d.handle = func(sh *supervisor.Supervisor, m any) error {
			g := m.(*gust)
			key := fmt.Sprint(g.key)
			switch {
			case g.fate >= 980:
				sh.Send(key, "stray")
			case g.fate >= 970:
				sh.Restart(key, supervisor.Exit{})
			case g.fate >= 960:
				sh.End(key, supervisor.Exit{})
			}
			sh.Submit(key, g.w)
			return nil
		}
		d.unserved = func(_ *supervisor.Supervisor, w supervisor.Work, e *supervisor.ServiceError) {
			g := w.Msg.(*gust)
			if begun := s.works[g.n].begun.Load(); e.Dispatched != (begun == 1) {
				s.problem("work %d was begun %d times and comes back with %v", g.n, begun, e)
			}
			s.lost.Add(1)
			w.Settle(e)
		}
		sys := startOnly(t, supervisor.SystemOptions{Drain: -1, Children: []supervisor.Spec{supervise("wood", supervisor.Options{
			Handler: d, MaxQueue: n, MaxAbandoned: n,
			Strategy: strategy.Chain(strategy.RestartOnce(), strategy.Heartbeat(2*time.Second),
				strategy.IdleTTL(20*time.Second), strategy.LRUQueue(keys/2, keys)),
		})}})
		wood := sys.Ref("wood")
		replies := make([]supervisor.Reply[int], n)
		for i := range n {
			g := &gust{n: i, key: rand.IntN(keys), fate: rand.IntN(1000)}
			w, reply := supervisor.NewWork[int](g)
			g.w, replies[i] = w, reply
			require.True(t, wood.Tell(g))
			if i%10 == 0 {
				time.Sleep(time.Duration(rand.IntN(3000)) * time.Millisecond)
			}
		}
		for _, reply := range replies[:n-200] { // the rest is cut off by the end
			_, err := reply.Wait(context.Background())
			if err != nil {
				var se *supervisor.ServiceError
				require.ErrorAs(t, err, &se)
			}
		}
		sys.Shutdown(context.Background())
		dropped := 0
		for _, reply := range replies {
			select {
			case <-reply.Done():
			default:
				t.Fatal("a work has no answer")
			}
			if _, err := reply.Wait(context.Background()); errors.Is(err, supervisor.ErrGone) {
				dropped++ // it was not submitted before the end
			}
		}
		time.Sleep(5 * time.Minute) // all that hangs comes back
		synctest.Wait()
		require.Empty(t, s.wrong)
		require.Zero(t, sys.Zombies())
		require.Equal(t, s.started.Load(), s.ended.Load(), "every Init has its Terminate, however late")
		require.Equal(t, n, int(s.done.Load()+s.lost.Load())+dropped)
		require.Positive(t, s.lost.Load())
		check(t, sys)
	})
}
