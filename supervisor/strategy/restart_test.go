package strategy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

func suspended(key string, with ...func(*strategy.ChildView)) view {
	return view{children: []strategy.ChildView{child(key, messages.ChildSuspended, 0, with...)}}
}

func TestRestartOnce(t *testing.T) {
	t.Parallel()
	decide(t, strategy.RestartOnce(), []decision{
		{"the first failure", suspended("a"), failOf("a"), []string{"restart a"}},
		{
			"again, without any work in between", suspended("a", func(c *strategy.ChildView) { c.Restarts = 1; c.TotalRestarts = 1 }),
			failOf("a"),
			[]string{"stop a exhausted"},
		},
		{
			"again, and it is not its own", suspended("a", func(c *strategy.ChildView) { c.Restarts = 1; c.TotalRestarts = 1 }),
			strategy.Fail{Key: "a", Exit: strategy.Exitf(messages.ExitFailed, "its server: %w", strategy.ErrElsewhere)},
			[]string{"restart a"},
		},
		{
			"again, after work", suspended("a", func(c *strategy.ChildView) { c.Restarts = 0; c.TotalRestarts = 7 }),
			failOf("a"),
			[]string{"restart a"},
		},
		{
			"before it is up", suspended("a", func(c *strategy.ChildView) { c.UpAt = time.Time{} }),
			failOf("a"),
			[]string{"stop a failed"},
		},
		{
			"the start of a restart fails: not held against the key", suspended("a", func(c *strategy.ChildView) { c.UpAt = time.Time{}; c.Restarts = 1 }),
			failOf("a"),
			[]string{"stop a failed"},
		},
		{"of an unknown child", view{}, failOf("a"), nil},
		{"a tick is none of its business", suspended("a"), strategy.Tick{}, nil},
		{"an end in order is none of its business", suspended("a"), strategy.Gone{Key: "a"}, nil},
	})
}

func TestIntensity(t *testing.T) {
	t.Parallel()
	history := func(ago ...time.Duration) view {
		v := suspended("a")
		v.failures = map[string][]time.Time{"a": before(ago...), "b": before(3, 2, 1)}
		return v
	}
	decide(t, strategy.Intensity(2, time.Minute), []decision{
		{"the first", history(0), failOf("a"), []string{"restart a"}},
		{"the second", history(30*time.Second, 0), failOf("a"), []string{"restart a"}},
		{"one too many", history(59*time.Second, 30*time.Second, 0), failOf("a"), []string{"stop a exhausted"}},
		{"the oldest counts no more", history(60*time.Second, 30*time.Second, 0), failOf("a"), []string{"restart a"}},
		{"a tick", history(3, 2, 1, 0), strategy.Tick{}, nil},
	})
	decide(t, strategy.Intensity(0, time.Minute), []decision{
		{"none at all", history(0), failOf("a"), []string{"stop a exhausted"}},
	})
}

func TestEscalateAfter(t *testing.T) {
	t.Parallel()
	history := func(ago ...time.Duration) view {
		v := suspended("a")
		v.group = before(ago...)
		return v
	}
	decide(t, strategy.EscalateAfter(1, 5*time.Second), []decision{
		{"the first", history(0), failOf("a"), nil},
		{"another child's", history(time.Second, 0), failOf("a"), []string{"escalate escalated"}},
		{"long ago", history(5*time.Second, 0), failOf("a"), nil},
		{"a tick", history(1, 0), strategy.Tick{}, nil},
	})
	decide(t, strategy.EscalateAfter(0, time.Second), []decision{
		{"at once", history(0), failOf("a"), []string{"escalate escalated"}},
	})
	exit := strategy.EscalateAfter(0, time.Second).Decide(history(0), failOf("a"))[0].Exit
	require.ErrorIs(t, exit, errTest, "the cause is kept")
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	s := strategy.Backoff(strategy.BackoffOptions{Initial: time.Second, Max: 10 * time.Second, Multiplier: 2, Reset: time.Minute})
	history := func(ago ...time.Duration) view {
		v := suspended("a")
		v.failures = map[string][]time.Time{"a": before(ago...)}
		return v
	}
	decide(t, s, []decision{
		{"the first", history(0), failOf("a"), []string{"restart a 1s"}},
		{"the second", history(2*time.Second, 0), failOf("a"), []string{"restart a 2s"}},
		{"the third", history(6*time.Second, 4*time.Second, 0), failOf("a"), []string{"restart a 4s"}},
		{"up to the limit", history(50, 40, 30, 20, 10, 5, 0), failOf("a"), []string{"restart a 10s"}},
		{"it lived for long", history(2*time.Minute, 0), failOf("a"), []string{"restart a 1s"}},
		{"the delay is not life", history(60*time.Second, 0), failOf("a"), []string{"restart a 2s"}},
		{"just long enough", history(61*time.Second, 0), failOf("a"), []string{"restart a 1s"}},
		{"long ago it failed more often", history(3*time.Hour, 3*time.Hour-time.Second, 2*time.Second, 0), failOf("a"), []string{"restart a 2s"}},
		{"before it is up", suspended("a", func(c *strategy.ChildView) { c.UpAt = time.Time{} }), failOf("a"), []string{"restart a 1s"}},
		{"a tick", history(0), strategy.Tick{}, nil},
	})
	decide(t, strategy.Backoff(strategy.BackoffOptions{}), []decision{
		{"the defaults", history(0), failOf("a"), []string{"restart a 500ms"}},
	})
	decide(t, strategy.Backoff(strategy.BackoffOptions{Initial: time.Second, Multiplier: 1}), []decision{
		{"the same delay each time", history(8, 4, 0), failOf("a"), []string{"restart a 1s"}},
	})
	decide(t, strategy.Backoff(strategy.BackoffOptions{Initial: time.Second, Multiplier: 2}), []decision{
		{"a minute resets", history(61*time.Second, 0), failOf("a"), []string{"restart a 1s"}},
		{"less does not", history(60*time.Second, 0), failOf("a"), []string{"restart a 2s"}},
	})
	decide(t, strategy.Backoff(strategy.BackoffOptions{Initial: time.Second, Multiplier: 2, Reset: 10 * time.Second}), []decision{
		{"so does what was said", history(11*time.Second, 0), failOf("a"), []string{"restart a 1s"}},
	})
	decide(t, strategy.Backoff(strategy.BackoffOptions{Limit: 2}), []decision{
		{"within the limit", history(1, 0), failOf("a"), []string{"restart a 750ms"}},
		{"beyond it", history(2, 1, 0), failOf("a"), []string{"stop a exhausted"}},
	})
}

// TestBackoffJitter: the same history gives the same delay, different keys
// spread, and nothing leaves the bounds.
func TestBackoffJitter(t *testing.T) {
	t.Parallel()
	s := strategy.Backoff(strategy.BackoffOptions{Initial: time.Second, Jitter: 0.2})
	seen := make(map[time.Duration]bool)
	longer, shorter := 0, 0
	for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		v := suspended(key)
		v.failures = map[string][]time.Time{key: before(0)}
		d := s.Decide(v, failOf(key))[0].After
		require.InDelta(t, time.Second, d, 0.2*float64(time.Second))
		require.Equal(t, d, s.Decide(v, failOf(key))[0].After)
		seen[d] = true
		if d > time.Second {
			longer++
		} else {
			shorter++
		}
	}
	require.Len(t, seen, 8)
	require.NotZero(t, longer, "half of the keys wait longer")
	require.NotZero(t, shorter, "and half of them shorter")
}

func TestGroups(t *testing.T) {
	t.Parallel()
	typed := func(key string, r strategy.RestartType, state messages.ChildState) strategy.ChildView {
		return child(key, state, 0, static, func(c *strategy.ChildView) { c.RestartType = r })
	}
	four := func(r strategy.RestartType) view {
		return view{children: []strategy.ChildView{
			typed("a", strategy.Permanent, messages.ChildIdle),
			typed("b", r, messages.ChildSuspended),
			typed("c", strategy.Temporary, messages.ChildBusy),
			typed("d", strategy.Transient, messages.ChildGone),
			idle("dynamic", 0),
		}}
	}
	normal := strategy.Gone{Key: "b", Exit: strategy.Exit{Kind: messages.ExitNormal}, BySelf: true}
	exhausted := strategy.Gone{Key: "b", Exit: strategy.Exit{Kind: messages.ExitExhausted}, BySelf: true}
	evicted := strategy.Gone{Key: "b", Exit: strategy.Exit{Kind: messages.ExitEvicted}}
	all := []string{"restart b", "restart a", "stop c shutdown", "restart d"}
	rest := []string{"restart b", "stop c shutdown", "restart d"}
	for _, row := range []struct {
		name     string
		strategy strategy.Strategy
		group    []string
	}{
		{"OneForOne", strategy.OneForOne(), []string{"restart b"}},
		{"RestForOne", strategy.RestForOne(), rest},
		{"OneForAll", strategy.OneForAll(), all},
	} {
		t.Run(row.name, func(t *testing.T) {
			decide(t, row.strategy, []decision{
				{"permanent, failed", four(strategy.Permanent), failOf("b"), row.group},
				{"permanent, done", four(strategy.Permanent), normal, row.group},
				{"permanent, evicted", four(strategy.Permanent), evicted, nil},
				{"permanent, given up", four(strategy.Permanent), exhausted, nil},
				{"transient, failed", four(strategy.Transient), failOf("b"), row.group},
				{"transient, done", four(strategy.Transient), normal, nil},
				{"temporary, failed", four(strategy.Temporary), failOf("b"), []string{"stop b failed"}},
				{"temporary, done", four(strategy.Temporary), normal, nil},
				{"no type, failed", four(""), failOf("b"), []string{"stop b failed"}},
				{"a tick", four(strategy.Permanent), strategy.Tick{}, nil},
			})
		})
	}
}

func TestAutoShutdown(t *testing.T) {
	t.Parallel()
	significant := func(c *strategy.ChildView) { c.Significant = true }
	v := func(other messages.ChildState) view {
		return view{children: []strategy.ChildView{
			child("a", messages.ChildGone, 0, static, significant),
			child("b", other, 0, static, significant),
			child("c", messages.ChildGone, 0, static),
		}}
	}
	gone := func(key string, kind messages.ExitKind) strategy.Gone {
		return strategy.Gone{Key: key, Exit: strategy.Exit{Kind: kind}, BySelf: kind == messages.ExitNormal}
	}
	decide(t, strategy.AutoShutdown(false), []decision{
		{"any: by itself", v(messages.ChildIdle), gone("a", messages.ExitNormal), []string{"escalate shutdown"}},
		{"any: failed", v(messages.ChildIdle), gone("a", messages.ExitFailed), []string{"escalate shutdown"}},
		{"any: was ended", v(messages.ChildIdle), gone("a", messages.ExitShutdown), nil},
		{"any: not significant", v(messages.ChildIdle), gone("c", messages.ExitNormal), nil},
		{"a failure is not the end", v(messages.ChildIdle), failOf("a"), nil},
	})
	decide(t, strategy.AutoShutdown(true), []decision{
		{"all: another lives", v(messages.ChildBusy), gone("a", messages.ExitNormal), nil},
		{"all: the last", v(messages.ChildGone), gone("a", messages.ExitNormal), []string{"escalate shutdown"}},
		{"all: one that does not count lives", of3(child("a", messages.ChildGone, 0, static, significant), child("c", messages.ChildBusy, 0, static)), gone("a", messages.ExitNormal), []string{"escalate shutdown"}},
		{"all: the other stays failed", v(messages.ChildFailed), gone("a", messages.ExitNormal), []string{"escalate shutdown"}},
	})
}
