package strategy

import (
	"hash/fnv"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// BackoffOptions say how [Backoff] waits. The zero value waits 0.5 s, 0.75 s,
// and so on up to a minute.
type BackoffOptions struct {
	// Initial is the delay after the first failure. 0: 500 ms.
	Initial time.Duration
	// Max bounds the delay, before jitter. 0: 1 min.
	Max time.Duration
	// Multiplier is how much longer each delay is than the one before. Less
	// than 1: 1.5.
	Multiplier float64
	// Jitter spreads the delays of different children by up to this part of
	// the delay, in both directions: 0.2 is ±20 %. 0: none; above 1 counts as
	// 1. The spread depends on the key and the count alone, so that the same
	// history always gives the same delay.
	Jitter float64
	// Reset is how long a child has to live, from its start, for its earlier
	// failures to be forgotten. 0: 1 min.
	Reset time.Duration
	// Limit is how many failures in a row are answered by a restart; one more
	// leaves the key failed, with an exit of kind exhausted. 0: no limit.
	// Values above 31 count as no limit, because a view remembers no more ([MaxFailures]).
	Limit int
}

func (o BackoffOptions) withDefaults() BackoffOptions {
	if o.Initial <= 0 {
		o.Initial = backoff.DefaultInitialInterval
	}
	if o.Max <= 0 {
		o.Max = backoff.DefaultMaxInterval
	}
	if o.Multiplier < 1 {
		o.Multiplier = backoff.DefaultMultiplier
	}
	o.Jitter = min(max(o.Jitter, 0), 1)
	if o.Reset <= 0 {
		o.Reset = time.Minute
	}
	return o
}

// Backoff restarts a child that failed, and waits longer each time, until the
// child has lived for a while. It also restarts a child that failed before it
// was up.
func Backoff(o BackoffOptions) Strategy { return o.withDefaults() }

// Decide answers Fail.
func (o BackoffOptions) Decide(v View, ev Event) []Directive {
	fail, ok := ev.(Fail)
	if !ok {
		return nil
	}
	n := o.inARow(fail.Key, v.Failures(fail.Key))
	if o.Limit > 0 && o.Limit < MaxFailures && n > o.Limit {
		return []Directive{Stop(fail.Key, exhausted(fail.Exit, "failed %d times in a row", n))}
	}
	return []Directive{Restart(fail.Key, o.delay(fail.Key, n))}
}

// inARow counts the failures since the child last lived for long enough. How
// long it lived is the time between two failures without the delay that this
// strategy put between them.
func (o BackoffOptions) inARow(key string, failures []time.Time) int {
	n := 0
	for i, at := range failures {
		if i > 0 && at.Sub(failures[i-1])-o.delay(key, n) >= o.Reset {
			n = 0
		}
		n++
	}
	return max(n, 1)
}

// delay is how long to wait after the nth failure in a row.
func (o BackoffOptions) delay(key string, n int) time.Duration {
	b := backoff.ExponentialBackOff{
		InitialInterval: o.Initial, MaxInterval: o.Max, Multiplier: o.Multiplier,
		Stop: backoff.Stop, Clock: stillClock{},
	}
	b.Reset()
	var d time.Duration
	for range n {
		d = b.NextBackOff()
	}
	if o.Jitter == 0 {
		return d
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(key + "#" + strconv.Itoa(n))) // a hash takes everything
	spread := float64(h.Sum64()>>11)/(1<<53)*2 - 1      // [-1, 1)
	return d + time.Duration(spread*o.Jitter*float64(d))
}

// stillClock keeps package backoff from reading the time: a strategy has no
// clock.
type stillClock struct{}

// Now is always the same.
func (stillClock) Now() time.Time { return time.Time{} }
