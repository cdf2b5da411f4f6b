package strategy_test

import (
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// noon is when the events of strategy tests happen.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// view is a View that a test writes down.
type view struct {
	children []strategy.ChildView
	failures map[string][]time.Time
	group    []time.Time
}

func (v view) Now() time.Time { return noon }
func (v view) Len() int       { return len(v.children) }

func (v view) Child(key string) (strategy.ChildView, bool) {
	for c := range v.Children() {
		if c.Key == key {
			return c, true
		}
	}
	return strategy.ChildView{}, false
}

func (v view) Children() iter.Seq[strategy.ChildView] {
	return func(yield func(strategy.ChildView) bool) {
		for i, c := range v.children {
			c.Order = i + 1
			if !yield(c) {
				return
			}
		}
	}
}

func (v view) Failures(key string) []time.Time { return v.failures[key] }
func (v view) GroupFailures() []time.Time      { return v.group }

// child is a dynamic child that became idle ago, changed by with.
func child(key string, state messages.ChildState, ago time.Duration, with ...func(*strategy.ChildView)) strategy.ChildView {
	c := strategy.ChildView{Key: key, State: state, LastDone: noon.Add(-ago), Since: noon.Add(-ago), UpAt: noon.Add(-time.Hour)}
	for _, f := range with {
		f(&c)
	}
	return c
}

func idle(key string, ago time.Duration, with ...func(*strategy.ChildView)) strategy.ChildView {
	return child(key, messages.ChildIdle, ago, with...)
}

func busy(key string) strategy.ChildView {
	return child(key, messages.ChildBusy, time.Minute)
}

// waiting is a key that waits, in its turn.
func waiting(key string, turn uint64, with ...func(*strategy.ChildView)) strategy.ChildView {
	c := child(key, messages.ChildWaiting, 0, with...)
	c.Turn = turn
	return c
}

func pinned(c *strategy.ChildView) { c.Pinned = true }
func static(c *strategy.ChildView) { c.Static = true }
func queue(c *strategy.ChildView)  { c.Queue = 1 }
func ofKind(k string) func(*strategy.ChildView) {
	return func(c *strategy.ChildView) { c.Kind = k }
}

func ofOwner(o string) func(*strategy.ChildView) {
	return func(c *strategy.ChildView) { c.Owner = o }
}

// before are instants so long before noon, oldest first.
func before(ago ...time.Duration) []time.Time {
	t := make([]time.Time, len(ago))
	for i, d := range ago {
		t[i] = noon.Add(-d)
	}
	return t
}

// say writes directives down: "stop a evicted", "restart b 1s".
func say(ds []strategy.Directive) []string {
	var out []string
	for _, d := range ds {
		s := d.Verb.String()
		if d.Key != "" {
			s += " " + d.Key
		}
		if d.Verb == strategy.VerbRestart && d.After > 0 {
			s += fmt.Sprint(" ", d.After)
		}
		if d.Verb >= strategy.VerbStop {
			s += " " + string(d.Exit.Kind)
		}
		out = append(out, s)
	}
	return out
}

// decision is one row of a strategy's table.
type decision struct {
	name string
	view view
	on   strategy.Event
	want []string
}

func decide(t *testing.T, s strategy.Strategy, rows []decision) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if diff := cmp.Diff(row.want, say(s.Decide(row.view, row.on))); diff != "" {
				t.Fatalf("(-want +got)\n%s", diff)
			}
			// The same view and event give the same answer.
			first := say(s.Decide(row.view, row.on))
			require.Equal(t, first, say(s.Decide(row.view, row.on)))
		})
	}
}

var failed = strategy.Exit{Kind: messages.ExitFailed, Err: errTest}

func failOf(key string) strategy.Fail { return strategy.Fail{Key: key, Exit: failed} }
