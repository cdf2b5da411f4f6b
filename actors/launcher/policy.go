package launcher

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// tools is what the policies know of a key beyond the view. The launcher keeps it;
// strategies are asked in the same goroutine.
type tools interface {
	warmKeep(key string) time.Duration
	memoryMB(key string) int
}

// policy is what happens to tools, from the numbers of the options.
func policy(o Options, t tools) strategy.Strategy {
	return strategy.Chain(
		strategy.Heartbeat(o.Heartbeat),
		strategy.Pin(strategy.Chain(memoryBudget{o.MemoryBudgetMB, t}, strategy.LRU(o.WarmMax))),
		warmKeep{t},
	)
}

// warmKeep ends a tool that had nothing to do for as long as it is to be kept.
type warmKeep struct{ tools tools }

// Decide answers Tick.
func (w warmKeep) Decide(v strategy.View, ev strategy.Event) []strategy.Directive {
	if _, ok := ev.(strategy.Tick); !ok {
		return nil
	}
	var ds []strategy.Directive
	for c := range v.Children() {
		if at := w.due(c); !at.IsZero() && !v.Now().Before(at) {
			ds = append(ds, strategy.Stop(c.Key, evicted("idle for %v", w.tools.warmKeep(c.Key))))
		}
	}
	return ds
}

// TTL is when the tool will have been idle for long enough.
func (w warmKeep) TTL(v strategy.View, key string) time.Time {
	c, ok := v.Child(key)
	if !ok {
		return time.Time{}
	}
	return w.due(c)
}

func (w warmKeep) due(c strategy.ChildView) time.Time {
	if !c.Evictable() {
		return time.Time{}
	}
	return c.LastDone.Add(w.tools.warmKeep(c.Key))
}

func evicted(format string, args ...any) supervisor.Exit {
	return supervisor.Exit{Kind: messages.ExitEvicted, Err: fmt.Errorf(format, args...)}
}

// memoryBudget bounds the sum of what live tools may use. For a new one it ends
// the heaviest idle ones first, of two that are as heavy the one that has been
// idle for longer.
type memoryBudget struct {
	limit int
	tools tools
}

// Decide answers Spawning.
func (m memoryBudget) Decide(v strategy.View, ev strategy.Event) []strategy.Directive {
	spawning, ok := ev.(strategy.Spawning)
	if !ok || m.limit <= 0 {
		return nil
	}
	need := m.tools.memoryMB(spawning.Key)
	if need > m.limit {
		return []strategy.Directive{refuse(spawning.Key, "the tool may use %d MB, and all warm tools together %d MB", need, m.limit)}
	}
	used, ending, spare := 0, 0, 0
	var idle []strategy.ChildView
	for c := range v.Children() {
		if c.Key == spawning.Key || !c.Live() {
			continue
		}
		used += m.tools.memoryMB(c.Key)
		if c.State == messages.ChildStopping || c.State == messages.ChildRestarting {
			ending += m.tools.memoryMB(c.Key)
		}
		if c.Evictable() {
			idle = append(idle, c)
			spare += m.tools.memoryMB(c.Key)
		}
	}
	over := used + need - m.limit
	if over <= 0 {
		return nil
	}
	ds := []strategy.Directive{strategy.Wait(spawning.Key)}
	over -= ending
	slices.SortStableFunc(idle, func(a, b strategy.ChildView) int {
		return cmp.Or(m.tools.memoryMB(b.Key)-m.tools.memoryMB(a.Key), a.LastDone.Compare(b.LastDone))
	})
	for _, c := range idle {
		if over <= 0 {
			break
		}
		over -= m.tools.memoryMB(c.Key)
		ds = append(ds, strategy.Stop(c.Key, evicted("made room: the tools may use %d MB together", m.limit)))
	}
	if over > 0 {
		return []strategy.Directive{refuse(spawning.Key, "%d of %d MB are taken by tools that are not idle, and this one may use %d MB", used-spare, m.limit, need)}
	}
	return ds
}

func refuse(key, format string, args ...any) strategy.Directive {
	return strategy.Stop(key, supervisor.Exit{Kind: messages.ExitOverloaded, Err: fmt.Errorf(format, args...)})
}

var (
	_ strategy.TTLs     = warmKeep{}
	_ strategy.Strategy = memoryBudget{}
)
