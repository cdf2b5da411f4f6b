package pyenv

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
)

// probeBudget bounds one run of a candidate. An interpreter answers in 30 ms; one on
// a cold network drive may need seconds, and what each waits for a processor on a
// machine with much to do is not counted. One that never answers is rare.
var probeBudget = opportunity.Budget{Opportunity: time.Minute, Ceiling: 5 * time.Minute}

// minVersion is the oldest Python that is served: the oldest that the packages
// of requirements.txt are locked for.
const minVersion = "3.9"

//go:embed probe.py
var probeScript string

// probed is what an interpreter says of itself.
type probed struct {
	major, minor, micro int
	executable          string // sys.executable
}

func (p probed) version() string { return fmt.Sprintf("%d.%d.%d", p.major, p.minor, p.micro) }

func (p probed) recent() bool { return p.major > 3 || p.major == 3 && p.minor >= 9 }

// probe runs an interpreter once. Its error is a sentence part about the
// candidate: "does not run: exited with code 127".
func probe(ctx context.Context, python string, env environ, dir string) (probed, error) {
	out, err := run(ctx, command{python: python, args: []string{"-c", probeScript}, env: env, dir: dir})
	if err != nil {
		return probed{}, err
	}
	p, ok := parseProbe(out)
	if !ok {
		return probed{}, errors.New("runs, but does not answer like Python")
	}
	return p, nil
}

// parseProbe finds the answer of probe.py between whatever else start-up files
// of the interpreter print.
func parseProbe(out string) (probed, bool) {
	for l := range strings.Lines(out) {
		f := strings.SplitN(strings.TrimRight(l, "\r\n"), " ", 5)
		if len(f) != 5 || f[0] != "coppice-python" {
			continue
		}
		var p probed
		for i, n := range []*int{&p.major, &p.minor, &p.micro} {
			v, err := strconv.Atoi(f[i+1])
			if err != nil || v < 0 {
				return probed{}, false
			}
			*n = v
		}
		p.executable = f[4]
		return p, true
	}
	return probed{}, false
}

// command is one bounded run of an interpreter.
type command struct {
	python string
	args   []string
	env    environ
	dir    string
}

// Bounds of the runs of one command that are ended from outside.
const (
	mostRuns   = 6
	firstPause = 20 * time.Millisecond // it doubles
)

// run runs an interpreter to its end and returns what it printed to stdout, at
// most the last 64 KiB. One that is ended from outside has said nothing about
// itself: it is run again, a few times.
func run(ctx context.Context, c command) (out string, err error) {
	pause := firstPause
	for n := 1; ; n++ {
		out, err = runOnce(ctx, c)
		if !endedFromOutside(err) {
			return out, err
		}
		if n == mostRuns {
			return out, &passingError{fmt.Errorf("%w, %d times in a row", err, n)}
		}
		select {
		case <-time.After(pause):
			pause *= 2
		case <-ctx.Done():
			return out, &passingError{err}
		}
	}
}

// passingError is a failure that says nothing about the interpreter.
type passingError struct{ error }

// Unwrap returns what was observed.
func (e *passingError) Unwrap() error { return e.error }

// endedFromOutside says that a run was ended by a signal of those by which people
// and programs end others. Signals of the system for what a program has done itself,
// as SIGSEGV and SIGILL, do not count: they do say something about it. A shim
// that is a shell script exits with 128 and the number of the signal.
func endedFromOutside(err error) bool {
	exit, ok := errors.AsType[*process.ExitError](err)
	if !ok {
		return false
	}
	const ofShells = 128
	number := exit.Signal
	if number == 0 {
		number = exit.Code - ofShells
	}
	switch syscall.Signal(number) {
	case syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL, syscall.SIGTERM:
		return true
	}
	return false
}

// runOnce is one run of an interpreter.
func runOnce(ctx context.Context, c command) (string, error) {
	stdout, stderr := process.NewRing(process.RingOptions{}), process.NewRing(process.RingOptions{})
	p, err := process.Start(process.Options{
		Path: c.python, Args: c.args, Dir: c.dir, Stdout: stdout, Stderr: stderr,
		Env: c.env.with("PYTHONIOENCODING", "utf-8:surrogateescape"),
	})
	if err != nil {
		if cause, ok := errors.AsType[*fs.PathError](err); ok {
			err = cause.Err
		}
		return "", fmt.Errorf("does not run: %w", err)
	}
	bound, done := opportunity.Within(ctx, probeBudget, opportunity.Tree(p.Identity())) // a shim runs another
	defer done()
	select {
	case <-p.Done():
	case <-bound.Done():
		_ = p.Stop(bound, process.StopOptions{Grace: -1}) // why it had to be stopped is the better news
		return "", &passingError{fmt.Errorf("does not run: %w", context.Cause(bound))}
	}
	if err := p.Err(); err != nil {
		if last := stderr.Tail(1); len(last) > 0 {
			return "", fmt.Errorf("does not run: %w, saying %q", err, withoutCode(last[0], c.args))
		}
		return "", fmt.Errorf("does not run: %w", err)
	}
	return stdout.String(), nil
}

// withoutCode is what a program that is no Python said of its arguments, cut off before the code
// among them: ls has no such file, and quotes the whole script.
func withoutCode(said string, args []string) string {
	for _, arg := range args {
		first, _, _ := strings.Cut(arg, "\n")
		if before, _, quoted := strings.Cut(said, first); quoted && len(first) > 20 {
			return before + "…"
		}
	}
	return said
}
