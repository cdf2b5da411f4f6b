package supervisor_test

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/anthdm/hollywood/actor"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

func benchSystem(b *testing.B, o supervisor.Options) (*supervisor.System, supervisor.Ref) {
	sys, err := supervisor.Start(b.Context(), supervisor.SystemOptions{Children: []supervisor.Spec{supervise("gate", o)}})
	require.NoError(b, err)
	b.Cleanup(func() {
		sys.Shutdown(context.Background())
		require.Empty(b, sys.Bugs())
	})
	return sys, sys.Ref("gate")
}

// job is a message that the bench's handler submits.
type job struct {
	key string
	w   supervisor.Work
}

func benchHandler() *handler {
	d := dynamic(echo)
	d.handle = func(s *supervisor.Supervisor, m any) error {
		j := m.(job)
		s.Submit(j.key, j.w)
		return nil
	}
	return d
}

// BenchmarkRoundTrip is one work at a time: caller to supervisor, supervisor to
// child, answer to caller.
func BenchmarkRoundTrip(b *testing.B) {
	_, gate := benchSystem(b, supervisor.Options{Handler: benchHandler()})
	b.ReportAllocs()
	for b.Loop() {
		w, r := supervisor.NewWork[int](1)
		gate.Tell(job{"k", w})
		if _, err := r.Wait(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRoundTripBare is what BenchmarkRoundTrip compares with: the same two
// hops between Hollywood actors without supervision, and a channel back.
func BenchmarkRoundTripBare(b *testing.B) {
	e, err := actor.NewEngine(actor.NewEngineConfig())
	require.NoError(b, err)
	child := e.SpawnFunc(func(c *actor.Context) {
		if ch, ok := c.Message().(chan int); ok {
			ch <- 1
		}
	}, "child", actor.WithInboxSize(8))
	gate := e.SpawnFunc(func(c *actor.Context) {
		if ch, ok := c.Message().(chan int); ok {
			c.Send(child, ch)
		}
	}, "gate", actor.WithInboxSize(8))
	b.ReportAllocs()
	for b.Loop() {
		ch := make(chan int, 1)
		e.Send(gate, ch)
		<-ch
	}
}

// BenchmarkFlow keeps many works under way over many keys: the cost of a work
// that does not wait for the one before.
func BenchmarkFlow(b *testing.B) {
	for _, keys := range []int{1, 1000, 10_000} {
		b.Run(strconv.Itoa(keys), func(b *testing.B) {
			_, gate := benchSystem(b, supervisor.Options{Handler: benchHandler(), MaxQueue: 1 << 30})
			names := make([]string, keys)
			for i := range names {
				names[i] = strconv.Itoa(i)
			}
			b.ReportAllocs()
			const window = 1024
			var replies [window]supervisor.Reply[int]
			i := 0
			for b.Loop() {
				if i >= window {
					if _, err := replies[i%window].Wait(context.Background()); err != nil {
						b.Fatal(err)
					}
				}
				w, r := supervisor.NewWork[int](1)
				replies[i%window] = r
				gate.Tell(job{names[i%keys], w})
				i++
			}
		})
	}
}

// BenchmarkFlowBare is the same flow through bare Hollywood actors.
func BenchmarkFlowBare(b *testing.B) {
	for _, keys := range []int{1, 1000, 10_000} {
		b.Run(strconv.Itoa(keys), func(b *testing.B) {
			type msg struct {
				key int
				ch  chan int
			}
			e, err := actor.NewEngine(actor.NewEngineConfig())
			require.NoError(b, err)
			children := make([]*actor.PID, keys)
			for i := range children {
				children[i] = e.SpawnFunc(func(c *actor.Context) {
					if m, ok := c.Message().(msg); ok {
						m.ch <- 1
					}
				}, "child", actor.WithInboxSize(8))
			}
			gate := e.SpawnFunc(func(c *actor.Context) {
				if m, ok := c.Message().(msg); ok {
					c.Send(children[m.key], m)
				}
			}, "gate", actor.WithInboxSize(8))
			b.ReportAllocs()
			const window = 1024
			var replies [window]chan int
			i := 0
			for b.Loop() {
				if i >= window {
					<-replies[i%window]
				}
				ch := make(chan int, 1)
				replies[i%window] = ch
				e.Send(gate, msg{i % keys, ch})
				i++
			}
		})
	}
}

// BenchmarkTell is a message from outside straight to a child.
func BenchmarkTell(b *testing.B) {
	sys, err := supervisor.Start(b.Context(), supervisor.SystemOptions{Children: []supervisor.Spec{{Key: "a", New: of(behaviour{})}}})
	require.NoError(b, err)
	defer sys.Shutdown(context.Background())
	a := sys.Ref("a")
	var msg any = "hello"
	b.ReportAllocs()
	for b.Loop() {
		a.Tell(msg)
	}
}

// BenchmarkAsk is a question to an actor and its answer.
func BenchmarkAsk(b *testing.B) {
	sys, err := supervisor.Start(b.Context(), supervisor.SystemOptions{Children: []supervisor.Spec{{Key: "a", New: of(asked)}}})
	require.NoError(b, err)
	defer sys.Shutdown(context.Background())
	a := sys.Ref("a")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := supervisor.Ask[int](context.Background(), a, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSpawn is a new key, its first answer, and its end.
func BenchmarkSpawn(b *testing.B) {
	_, gate := benchSystem(b, supervisor.Options{Handler: benchHandler()})
	b.ReportAllocs()
	for b.Loop() {
		w, r := supervisor.NewWork[int](1)
		w.Last = true
		gate.Tell(job{"k", w})
		if _, err := r.Wait(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// fill makes n idle children.
func fill(b *testing.B, gate supervisor.Ref, n int) {
	replies := make([]supervisor.Reply[int], n)
	for i := range n {
		w, r := supervisor.NewWork[int](1)
		replies[i] = r
		gate.Tell(job{"session-" + strconv.Itoa(i), w})
	}
	for _, r := range replies {
		if _, err := r.Wait(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// gatewayPolicy is what a gateway asks about its children, with room for n.
func gatewayPolicy(n int) strategy.Strategy {
	return strategy.Chain(strategy.For("", strategy.Chain(strategy.RestartOnce(), strategy.Heartbeat(time.Hour),
		strategy.Pin(strategy.Chain(strategy.IdleTTL(time.Hour), strategy.Quota(2*n), strategy.LRU(n))))))
}

// BenchmarkEvict is a new key where no place is free: the child that has been
// idle for longest ends, another starts and answers.
func BenchmarkEvict(b *testing.B) {
	for _, n := range []int{4, 1000, 10_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			_, gate := benchSystem(b, supervisor.Options{Handler: benchHandler(), Strategy: gatewayPolicy(n), Tick: time.Hour})
			fill(b, gate, n)
			i := 0
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				w, r := supervisor.NewWork[int](1)
				w.Owner = "ann"
				gate.Tell(job{strconv.Itoa(i), w})
				if _, err := r.Wait(context.Background()); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}

// BenchmarkExec is one work at a time for a child that lives, under the
// strategy of a gateway that is full.
func BenchmarkExec(b *testing.B) {
	const n = 1000
	_, gate := benchSystem(b, supervisor.Options{Handler: benchHandler(), Strategy: gatewayPolicy(n), Tick: time.Hour})
	fill(b, gate, n)
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		w, r := supervisor.NewWork[int](1)
		gate.Tell(job{"session-7", w})
		if _, err := r.Wait(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTick is one tick of a gateway's strategies over idle children.
func BenchmarkTick(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			policy := strategy.Chain(strategy.RestartOnce(), strategy.Heartbeat(time.Hour),
				strategy.Pin(strategy.Chain(strategy.IdleTTL(time.Hour), strategy.LRU(2*n))))
			_, gate := benchSystem(b, supervisor.Options{Handler: benchHandler(), Strategy: policy, Tick: time.Hour})
			fill(b, gate, n)
			done := make(chan struct{})
			b.ReportAllocs()
			b.ResetTimer()
			gate.Tell(do(func(s *supervisor.Supervisor) error {
				defer close(done)
				for b.Loop() {
					if ds := policy.Decide(s.View(), strategy.Tick{}); len(ds) > 0 {
						return fmt.Errorf("decided %v", ds)
					}
				}
				return nil
			}))
			<-done
		})
	}
}

// BenchmarkIdleChild reports what an idle child costs in bytes, all included.
func BenchmarkIdleChild(b *testing.B) {
	const n = 10_000
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for b.Loop() {
		_, gate := benchSystem(b, supervisor.Options{Handler: benchHandler()})
		before := heap()
		fill(b, gate, n)
		b.ReportMetric(float64(heap()-before)/n, "B/child")
	}
}

// asked answers every question.
var asked = behaviour{handle: func(_ *supervisor.Ctx, m any) error {
	m.(supervisor.Work).Settle(1)
	return nil
}}
