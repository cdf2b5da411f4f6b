package strategy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

func beat(ago time.Duration) func(*strategy.ChildView) {
	return func(c *strategy.ChildView) { c.LastBeat = noon.Add(-ago) }
}

func inCall(ago time.Duration) func(*strategy.ChildView) {
	return func(c *strategy.ChildView) { c.HandlingSince = noon.Add(-ago) }
}

func TestHeartbeat(t *testing.T) {
	t.Parallel()
	const s = time.Second
	hold := func(c *strategy.ChildView) { c.WaitingForCredit = true }
	upNow := func(c *strategy.ChildView) { c.UpAt = noon.Add(-s) }
	lost := func(stalled, inCall, waited, after time.Duration) func(*strategy.ChildView) {
		return func(c *strategy.ChildView) {
			c.Stalled, c.StalledInCall, c.Waited, c.WaitedAfter = stalled, inCall, waited, after
		}
	}
	resumed := func(ago time.Duration) strategy.Tick { return strategy.Tick{Resumed: noon.Add(-ago)} }
	decide(t, strategy.Heartbeat(2*s), []decision{
		{"beats", of3(idle("a", 0, beat(5*s))), strategy.Tick{}, nil},
		{"is silent", of3(idle("a", 0, beat(5*s+1))), strategy.Tick{}, []string{"stop a hung"}},
		{"never beat", of3(idle("a", time.Hour)), strategy.Tick{}, nil},
		{"beat before it was up, and is up just now", of3(idle("a", 0, beat(time.Hour), upNow)), strategy.Tick{}, nil},
		{"is in a call", of3(idle("a", 0, inCall(5*s))), strategy.Tick{}, nil},
		{"is in it for too long", of3(idle("a", 0, inCall(5*s+1))), strategy.Tick{}, []string{"abandon a hung"}},
		{"waits for others", of3(idle("a", 0, inCall(time.Hour), hold)), strategy.Tick{}, nil},
		{"waits for others, and what it owns is silent", of3(idle("a", 0, inCall(time.Hour), hold, beat(6*s))), strategy.Tick{}, []string{"stop a hung"}},
		{"both: it cannot be stopped", of3(idle("a", 0, inCall(6*s), beat(6*s))), strategy.Tick{}, []string{"abandon a hung"}},
		{"starts", of3(child("a", messages.ChildStarting, 0, beat(time.Hour), inCall(time.Hour))), strategy.Tick{}, nil},
		{"ends", of3(child("a", messages.ChildStopping, 0, beat(time.Hour), inCall(time.Hour))), strategy.Tick{}, nil},
		{"only ticks count", of3(idle("a", 0, beat(time.Hour))), failOf("a"), nil},
		{"each is looked at", of3(child("a", messages.ChildStarting, 0), idle("b", time.Hour), idle("c", 0, inCall(6*s)), idle("d", 0, inCall(6*s)), idle("e", 0, beat(6*s))), strategy.Tick{}, []string{"abandon c hung", "abandon d hung", "stop e hung"}},

		{"never asked again in peace", of3(idle("a", 0, beat(480*s+1))), resumed(s), []string{"stop a hung"}},
		{"we stood still for all of it", of3(idle("a", 0, beat(time.Hour), lost(time.Hour, 0, 0, 0))), resumed(0), nil},
		{"we stand still, and it is in a call", of3(idle("a", 0, inCall(time.Hour), lost(0, time.Hour, 0, 0))), resumed(0), nil},
		{"short stalls are taken off", of3(idle("a", 0, beat(8*s), lost(3*s, 0, 0, 0))), strategy.Tick{}, nil},
		{"and no more than that", of3(idle("a", 0, beat(8*s+1), lost(3*s, 0, 0, 0))), strategy.Tick{}, []string{"stop a hung"}},
		{"not asked again", of3(idle("a", 0, beat(480*s))), resumed(3 * s), nil},
		{"asked again", of3(idle("a", 0, beat(time.Hour))), resumed(3*s + 1), []string{"stop a hung"}},
		{"asked again, and we stood still", of3(idle("a", 0, beat(480*s))), strategy.Tick{Resumed: noon.Add(-4 * s), Stalled: s}, nil},
		{"asked again, and it waited", of3(idle("a", 0, beat(200*s), lost(0, 0, s, s))), resumed(4 * s), nil},
		{"it waited before", of3(idle("a", 0, beat(200*s), lost(0, 0, s, 0))), resumed(4 * s), []string{"stop a hung"}},
		{"a stall before the silence", of3(idle("a", 0, beat(6*s))), resumed(6 * s), []string{"stop a hung"}},
		{"in a call, and we came back just now", of3(idle("a", 0, inCall(480*s))), resumed(s), nil},
		{"in a call since before, and again for long", of3(idle("a", 0, inCall(200*s))), resumed(4 * s), []string{"abandon a hung"}},
		{"it waited for a processor", of3(idle("a", 0, beat(200*s), lost(0, 0, 195*s, 0))), strategy.Tick{}, nil},
		{"it did, and had its chance", of3(idle("a", 0, beat(200*s), lost(0, 0, 195*s-1, 0))), strategy.Tick{}, []string{"stop a hung"}},
		{"what it waited does not excuse our own call", of3(idle("a", 0, inCall(6*s), lost(0, 0, 6*s, 6*s))), strategy.Tick{}, []string{"abandon a hung"}},
		{"it waits for ever", of3(idle("a", 0, beat(240*s), lost(0, 0, 240*s, 0))), strategy.Tick{}, nil},
		{"the ceiling", of3(idle("a", 0, beat(240*s+1), lost(0, 0, 240*s, 0))), strategy.Tick{}, []string{"stop a hung"}},
		{"no ceiling for us", of3(idle("a", 0, beat(time.Hour), lost(time.Hour-240*s, 0, time.Hour, 0))), strategy.Tick{}, nil},
	})
	decide(t, strategy.Heartbeat(0), []decision{
		{"switched off", of3(idle("a", 0, beat(time.Hour))), strategy.Tick{}, nil},
	})
	decide(t, strategy.HeartbeatWithin(strategy.HeartbeatOptions{Every: 2 * s, Ceiling: s}), []decision{
		{"a ceiling too low", of3(idle("a", 0, beat(5*s), lost(0, 0, 5*s, 0))), strategy.Tick{}, nil},
		{"is the patience", of3(idle("a", 0, beat(5*s+1), lost(0, 0, 5*s, 0))), strategy.Tick{}, []string{"stop a hung"}},
	})
}

// All combinations of how long a child is silent, how long this process stood still,
// how long the child waited, and when this process came back: what must be true of
// each verdict, whatever the numbers are.
func TestHeartbeatInAllCombinations(t *testing.T) {
	t.Parallel()
	const every, ceiling = 2 * time.Second, time.Minute
	hb := strategy.HeartbeatWithin(strategy.HeartbeatOptions{Every: every, Ceiling: ceiling})
	times := []time.Duration{0, time.Millisecond, time.Second, 2 * time.Second, 3*time.Second + 1, 5 * time.Second, 5*time.Second + 1, 10 * time.Second, time.Minute, time.Minute + 1, time.Hour}
	verdicts := map[bool]int{}
	for _, silent := range times {
		for _, stalled := range times {
			for _, waited := range times {
				for _, back := range times {
					for _, after := range times {
						if stalled+waited > silent || after > waited || after > back {
							continue // that cannot be
						}
						c := idle("a", 0, beat(silent), func(c *strategy.ChildView) { c.Stalled, c.Waited, c.WaitedAfter = stalled, waited, after })
						got := hb.Decide(of3(c), strategy.Tick{Resumed: noon.Add(-back)})
						heard, chance := silent-stalled, silent-stalled-waited
						asked, listened := chance, heard
						if back < silent {
							asked, listened = back-after, back
						}
						want := chance > every*5/2 && asked > every*3/2 || heard > ceiling && listened > every*3/2 || heard > 2*ceiling
						require.Equal(t, want, len(got) == 1, "silent %v, stalled %v, waited %v (%v after), back %v ago", silent, stalled, waited, after, back)
						verdicts[want]++
					}
				}
			}
		}
	}
	require.Greater(t, verdicts[true], 50)
	require.Greater(t, verdicts[false], 500)
}

func TestHeartbeatTellsWhatBecameOfTheTime(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]strategy.ChildView{
		"hung: no sign of life for 6s": idle("a", 0, beat(6*time.Second)),
		"hung: no sign of life for 4m6s, of which this program stood still for 3m0s and it waited 1m0s for a processor": idle("a", 0, beat(246*time.Second),
			func(c *strategy.ChildView) { c.Stalled, c.Waited = 3*time.Minute, time.Minute }),
		"hung: no sign of life for 6.2s, of which this program stood still for 100ms and it waited 100ms for a processor": idle("a", 0, beat(6200*time.Millisecond),
			func(c *strategy.ChildView) { c.Stalled, c.Waited = 100*time.Millisecond, 100*time.Millisecond }),
		"hung: no sign of life for 6.1s": idle("a", 0, beat(6100*time.Millisecond),
			func(c *strategy.ChildView) { c.Stalled, c.Waited = 99*time.Millisecond, 99*time.Millisecond }),
		"hung: one call did not return for 9s, of which this program stood still for 2s": idle("a", 0, inCall(9*time.Second), func(c *strategy.ChildView) { c.StalledInCall = 2 * time.Second }),
	} {
		got := strategy.Heartbeat(2*time.Second).Decide(of3(c), strategy.Tick{})
		require.Len(t, got, 1, want)
		require.Equal(t, want, fmt.Sprint(got[0].Exit))
	}
}
