package opportunity

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAccount(t *testing.T) {
	t.Parallel()
	s := func(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
	type seen struct{ wall, stalled, waited, pending, chance, most, listened float64 }
	for name, spans := range map[string][]seen{
		"nobody waits":                         {{wall: 1, chance: 1, most: 1, listened: 1}, {wall: 3, chance: 3, most: 3, listened: 3}},
		"it waits":                             {{wall: 10, waited: 7, chance: 3, most: 3, listened: 10}},
		"it waits now":                         {{wall: 10, pending: 10, chance: 0, most: 10, listened: 10}},
		"it waited less than it seemed to":     {{wall: 10, pending: 10, most: 10, listened: 10}, {wall: 11, waited: 2, chance: 9, most: 9, listened: 11}},
		"it waited all of it, and longer":      {{wall: 10, pending: 10, most: 10, listened: 10}, {wall: 11, waited: 11, chance: 0, most: 0, listened: 11}},
		"a wait from before does not go back":  {{wall: 10, chance: 10, most: 10, listened: 10}, {wall: 11, waited: 9, chance: 10, most: 10, listened: 11}},
		"we stalled":                           {{wall: 10, stalled: 4, chance: 5.9, most: 5.9, listened: 5.9}},
		"we stalled shortly":                   {{wall: 10, stalled: .4, chance: 9.6, most: 9.6, listened: 9.6}},
		"we stalled for ever":                  {{wall: 1, chance: 1, most: 1, listened: 1}, {wall: 1e6, stalled: 1e6 - 1, chance: 1, most: 1, listened: 1}, {wall: 1e6 + .1, stalled: 1e6 - 1, chance: 1, most: 1, listened: 1}, {wall: 1e6 + .2, stalled: 1e6 - 1, chance: 1.1, most: 1.1, listened: 1.1}},
		"both, at the same time":               {{wall: 10, stalled: 9, waited: 9, chance: 0, most: 0, listened: .9}, {wall: 12, stalled: 9, waited: 9, chance: 2, most: 2, listened: 2.9}},
		"it seemed to wait while we stalled":   {{wall: 10, stalled: 9, pending: 10, chance: 0, most: .9, listened: .9}, {wall: 11, stalled: 9, chance: 1.9, most: 1.9, listened: 1.9}},
		"always stalled, always owed a moment": {{wall: 1, stalled: .9, most: 0, chance: 0}, {wall: 2, stalled: 1.8, chance: .1, most: .1, listened: .1}, {wall: 3, stalled: 2.7, chance: .2, most: .2, listened: .2}},
		"numbers that go back":                 {{wall: 10, waited: 2, chance: 8, most: 8, listened: 10}, {wall: 9, waited: 1, chance: 8, most: 8, listened: 10}, {wall: 11, waited: 2, chance: 9, most: 9, listened: 11}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var a account
			for _, x := range spans {
				a.add(totals{wall: s(x.wall), stalled: s(x.stalled), waited: s(x.waited), pending: s(x.pending)})
				const close = float64(time.Microsecond) // of numbers with a fraction
				require.InDelta(t, s(x.chance), a.chance, close, "chance after %v s", x.wall)
				require.InDelta(t, s(x.most), a.most, close, "most after %v s", x.wall)
				require.InDelta(t, s(x.listened), a.listened, close, "listened after %v s", x.wall)
			}
		})
	}
}

func upTo(t *rapid.T, most time.Duration, name string) time.Duration {
	return time.Duration(rapid.Int64Range(0, int64(most)).Draw(t, name))
}

// Whatever is seen, even what cannot be: opportunity is a part of what we listened,
// which is a part of the time that passed, and never falls.
func TestOpportunityIsAPartOfTheTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var a account
		var now totals
		var chance, listened time.Duration
		for range rapid.IntRange(1, 30).Draw(t, "looks") {
			now.wall += upTo(t, time.Minute, "wall")
			now.stalled += upTo(t, time.Minute, "stalled")
			now.waited += upTo(t, 2*time.Minute, "waited")
			now.pending = upTo(t, 5*time.Minute, "pending")
			a.add(now)
			require.GreaterOrEqual(t, a.chance, chance)
			require.GreaterOrEqual(t, a.listened, listened)
			require.LessOrEqual(t, a.chance, a.most)
			require.LessOrEqual(t, a.most, a.listened)
			require.LessOrEqual(t, a.listened, now.wall)
			chance, listened = a.chance, a.listened
		}
	})
}

// Without waiting and stalling, opportunity is the time that passed.
func TestOpportunityIsTheTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var a account
		var now totals
		for range rapid.IntRange(1, 30).Draw(t, "looks") {
			now.wall += upTo(t, time.Hour, "wall")
			a.add(now)
			require.Equal(t, now.wall, a.chance)
			require.Equal(t, now.wall, a.listened)
		}
	})
}

// A side that waits, or our own standing still, for however long, spends nothing:
// what passed besides decides.
func TestNoStallExpiresABudget(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := Budget{Opportunity: upTo(t, time.Minute, "opportunity") + time.Second, Ceiling: upTo(t, time.Hour, "ceiling")}
		var a account
		var now totals
		left := b.Opportunity - 1 // of time in which nobody stalls or waits
		for range rapid.IntRange(1, 30).Draw(t, "looks") {
			good := upTo(t, left, "good")
			left -= good
			stalled := upTo(t, 1000*time.Hour, "stalled")
			now.wall += good + stalled
			now.stalled += stalled
			a.add(now)
			m := Measure{Wall: now.wall, Opportunity: a.chance, Most: a.most, Listened: a.listened, owed: a.owed}
			require.Equal(t, Open, b.Expired(m))
			require.Positive(t, b.Left(m))
		}
	})
}

// truth is a thread whose waits are known, and what the system counts of it.
type truth struct {
	ran, waited, counted time.Duration
	turns                uint64
}

// What a thread is seen to have waited is never less than what it has, by as much as
// could decide a verdict, and never more than the time; and a thread that has its
// turn, and sleeps, is seen to have waited exactly what it has.
func TestTheLedgerKnowsTheWaits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var l ledger
		var a account
		var is truth
		is.turns = 1
		begin := time.Unix(1e9, 0)
		at := begin
		state := asleep
		open := time.Duration(0) // of the wait that goes on
		look := func() {
			l.add(at, []thread{{ID: 1, State: state, Ran: is.ran, Waited: is.counted, Turns: is.turns, Counted: true}})
			a.add(totals{wall: at.Sub(begin), waited: l.waited + l.disk, pending: l.pending})
			wall := at.Sub(begin)
			require.LessOrEqual(t, a.chance, wall-is.waited, "it had no more chance than the time in which it did not wait")
			if state == asleep {
				require.Equal(t, wall-is.waited, a.most)
				require.Equal(t, a.most, a.chance)
			}
		}
		look()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			d := upTo(t, 10*time.Second, "for")
			at = at.Add(d)
			switch rapid.SampledFrom([]string{"sleep", "wait", "run"}).Draw(t, "what") {
			case "sleep":
				if open > 0 { // it gets a turn first
					is.counted, is.turns, open = is.waited, is.turns+1, 0
				}
				state = asleep
			case "wait":
				state = wanting
				is.waited += d
				open += d
			case "run":
				is.counted, is.turns, open = is.waited, is.turns+1, 0
				state = wanting
				is.ran += d
			}
			if rapid.Bool().Draw(t, "look") {
				look()
			}
		}
	})
}
