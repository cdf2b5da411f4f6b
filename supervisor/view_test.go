package supervisor_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// watchful is a strategy that looks at the silent ones until it has seen enough.
type watchful struct{ seen func(strategy.ChildView) bool }

func (w watchful) Decide(v strategy.View, ev strategy.Event) []strategy.Directive {
	if _, tick := ev.(strategy.Tick); tick {
		for c := range v.(strategy.Index).Silent(v.Now().Add(-10 * time.Second)) {
			if !w.seen(c) {
				break
			}
		}
	}
	return nil
}

// TestTheSilentAreSeen, and none that was heard of, for as long as somebody looks.
func TestTheSilentAreSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var seen []string // of the goroutine of the supervisor
		beats := func() supervisor.Behaviour { return owner{func() bool { return false }} }
		quiet := func() supervisor.Behaviour { return owner{func() bool { return true }} }
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{supervise("s", supervisor.Options{
			Handler: &handler{}, Tick: time.Second,
			Strategy: watchful{func(c strategy.ChildView) bool {
				seen = append(seen, c.Key)
				return len(seen)%3 != 0
			}},
			Children: []supervisor.Spec{{Key: "a", New: quiet}, {Key: "b", New: beats}, {Key: "c", New: quiet}, {Key: "d", New: quiet}, {Key: "e", New: quiet}},
		})}})
		later(time.Minute)
		var all []string
		in(t, sys.Ref("s"), func(*supervisor.Supervisor) { all = seen })
		require.Greater(t, len(all), 100)
		require.Zero(t, len(all)%3, "it had seen enough at each tick")
		require.NotContains(t, all, "b")
		stop(t, sys)
	})
}
