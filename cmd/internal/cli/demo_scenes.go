package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/messages"
)

// sideBySide starts three kernels at once and lets them print at once.
func (d *demo) sideBySide(ctx context.Context) {
	d.title(ctx, "Three sessions start, each with a kernel of its own")
	names := []string{"a", "b", "c"}
	files := []string{"stream_a.py", "stream_b.py", "stream_c.py"}
	titles := []string{"numbers", "chance", "words"}
	started := d.all(names, func(i int) ran {
		return d.play(ctx, names[i], []messages.Cell{{Title: "start", Code: "import os; print('pid', os.getpid())"}}, nil)
	})
	for i, r := range started {
		if r.Outcome != messages.OutcomeOK {
			d.bill.settle(promisedStreams, false, names[i]+" did not start: "+r.why())
			return
		}
	}
	d.tree(ctx)

	d.title(ctx, "They stream side by side")
	results := d.all(names, func(i int) ran {
		return d.play(ctx, names[i], []messages.Cell{demoCell(titles[i], files[i])}, nil)
	})
	lines, firstEnd, lastBegin := 0, time.Time{}, time.Time{}
	for i, r := range results {
		if r.Outcome != messages.OutcomeOK || r.State != messages.StateKept {
			d.bill.settle(promisedStreams, false, names[i]+": "+r.why())
			return
		}
		if r.first.After(lastBegin) {
			lastBegin = r.first
		}
		if firstEnd.IsZero() || r.last.Before(firstEnd) {
			firstEnd = r.last
		}
		lines += len(r.lines)
	}
	inOrder := strings.HasPrefix(results[0].lines[0], "fibonacci  5") && strings.HasPrefix(results[0].lines[5], "fibonacci 30") &&
		strings.HasPrefix(results[1].lines[5], "pi after 120000") && strings.HasPrefix(results[2].lines[7], "back")
	d.bill.settle(promisedStreams, inOrder && lastBegin.Before(firstEnd),
		fmt.Sprintf("%s, at the same time for %s", render.Number(lines, "line"), render.Duration(firstEnd.Sub(lastBegin))))
	d.tree(ctx)
}

// all plays one call for each name at once.
func (d *demo) all(names []string, play func(i int) ran) []ran {
	results := make([]ran, len(names))
	var wg sync.WaitGroup
	for i := range names {
		wg.Go(func() { results[i] = play(i) })
	}
	wg.Wait()
	for i := range results {
		for len(results[i].lines) < 8 { // so that a failed call can be judged
			results[i].lines = append(results[i].lines, "")
		}
	}
	return results
}

// rich shows output that is more than text.
func (d *demo) rich(ctx context.Context) {
	d.title(ctx, "Rich output: a table, a plot as text and as a picture, data")
	r := d.play(ctx, "a", []messages.Cell{demoCell("table and plot", "rich.py")}, nil)
	table := len(r.Cells) == 1 && strings.Contains(r.Cells[0].Output, "sin(x)")
	ok := r.Outcome == messages.OutcomeOK && table && len(r.Images) == 1 && len(r.JSON) == 1
	seen := fmt.Sprintf("%s, %s of data", render.Number(len(r.Images), "picture"), render.Number(len(r.JSON), "piece"))
	if !ok {
		seen = r.why()
	}
	d.bill.settle(promisedRich, ok, seen)
}

// raises shows a cell that raises in the middle of a call.
func (d *demo) raises(ctx context.Context) {
	d.title(ctx, "A cell raises; the next one is not run, the session goes on")
	r := d.play(ctx, "a", []messages.Cell{
		{Title: "before", Code: "answer = 42"},
		{Title: "the mistake", Code: "def share(total, people):\n    return total / people\n\nshare(answer, people=0)"},
		{Title: "after", Code: "answer = 0"},
	}, nil)
	after := d.play(ctx, "a", []messages.Cell{{Title: "what is left", Code: "print(answer, '-', kept)"}}, nil)
	ok := r.Outcome == messages.OutcomeError && len(r.Cells) == 3 && r.Cells[1].Error != nil && r.Cells[1].Error.Name == "ZeroDivisionError" &&
		r.Cells[2].Status == messages.CellPending && after.State == messages.StateKept && after.lines[0] == "42 - set by the first call"
	seen := "ZeroDivisionError in cell 2 of 3, then " + strings.TrimSpace(after.lines[0])
	if !ok {
		seen = r.why() + "; then " + after.why()
	}
	d.bill.settle(promisedRaise, ok, seen)
}

// killed kills the kernel of a session while it works.
func (d *demo) killed(ctx context.Context) {
	d.title(ctx, "The kernel of session b is killed (SIGKILL) while it works")
	from := d.seen()
	before := d.kernels(ctx)["b"]
	var once sync.Once
	var killedAt time.Time
	r := d.play(ctx, "b", []messages.Cell{{Title: "long work", Code: "import time\nprint('working ...')\ntime.sleep(60)"}}, func(string) {
		once.Do(func() {
			d.say(fmt.Sprintf("  kill -9 %d\n", before.PID))
			if p, err := os.FindProcess(before.PID); err == nil && before.PID > 0 {
				killedAt = time.Now()
				_ = p.Kill()
			}
		})
	})
	answered := time.Since(killedAt)
	lost := r.Outcome == messages.OutcomeLost && r.State == messages.StateLost && !killedAt.IsZero()
	seen := "answered after " + render.Duration(answered) + ": " + r.Reason
	if !lost {
		seen = r.why()
	}
	d.bill.settle(promisedLoss, lost && answered < 2*time.Second, seen)

	grown := d.await(ctx, from, func(c messages.ChildChanged) bool {
		return d.is(c, "b") && c.Epoch > before.Epoch && c.To == messages.ChildIdle
	})
	d.tree(ctx)
	next := d.play(ctx, "b", []messages.Cell{{Title: "what is left", Code: "print('total' in globals())"}}, nil)
	now := d.kernels(ctx)["b"]
	ok := grown && next.Outcome == messages.OutcomeOK && next.State == messages.StateFresh && next.lines[0] == "False" &&
		now.PID != before.PID && now.Epoch == before.Epoch+1
	seen = fmt.Sprintf("pid %d became %d, variables are gone, the next call was told: state %s", before.PID, now.PID, next.State)
	if !ok {
		seen = fmt.Sprintf("grown back: %t; then %s", grown, next.why())
	}
	d.bill.settle(promisedGrowth, ok, seen)
}

// evicted opens one session more than the cap allows.
func (d *demo) evicted(ctx context.Context) {
	d.title(ctx, fmt.Sprintf("A fourth session, with a cap of %d: the least recently used one makes room", demoCap))
	from := d.seen()
	r := d.play(ctx, "d", []messages.Cell{{Title: "hello", Code: "print('session d has a kernel')"}}, nil)
	gone := d.await(ctx, from, func(c messages.ChildChanged) bool {
		return d.is(c, "c") && c.To == messages.ChildGone && c.Exit != nil && c.Exit.Kind == messages.ExitEvicted
	})
	d.tree(ctx)
	live := d.kernels(ctx)
	_, still := live["c"]
	d.bill.settle(promisedEviction, gone && !still, pickWord(gone && !still, "session c, idle since the first scene", "session c was not evicted"))
	ok := r.Outcome == messages.OutcomeOK && len(live) <= demoCap
	d.bill.settle(promisedNewcomer, ok, pickWord(ok, render.Number(len(live), "kernel")+" of at most "+fmt.Sprint(demoCap), r.why()))
}

func pickWord(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}
