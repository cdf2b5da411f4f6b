package vitals

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
)

// Together is one overview of several servers, of which own is the one that numbers the samples.
// What others have counted is added to the step of own in which it was, by their clocks; of the
// times that calls took the longest stands, for half of them too. What is the case with a server says
// which one it is.
func Together(own client.Overview, others map[string]client.Overview) client.Overview {
	step := time.Duration(own.StepSeconds * float64(time.Second))
	own.Samples = slices.Clone(own.Samples)
	for i := range own.Samples {
		own.Samples[i].Sessions, own.Samples[i].Calls = maps.Clone(own.Samples[i].Sessions), maps.Clone(own.Samples[i].Calls)
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		other := others[name]
		for _, s := range other.Samples {
			// The first that ended no earlier: what is newer than all of own comes with the next ones.
			i, _ := slices.BinarySearchFunc(own.Samples, s.At, func(mine client.Sample, at time.Time) int { return mine.At.Compare(at) })
			if i < len(own.Samples) && own.Samples[i].At.Sub(s.At) < step {
				add(&own.Samples[i], s)
			}
		}
		own.Limits.Sessions += other.Limits.Sessions
		own.Limits.Memory += other.Limits.Memory
		own.Limits.CPUs += other.Limits.CPUs
		own.Limits.Fork = own.Limits.Fork || other.Limits.Fork
		own.Hibernated = max(own.Hibernated, other.Hibernated) // each counts those that all have
		own.Marks = append(own.Marks, other.Marks...)
		own.MoreProblems += other.MoreProblems
		for _, p := range other.Problems {
			if p.Key == (messages.SessionKey{}) && !strings.HasPrefix(p.What, name) {
				p.What = name + ": " + p.What
			}
			own.Problems = append(own.Problems, p)
		}
	}
	var more int
	own.Problems, more = worstFirst(own.Problems)
	own.MoreProblems += more
	return own
}

// add adds what another server has counted in the same step.
func add(to *client.Sample, s client.Sample) {
	if to.Sessions == nil {
		to.Sessions = map[messages.ChildState]int{}
	}
	for state, n := range s.Sessions {
		to.Sessions[state] += n
	}
	if to.Calls == nil {
		to.Calls = map[messages.Outcome]int{}
	}
	for outcome, n := range s.Calls {
		to.Calls[outcome] += n
	}
	to.P50, to.P99 = max(to.P50, s.P50), max(to.P99, s.P99)
	to.Queue += s.Queue
	to.Starts += s.Starts
	to.Restarts += s.Restarts
	to.Deaths += s.Deaths
	to.Evictions += s.Evictions
	to.RSS += s.RSS
	to.CPU += s.CPU
	to.Pressure = max(to.Pressure, s.Pressure)
}
