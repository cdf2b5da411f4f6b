package vitals

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
)

// cpuReading is a process's processor time.
type cpuReading struct {
	pid     int
	seconds float64
}

// sample ends a step: what was counted becomes a sample, with how the server is.
func (v *Vitals) sample(ctx context.Context) {
	seen, err := v.look(ctx, 0)
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.now
	s.P50, s.P99 = percentiles(v.times)
	v.now, v.times, v.ended = client.Sample{}, v.times[:0], 0
	if ctx.Err() != nil {
		return
	}
	s.At = time.Now()
	if err == nil { // else the host stands still, or ends: what was counted is still true
		v.addLook(&s, seen)
	}
	v.last++
	s.Seq = v.last
	if len(v.samples) == keptSamples {
		v.samples = slices.Delete(v.samples, 0, 1)
	}
	v.samples = append(v.samples, s)
}

// addLook adds what a look shows to a sample. Only the sampler calls it.
func (v *Vitals) addLook(s *client.Sample, seen look) {
	s.Sessions = map[messages.ChildState]int{}
	now := make(map[string]cpuReading, len(seen.sessions))
	for _, one := range seen.sessions {
		s.Sessions[one.State]++
		s.Queue += one.Queue
		s.RSS += one.RSS
		id := keyOf(one).ID()
		now[id] = cpuReading{one.PID, one.CPU}
		if before, known := v.cpu[id]; known && before.pid == one.PID && one.CPU > before.seconds {
			s.CPU += 100 * (one.CPU - before.seconds) / step.Seconds()
		}
	}
	v.cpu = now
	if seen.tree.Busy != nil {
		s.Pressure = seen.tree.Busy.Pressure
	}
}

// took counts a call that ended. Beyond a bound each call of a step has the same chance
// to be among those whose times are kept. v.mu is held.
func (v *Vitals) took(outcome messages.Outcome, d time.Duration) {
	if v.now.Calls == nil {
		v.now.Calls = map[messages.Outcome]int{}
	}
	v.now.Calls[outcome]++
	v.ended++
	if len(v.times) < keptTimes {
		v.times = append(v.times, d)
	} else if at := rand.IntN(v.ended); at < keptTimes {
		v.times[at] = d
	}
}

// percentiles are the median and the 99th percentile, in milliseconds, by the nearest
// rank. It sorts the times.
func percentiles(times []time.Duration) (p50, p99 float64) {
	n := len(times)
	if n == 0 {
		return 0, 0
	}
	slices.Sort(times)
	at := func(percent int) float64 { return float64(times[(n*percent+99)/100-1]) / float64(time.Millisecond) }
	return at(50), at(99)
}
