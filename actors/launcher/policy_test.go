package launcher_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

func TestEachToolIsKeptForItsOwnTime(t *testing.T) {
	inBubble(t, launcher.Options{}, func(w *world) {
		w.tool("a", func(k *kind) { k.WarmKeep = 10 * time.Second })
		w.tool("b", func(k *kind) { k.WarmKeep = 100 * time.Second })
		w.tool("c", func(k *kind) { k.WarmKeep = 0 })
		w.run("a", "")
		w.run("b", "")
		w.run("c", "")
		require.Equal(t, "a b c", w.warm())
		time.Sleep(2 * time.Second)
		require.Equal(t, "a b", w.warm())
		time.Sleep(6 * time.Second)
		w.run("a", "for 3s") // counts from its end
		time.Sleep(8 * time.Second)
		require.Equal(t, "a b", w.warm())
		time.Sleep(3 * time.Second)
		require.Equal(t, "b", w.warm())
		time.Sleep(90 * time.Second)
		require.Empty(t, w.warm())
		require.Equal(t, 1, w.kinds["a"].starts)
	})
}

func TestARunOutlivesItsTime(t *testing.T) {
	inBubble(t, launcher.Options{WarmMax: 1}, func(w *world) {
		w.tool("a", func(k *kind) { k.WarmKeep = time.Second })
		w.tool("b", nil)
		_, long := w.begin("a", "for 10m")
		time.Sleep(time.Minute)
		r := w.run("b", "")
		require.Equal(t, messages.ToolErrorOverloaded, r.Error.Kind)
		res, err := long.Wait(context.Background())
		require.NoError(t, err)
		require.Equal(t, messages.OutcomeOK, res.Outcome)
		require.Equal(t, 10*time.Minute, res.Duration)
		require.Equal(t, messages.OutcomeOK, w.run("b", "").Outcome, "at once after it")
	})
}

func TestAStartCountsInTheCap(t *testing.T) {
	inBubble(t, launcher.Options{WarmMax: 2}, func(w *world) {
		for i, id := range []string{"a", "b", "c"} {
			w.tool(id, func(k *kind) { k.startTakes = time.Duration(3+i) * time.Second }) // a is used before b
		}
		_, ra := w.begin("a", "")
		_, rb := w.begin("b", "")
		synctest.Wait()
		r := w.run("c", "")
		require.Equal(t, messages.ToolErrorOverloaded, r.Error.Kind, "two that start are two")
		for _, reply := range []supervisor.Reply[messages.ToolResult]{ra, rb} {
			res, err := reply.Wait(context.Background())
			require.NoError(t, err)
			require.Equal(t, messages.OutcomeOK, res.Outcome)
		}
		require.Equal(t, messages.OutcomeOK, w.run("c", "").Outcome)
		require.Equal(t, "b c", w.warm())
	})
}

// TestOneThatStopsCountsInTheCap: the new one does not start before the old one
// has ended.
func TestOneThatStopsCountsInTheCap(t *testing.T) {
	inBubble(t, launcher.Options{WarmMax: 1}, func(w *world) {
		w.tool("a", func(k *kind) { k.hangs = true })
		w.tool("b", nil)
		w.run("a", "")
		began := time.Now()
		require.Equal(t, messages.OutcomeOK, w.run("b", "").Outcome)
		require.Equal(t, 5*time.Second, time.Since(began), "the grace of the first")
		require.Equal(t, []string{"start a", "end a", "start b"}, w.events)
	})
}

func TestPins(t *testing.T) {
	inBubble(t, launcher.Options{WarmMax: 1}, func(w *world) {
		w.tool("a", nil)
		w.tool("b", nil)
		ask[bool](w, messages.ToolPin{Tool: "a", Pinned: true}) // before it was ever started
		w.run("a", "")
		require.Equal(t, messages.ToolErrorOverloaded, w.run("b", "").Error.Kind)
		time.Sleep(2 * time.Minute)
		require.Empty(t, w.warm(), "a pin does not lengthen its time")
		w.run("a", "")
		require.Equal(t, messages.ToolErrorOverloaded, w.run("b", "").Error.Kind, "the pin outlives the process")
		ask[bool](w, messages.ToolPin{Tool: "a"})
		require.Equal(t, messages.OutcomeOK, w.run("b", "").Outcome)
	})
}

func TestTheMemoryBudgetEndsTheHeaviest(t *testing.T) {
	inBubble(t, launcher.Options{MemoryBudgetMB: 100}, func(w *world) {
		for id, mb := range map[string]int{"a": 20, "b": 50, "c": 30, "d": 60, "e": 101, "f": 90} {
			w.tool(id, func(k *kind) { k.MemoryMB = mb })
		}
		w.run("a", "")
		w.run("b", "")
		w.run("c", "")
		require.Equal(t, "a b c", w.warm())
		w.run("d", "")
		require.Equal(t, "a d", w.warm(), "the heaviest first, then as much more as it takes")
		require.Equal(t, messages.ToolErrorOverloaded, w.run("e", "").Error.Kind)
		_, busy := w.begin("d", "for 1m")
		synctest.Wait()
		r := w.run("f", "")
		require.Equal(t, "overloaded: 60 of 100 MB are taken by tools that are not idle, and this one may use 90 MB", r.Error.Message)
		_, err := busy.Wait(context.Background())
		require.NoError(t, err)
		require.Equal(t, messages.OutcomeOK, w.run("f", "").Outcome)
		require.Equal(t, "f", w.warm())
	})
}

func TestAToolThatIsNotWell(t *testing.T) {
	inBubble(t, launcher.Options{}, func(w *world) {
		w.tool("a", func(k *kind) { k.WarmKeep = time.Hour })
		w.run("a", "")
		w.mu.Lock()
		w.kinds["a"].sick = true
		w.mu.Unlock()
		time.Sleep(10 * time.Second)
		require.Equal(t, "a", w.warm())
		time.Sleep(10 * time.Second)
		require.Empty(t, w.warm())
		_, long := w.begin("a", "for 5m") // no health is asked of one that works
		res, err := long.Wait(context.Background())
		require.NoError(t, err)
		require.Equal(t, messages.OutcomeOK, res.Outcome)
	})
}

func TestPrewarm(t *testing.T) {
	inBubble(t, launcher.Options{WarmMax: 1}, func(w *world) {
		w.tool("a", nil)
		w.tool("b", func(k *kind) { k.startFails = errors.New("no") })
		spec := func(id string) launcher.Prewarm { return launcher.Prewarm{Plan: w.kinds[id].Plan} }
		require.True(t, ask[messages.ToolQueued](w, spec("b")).Queued)
		require.Empty(t, w.warm(), "its failure is silent")
		require.True(t, ask[messages.ToolQueued](w, spec("a")).Queued)
		require.Equal(t, "a", w.warm())
		time.Sleep(50 * time.Second)
		require.True(t, ask[messages.ToolQueued](w, spec("a")).Queued)
		time.Sleep(50 * time.Second)
		require.Equal(t, "a", w.warm(), "a prewarm of a warm tool is a use of it")
		require.False(t, ask[messages.ToolQueued](w, spec("b")).Queued)
		require.Equal(t, 1, w.kinds["a"].starts)
	})
}

func TestShutdownEndsAllAtTheSameTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, kinds: map[string]*kind{}}
		var err error
		w.system, err = supervisor.Start(context.Background(), supervisor.SystemOptions{Name: "root", Drain: -1, Children: []supervisor.Spec{
			{Key: "launcher", New: func() supervisor.Behaviour { return launcher.New(launcher.Options{}) }},
		}})
		require.NoError(t, err)
		for _, id := range []string{"a", "b", "c", "d"} {
			w.tool(id, func(k *kind) { k.hangs = true })
			w.run(id, "")
		}
		w.tool("e", func(k *kind) { k.startTakes = time.Minute })
		_, starting := w.begin("e", "")
		_, running := w.begin("a", "for 1h")
		synctest.Wait()
		began := time.Now()
		report := w.system.Shutdown(context.Background())
		require.True(t, report.Clean(), "%+v", report)
		require.Equal(t, 5*time.Second, time.Since(began))
		r, err := running.Wait(context.Background())
		require.NoError(t, err)
		require.Equal(t, messages.OutcomeCancelled, r.Outcome)
		r, err = starting.Wait(context.Background())
		require.NoError(t, err)
		require.Equal(t, messages.OutcomeNotStarted, r.Outcome)
	})
}
