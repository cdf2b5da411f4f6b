package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice/bench/peers"
	"github.com/coppice-run/coppice/bench/record"
	"github.com/coppice-run/coppice/bench/report"
)

// options are those of a run. The embedded Plan decides its steps.
type options struct {
	record.Plan
	out, into, python, extras string
	profile                   string // the folder for profiles, "" for none
	resume                    bool
	command                   string
	// dry lists the steps and how long they take, and runs none.
	dry bool
}

// errSome is returned when something failed and the rest was measured.
var errSome = errors.New("not everything could be measured; the file says what")

// How long a step may take: several times what is expected, since machines differ,
// and then some for what starts and ends it. Past that its context ends, and past
// the grace after it the program does: what ignores its context would hang forever.
const (
	patience = 5
	spare    = 3 * time.Minute
	grace    = 4 * time.Minute
)

// measure runs the plan and writes the file after each step, so that a run that is
// interrupted has what it had and can be resumed.
func (o options) measure(ctx context.Context, stdout, w io.Writer) error {
	if o.python == "" {
		return errors.New("no interpreter: set COPPICE_TEST_PYTHON or -python; `make test-env` makes one")
	}
	root, err := peers.Root(".")
	if err != nil {
		return err
	}
	if !o.dry {
		if err := record.Writable(o.out); err != nil {
			return err
		}
	}
	f, err := o.begin(ctx)
	if err != nil {
		return err
	}
	o.Plan = f.Plan
	steps, err := o.plan(root)
	if err != nil {
		return err
	}
	if o.dry {
		return list(stdout, steps)
	}
	f.LeftOut = o.leftOut()
	for _, line := range f.LeftOut {
		say(w, "%s\n", line)
	}
	steps, before := todo(steps, f.Results), len(steps)
	if skipped := before - len(steps); skipped > 0 {
		say(w, "%d of %d steps were measured before\n", skipped, before)
	}
	if o.Turns {
		steps = nextRound(steps)
	}
	failed := 0
	left := newClock(steps)
	for i, s := range steps {
		if ctx.Err() != nil {
			break
		}
		say(w, "[%d/%d %s] %s ... ", i+1, len(steps), left, s)
		r, err := o.one(ctx, s, peers.Options{Python: o.python, Root: root}, w)
		left.done(s)
		if ctx.Err() != nil {
			say(w, "interrupted\n")
			break // what was cut off is missing, and did not fail
		}
		f.Results = append(f.Results, r)
		if err != nil {
			failed++
			say(w, "failed: %v\n", err)
		} else {
			say(w, "%s %s\n", r.Took.Round(100*time.Millisecond), short(r))
		}
		f.Missing = names(steps[i+1:])
		if err := f.Write(o.out); err != nil {
			return err
		}
	}
	f.Missing = names(todo(steps, f.Results))
	return o.finish(ctx, w, f, failed, len(steps))
}

// begin is the file of a new run, or that of the run to resume.
func (o options) begin(ctx context.Context) (record.File, error) {
	f := record.File{Made: time.Now().UTC(), Commit: record.Commit(), Machine: record.ThisMachine(ctx, o.python), Command: o.command, Plan: o.Plan}
	if !o.resume && !o.Turns {
		return f, nil
	}
	old, err := record.Read(o.out)
	if o.Turns && errors.Is(err, fs.ErrNotExist) {
		return f, nil // the first one
	}
	if err != nil {
		return f, fmt.Errorf("resume: %w", err)
	}
	mine := o.Plan
	mine.Seed = old.Plan.Seed // a seed that is not said is drawn
	if old.Plan != mine {
		return f, fmt.Errorf("resume: %s was made with other flags: %s", o.out, old.Command)
	}
	old.Results = slices.DeleteFunc(old.Results, func(r record.Result) bool { return r.Error != "" })
	if old.Commit != f.Commit {
		old.Commit += " and " + f.Commit
	}
	return old, nil
}

// nextRound are the steps of the round that comes next.
func nextRound(steps []step) []step {
	if len(steps) == 0 {
		return nil
	}
	next := slices.MinFunc(steps, func(a, b step) int { return cmp.Compare(a.round, b.round) }).round
	return slices.DeleteFunc(slices.Clone(steps), func(s step) bool { return s.round != next })
}

// todo are the steps that have no result.
func todo(steps []step, have []record.Result) []step {
	return slices.DeleteFunc(slices.Clone(steps), func(s step) bool {
		return slices.ContainsFunc(have, func(r record.Result) bool { return r.Name() == s.name && r.Round == s.round })
	})
}

// one runs a step, within its time.
func (o options) one(ctx context.Context, s step, p peers.Options, w io.Writer) (record.Result, error) {
	limit := patience*s.expect + spare
	hung := time.AfterFunc(limit+grace, func() {
		panic(fmt.Sprintf("%s does not end, %v after it was told to; resume with -resume", s, grace))
	})
	defer hung.Stop()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %v", limit))
	defer cancel()
	floor, err := peers.Floor(ctx, p)
	if err != nil {
		err = fmt.Errorf("measure the floor: %w", err)
		part := strings.SplitN(s.name, "/", 3)
		n := 0
		_, _ = fmt.Sscan(part[2], &n) // the plan made the name
		return record.Result{Scenario: part[0], Backend: part[1], Sessions: n, Round: s.round, At: time.Now(), Error: err.Error()}, err
	}
	r, err := profiled(ctx, o.profile, s, teller(w))
	r.Round, r.Floor = s.round, floor
	return r, err
}

// tellEvery is how often a long step says how far it is.
const tellEvery = 30 * time.Second

// teller returns a Progress that writes now and then. It may be called from any
// goroutine.
func teller(w io.Writer) func(string) {
	var mu sync.Mutex
	last := time.Now()
	return func(text string) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(last) > tellEvery {
			last = time.Now()
			say(w, "%s ... ", text)
		}
	}
}

// finish writes the file and the report, and says what is missing and what to do.
func (o options) finish(ctx context.Context, w io.Writer, f record.File, failed, all int) error {
	if err := f.Write(o.out); err != nil {
		return err
	}
	cut := len(f.Missing) > 0
	if into := o.into; into != "" {
		if cut { // the report in the tree is of whole runs
			into = strings.TrimSuffix(o.out, filepath.Ext(o.out)) + "-report"
		}
		if err := report.Write(into, f); err != nil {
			return err
		}
		say(w, "the report is %s\n", filepath.Join(into, "README.md"))
	}
	switch {
	case cut:
		say(w, "missing: %s\n", strings.Join(f.Missing, "; "))
		return fmt.Errorf("interrupted, %d of %d steps are missing; %s has what was measured, and the same command with -resume measures the rest: %w", len(f.Missing), all, o.out, context.Cause(ctx))
	case failed > 0:
		return fmt.Errorf("%d of %d steps failed: %w", failed, all, errSome)
	}
	return nil
}

func names(steps []step) []string {
	out := make([]string, len(steps))
	for i, s := range steps {
		out[i] = s.String()
	}
	return out
}

// list writes the steps of a plan and how long they take.
func list(w io.Writer, steps []step) error {
	var all time.Duration
	for _, s := range steps {
		all += s.expect
		if _, err := fmt.Fprintf(w, "%8s  %s\n", s.expect.Round(100*time.Millisecond), s); err != nil {
			return fmt.Errorf("list the steps: %w", err)
		}
	}
	_, err := fmt.Fprintf(w, "%8s  all %d steps\n", all.Round(time.Second), len(steps))
	return err
}

// short tells the first metrics of a result.
func short(r record.Result) string {
	var parts []string
	for _, m := range r.Metrics[:min(4, len(r.Metrics))] {
		parts = append(parts, m.Name+" "+report.Quantity(m.Value, m.Unit))
	}
	return strings.Join(parts, "  ")
}

func say(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w, format, args...) // a terminal that went away changes nothing
}
