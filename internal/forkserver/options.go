package forkserver

import (
	"errors"
	"fmt"
	"strings"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/sandbox"
)

// Errors that callers decide by.
var (
	// ErrUnsupported: this system cannot hand descriptors to a child.
	ErrUnsupported error = unsupportedError{}
	// ErrNoFork: this interpreter has no os.fork; use [Spawn].
	ErrNoFork = errors.New("the interpreter cannot fork")
	// ErrServerGone: the fork server has ended.
	ErrServerGone = errors.New("the fork server has ended")
)

type unsupportedError struct{}

func (unsupportedError) Error() string {
	return "the runner backend does not work on this system yet: it cannot pass descriptors to a child process"
}

// Lasting reports that trying again is of no use.
func (unsupportedError) Lasting() bool { return true }

// Options says which interpreter to run. The zero value of a field is its
// default.
type Options struct {
	// Python is the interpreter, absolute. Required.
	Python string
	// Env is its whole environment, and with a few additions that of its
	// sessions.
	Env []string
	// Preload names modules that the fork server imports for all its sessions,
	// besides those that it needs itself. [Server.Failed] names those
	// that cannot be imported.
	Preload []string
	// Prelude is source that the fork server runs once in the namespace that its
	// sessions begin with. It must leave nothing open and start no threads; when
	// it raises, sessions are as without it.
	Prelude string
	// Code is the folder in which the compiled code of the runner is kept from one start to
	// the next. "", and under Rules that close the host's files: it is compiled each time.
	Code string
	// Rules confine the fork server and all its sessions. The zero value does not.
	Rules sandbox.Rules
	// Owner owns the fork server and its sessions, and all that they start. nil: nothing
	// does.
	Owner *process.Owner
	// Lifeline is what ends the sessions with their host, for sessions that may outlive
	// it: see [Child.Keep]. With an Owner that takes copies of what that hangs on, too
	// ([process.Owner.Outlive]). nil: that of this process, which no other has.
	Lifeline *Lifeline
	// Start bounds the start of the fork server: how long it may have had the chance
	// to become ready. The zero value is that of [opportunity.Starting].
	Start opportunity.Budget
}

func (o Options) withDefaults() Options {
	if o.Start.Opportunity <= 0 {
		o.Start = opportunity.Starting(0, o.Start.Ceiling)
	}
	o.Env = environment(o.Env)
	if o.Rules.Level >= sandbox.Landlock {
		o.Code = "" // which is not theirs to read
	}
	return o
}

// confined makes the process of an interpreter one under the rules. done is called
// when it has been started, or will not be.
func (o Options) confined(p process.Options) (_ process.Options, done func(), err error) {
	c, done, err := o.Rules.Wrap(sandbox.Command{Path: p.Path, Args: p.Args, Files: p.ExtraFiles, Env: p.Env, Bounds: sandbox.Bounds{Files: p.NoFile}})
	if err != nil {
		return p, done, fmt.Errorf("confine the interpreter: %w", err)
	}
	p.Path, p.Args, p.ExtraFiles, p.Owner = c.Path, c.Args, c.Files, o.Owner
	if o.Rules.Inside() {
		p.Env = c.Env
	}
	if o.Rules.Level != sandbox.Off {
		p.Confine, p.Confined = o.Rules.Confine, o.Rules.Name()
	}
	return p, done, nil
}

// environment adds what sessions and the programs that they start should find,
// unless the user has said otherwise.
func environment(env []string) []string {
	defaults := []struct{ name, value string }{
		{"MPLBACKEND", "Agg"},         // there is no screen
		{"PYTHONIOENCODING", "utf-8"}, // scripts that a cell starts print to a pipe
		{"PYTHONUNBUFFERED", "1"},     // and their lines are to come when they are printed
	}
	all := append(make([]string, 0, len(env)+len(defaults)), env...)
	for _, d := range defaults {
		if !has(env, d.name) {
			all = append(all, d.name+"="+d.value)
		}
	}
	return all
}

func has(env []string, name string) bool {
	for _, kv := range env {
		if n, _, ok := strings.Cut(kv, "="); ok && n == name {
			return true
		}
	}
	return false
}

// LostError is the end of a session whose exit status cannot be known.
type LostError struct {
	// PID is its process id, 0 where it had none on this system.
	PID int
	// Copy says that the session was a copy, which has no parent that would learn
	// how it ends; else its fork server had ended before it.
	Copy bool
}

// Error says so.
func (e *LostError) Error() string {
	if e.PID == 0 {
		return "the session's process is gone with the sandbox that it was in"
	}
	if e.Copy {
		return fmt.Sprintf("process %d is gone; its exit status is not known, because it was a copy of another", e.PID)
	}
	return fmt.Sprintf("process %d is gone; its exit status is not known, because its fork server had ended before it", e.PID)
}
