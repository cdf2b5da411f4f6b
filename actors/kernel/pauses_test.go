package kernel_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/messages"
)

// part is a stretch of a call: for how long it runs, and for how much of that,
// from its beginning, its active time stands still.
type part struct {
	Code        string
	Wall, Pause time.Duration
}

const tick = 10 * time.Millisecond

// drawPart draws a statement. Times are whole ticks; limits and the moments of
// cancellation lie between, so that no two things happen at once.
var drawPart = rapid.Custom(func(t *rapid.T) part {
	d := func(name string) time.Duration { return time.Duration(rapid.IntRange(1, 60).Draw(t, name)) * tick }
	a, b := d("a"), d("b")
	switch rapid.SampledFrom([]string{"sleep", "ask", "neglect", "wait", "work", "both waits", "wait and work", "print"}).Draw(t, "kind") {
	case "sleep":
		return part{"sleep " + a.String(), a, 0}
	case "ask":
		return part{"ask " + a.String(), a, a}
	case "neglect":
		return part{"try ask never", time.Second, time.Second}
	case "wait":
		return part{"call wait " + a.String(), a, a}
	case "work":
		return part{"call work " + a.String(), a, 0}
	case "both waits":
		return part{fmt.Sprintf("both wait %v,wait %v", a, b), max(a, b), max(a, b)}
	case "wait and work":
		return part{fmt.Sprintf("both wait %v,work %v", a, b), max(a, b), a}
	default:
		return part{"print x", 0, 0}
	}
})

// after returns what becomes of parts whose active time is limited, and when.
func after(parts []part, limit, cancelled time.Duration) (messages.Outcome, time.Duration) {
	var wall, active time.Duration
	outcome, end := ok, time.Duration(-1)
	for _, p := range parts {
		if work := p.Wall - p.Pause; active+work > limit && end < 0 {
			outcome, end = timeout, wall+p.Pause+limit-active
		} else {
			active += work
		}
		wall += p.Wall
	}
	if end < 0 {
		end = wall
	}
	if cancelled < end {
		return messages.OutcomeCancelled, cancelled
	}
	return outcome, end
}

// TestActiveTimeIsWhatIsNotWaitedFor compares calls that sleep, ask and call
// their host with what the sum of their parts says, to the millisecond.
func TestActiveTimeIsWhatIsNotWaitedFor(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cells := rapid.SliceOfN(rapid.SliceOfN(drawPart, 1, 6), 1, 3).Draw(rt, "cells")
		limit := time.Duration(rapid.IntRange(1, 300).Draw(rt, "limit"))*tick + tick/2
		cancelled := time.Duration(rapid.IntRange(1, 2000).Draw(rt, "cancelled"))*tick + tick/3
		var all []part
		var code []string
		for _, parts := range cells {
			var list []string
			for _, p := range parts {
				list = append(list, p.Code)
			}
			code = append(code, strings.Join(list, "; "))
			all = append(all, parts...)
		}
		want, when := after(all, limit, cancelled)
		wrong := ""
		inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
			tr.up()
			calls, begin := &fakeHostCalls{}, time.Now()
			exec := messages.Execute{ID: "a", Key: messages.SessionKey{Session: "s", Cwd: "/w"}, Out: &fakeOutlet{}, HostCalls: calls, AllowStdin: true, InputTimeout: time.Second}
			for _, c := range code {
				exec.Cells = append(exec.Cells, messages.Cell{Code: c})
			}
			reply := tr.begins(exec)
			interrupt := func(m messages.Interrupt) func() { m.Exec = "a"; return func() { tr.ref().Tell(m) } }
			defer time.AfterFunc(limit, interrupt(messages.Interrupt{Cause: messages.CauseTimeout, Active: true})).Stop()
			defer time.AfterFunc(cancelled, interrupt(messages.Interrupt{Cause: messages.CauseCancelled})).Stop()
			r := tr.wait(reply)
			took := time.Since(begin)
			switch next := tr.run("count"); {
			case r.Outcome != want || took != when:
				wrong = fmt.Sprintf("%s after %v, not %s after %v", r.Outcome, took, want, when)
			case next.State != messages.StateKept || next.Cells[0].Output != "2":
				wrong = fmt.Sprintf("the session did not go on: %+v", next)
			case calls.waits() != 0:
				wrong = fmt.Sprintf("%d questions and calls are open", calls.waits())
			}
		})
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}
