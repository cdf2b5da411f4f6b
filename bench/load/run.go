package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Sample is the outcome of a Run.
type Sample struct {
	// Latency is from the instant a call was due to its end, of calls that
	// returned nil.
	Latency Summary `json:"latency"`
	// Service is from the instant a call was made to its end.
	Service Summary `json:"service"`
	// Late is from the instant a call was due to the one it was made: the
	// generator's own share. When it is not small the machine was too slow to
	// make the calls, and Latency says more about that than about what was
	// called.
	Late Summary `json:"late"`
	// Failed counts the calls that returned an error; First is the first one.
	Failed int    `json:"failed"`
	First  string `json:"first_error,omitempty"`
	// Skipped counts the calls that were not made because ctx ended.
	Skipped int `json:"skipped"`
	// Elapsed is from the start to the end of the last call.
	Elapsed time.Duration `json:"elapsed_ns"`
}

// Rate is how many calls were answered in a second.
func (s Sample) Rate() float64 {
	if s.Elapsed <= 0 {
		return 0
	}
	return float64(s.Latency.Count) / s.Elapsed.Seconds()
}

// Run makes the calls of the plan when they are due, each in a goroutine of its
// own, and returns when all have returned. call gets the call's place in the
// plan. done, if not nil, is called after each call, from its goroutine.
//
// When ctx ends no further calls are made; those that run get ctx and are waited
// for.
func Run(ctx context.Context, plan Plan, call func(ctx context.Context, i int) error, done func()) Sample {
	return run(ctx, plan, call, done, nap)
}

// run is Run with the way to wait for the last millisecond.
func run(ctx context.Context, plan Plan, call func(ctx context.Context, i int) error, done func(), nap func(time.Duration)) Sample {
	latency, service, late := NewRecorder(), NewRecorder(), NewRecorder()
	var failed atomic.Int64
	var first atomic.Pointer[string]
	var calls sync.WaitGroup
	begin := time.Now()
	made := 0
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i, due := range plan {
		if !wait(ctx, timer, begin.Add(due), nap) {
			break
		}
		made++
		calls.Go(func() {
			start := time.Now()
			late.Record(start.Sub(begin) - due)
			if err := call(ctx, i); err != nil {
				failed.Add(1)
				text := err.Error()
				first.CompareAndSwap(nil, &text)
			} else {
				end := time.Now()
				latency.Record(end.Sub(begin) - due)
				service.Record(end.Sub(start))
			}
			if done != nil {
				done()
			}
		})
	}
	calls.Wait()
	s := Sample{
		Latency: latency.Summary(), Service: service.Summary(), Late: late.Summary(), Failed: int(failed.Load()),
		Skipped: len(plan) - made, Elapsed: time.Since(begin),
	}
	if text := first.Load(); text != nil {
		s.First = *text
	}
	return s
}

// coarse is how late a timer of Go may be: its poller counts in milliseconds.
const coarse = 2 * time.Millisecond

// wait returns at the instant, or false when ctx has ended.
func wait(ctx context.Context, timer *time.Timer, at time.Time, nap func(time.Duration)) bool {
	d := time.Until(at)
	if nap != nil {
		d -= coarse
	}
	if d > 0 {
		timer.Reset(d)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return false
		}
	}
	for d := time.Until(at); nap != nil && d > 0; d = time.Until(at) {
		nap(d) // a signal ends it early
	}
	return ctx.Err() == nil
}
