package strategy

import (
	"errors"
	"time"

	"github.com/coppice-run/coppice/messages"
)

// ErrElsewhere is matched by a failure that is not the child's own: what it stands on,
// and others too, has ended under it.
var ErrElsewhere = errors.New("what it stands on has ended")

type restartOnce struct{}

// RestartOnce restarts a child that failed, at once, and gives it up when it
// fails again before it has finished any work: the key then stays failed, with
// an exit of kind exhausted, until it is reset. A child that fails before it
// is up is stopped and not held against the key: the next work tries again. Neither is
// a failure that matches [ErrElsewhere]: it is restarted as often as that happens.
func RestartOnce() Strategy { return restartOnce{} }

// Decide answers Fail.
func (restartOnce) Decide(v View, ev Event) []Directive {
	fail, ok := ev.(Fail)
	if !ok {
		return nil
	}
	c, ok := v.Child(fail.Key)
	switch {
	case !ok:
		return nil
	case c.UpAt.IsZero():
		return []Directive{Stop(fail.Key, fail.Exit)}
	case c.Restarts > 0 && !errors.Is(fail.Exit.Err, ErrElsewhere):
		return []Directive{Stop(fail.Key, exhausted(fail.Exit, "failed again right after a restart"))}
	default:
		return []Directive{Restart(fail.Key, 0)}
	}
}

// exhausted is the exit of a child that is given up after a failure.
func exhausted(last Exit, format string, args ...any) Exit {
	exit := Exitf(messages.ExitExhausted, format+": %w", append(args, last)...)
	exit.Stack = last.Stack
	return exit
}

type intensity struct {
	n      int
	period time.Duration
}

// Intensity restarts a child that failed, at once, up to n times within
// period. With one failure more in that time the key stays failed, with an
// exit of kind exhausted. Each key has its own count.
func Intensity(n int, period time.Duration) Strategy { return intensity{n, period} }

// Decide answers Fail.
func (i intensity) Decide(v View, ev Event) []Directive {
	fail, ok := ev.(Fail)
	if !ok {
		return nil
	}
	if n := within(v.Failures(fail.Key), v.Now(), i.period); n > i.n {
		return []Directive{Stop(fail.Key, exhausted(fail.Exit, "failed %d times within %v", n, i.period))}
	}
	return []Directive{Restart(fail.Key, 0)}
}

type escalateAfter struct {
	n      int
	period time.Duration
}

// EscalateAfter ends the supervisor when its children together fail more than n
// times within period; 0 escalates the first failure. It is what OTP calls the
// intensity of a supervisor. Chain it with a strategy that restarts.
func EscalateAfter(n int, period time.Duration) Strategy { return escalateAfter{n, period} }

// Decide answers Fail.
func (e escalateAfter) Decide(v View, ev Event) []Directive {
	fail, ok := ev.(Fail)
	if !ok {
		return nil
	}
	n := within(v.GroupFailures(), v.Now(), e.period)
	if n <= e.n {
		return nil
	}
	exit := Exitf(messages.ExitEscalated, "children failed %d times within %v, last %s: %w", n, e.period, fail.Key, fail.Exit)
	return []Directive{Escalate(exit)}
}

// within counts the instants of the last period. One that is exactly period
// old counts no more.
func within(times []time.Time, now time.Time, period time.Duration) int {
	n := 0
	for i := len(times) - 1; i >= 0 && now.Sub(times[i]) < period; i-- {
		n++
	}
	return n
}
