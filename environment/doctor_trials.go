package environment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-run/coppice/internal/file/temp"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/sandbox"
)

// Bounds of the cells of Doctor.
const (
	// trialTime bounds one cell, with the start of its kernel.
	trialTime = 90 * time.Second
	// escapeTime bounds the attempts to escape.
	escapeTime = 30 * time.Second
	// trialCeilings is how often these fit into the time that the host is given for the
	// cell: what this program stands still meanwhile is not counted.
	trialCeilings = 5
)

// run runs a cell in a host, for so long in which this program did not stand still.
func (x *examination) run(s Settings, c Cell, limit time.Duration) (Tried, error) {
	b := opportunity.Budget{Opportunity: limit, Ceiling: trialCeilings * limit}
	ctx, done := opportunity.Within(x.ctx, b, nil)
	defer done()
	c.Timeout = b.Ceiling
	tried, err := x.d.Trial.Run(ctx, s, c)
	if spent, ok := errors.AsType[*opportunity.SpentError](context.Cause(ctx)); ok && x.ctx.Err() == nil && !tried.OK {
		tried.Err = fmt.Errorf("it gave %w", spent)
	}
	return tried, err
}

// warm says how many kernels wait for new sessions.
func (x *examination) warm() {
	if x.d.Trial == nil {
		x.skip(checkWarm, "left out")
		return
	}
	x.ok(checkWarm, "%s", x.plan.Warm)
}

// leftOut says that no host is started.
func (x *examination) leftOut() bool { return x.d.Quick || x.d.Trial == nil }

// runner runs a cell on the runner backend, and asks whether it is forked.
func (x *examination) runner() {
	switch {
	case x.env.Python == nil:
		x.skip(checkRunner, "there is no interpreter")
		return
	case x.leftOut():
		x.skip(checkRunner, "left out")
		return
	}
	tried, ok := x.trial(checkRunner, backendRunner)
	switch {
	case !ok || x.ctx.Err() != nil:
	case tried.ForksErr != nil:
		x.find(checkFork, FindingFailed, "", "%v", tried.ForksErr)
	case !tried.Forks:
		x.find(checkFork, FindingWarning, "take another interpreter with --python, one that has os.fork",
			"sessions are not forked, and take 50 ms to start in place of 2: %s", tried.NoFork)
	default:
		x.ok(checkFork, "sessions are forked from a warm interpreter")
	}
	x.left(checkRunner, tried)
}

// gateway runs a cell on a gateway: the one that is set, or one of its own.
func (x *examination) gateway() {
	switch {
	case x.leftOut():
		x.skip(checkGateway, "left out")
	case x.d.GatewayURL == "" && (x.env.Python == nil || x.env.Problem != ""):
		x.skip(checkGateway, "it cannot be started: see %s and %s", checkPython, checkPackages)
	default:
		tried, _ := x.trial(checkGateway, backendGateway)
		x.left(checkGateway, tried)
	}
}

// trial starts a host and runs a cell. It returns false when there was no host.
func (x *examination) trial(check, backend string) (Tried, bool) {
	s := x.d.Settings
	s.Backend = backend
	if backend != backendGateway {
		s.KernelName = ""
	}
	tried, err := x.run(s, Cell{Session: "doctor", Cwd: x.cwd, Code: "6 * 7"}, trialTime)
	switch {
	case x.ctx.Err() != nil:
	case err != nil:
		x.find(check, FindingFailed, "", "%v", err)
	case tried.Err != nil:
		x.find(check, FindingFailed, "", "a cell could not be run: %v", tried.Err)
	case !tried.OK:
		mend := ""
		if backend == backendGateway && s.GatewayURL == "" {
			mend = "coppice setup"
		}
		x.find(check, FindingFailed, mend, "a cell did not run: %s", firstLine(tried.Text))
	default:
		x.ok(check, "a cell ran, %d ms from nothing", tried.Took.Milliseconds())
	}
	return tried, err == nil
}

// left reports what did not end with the host of a trial.
func (x *examination) left(check string, tried Tried) {
	for _, l := range tried.Left {
		x.find(check, FindingFailed, "coppice doctor --fix", "%s did not end: %s", l.Path, l.Reason)
	}
}

// isolation takes the strongest rung that the system has and lets code try to get
// out of it.
func (x *examination) isolation() {
	switch {
	case x.env.Python == nil:
		x.skip(checkIsolation, "there is no interpreter")
		return
	case x.leftOut():
		x.skip(checkIsolation, "left out")
		return
	}
	x.escapes(checkIsolation, backendRunner)
	if why := LacksRung(sandbox.GVisor.String()); why != nil && x.ctx.Err() == nil {
		x.ok(checkIsolation, "the rung %s, a kernel of its own for each workspace, is not here: %v", sandbox.GVisor, why)
	}
}

// kernels does the same to a kernel of a gateway.
func (x *examination) kernels() {
	switch {
	case x.leftOut():
		x.skip(checkKernels, "left out")
	case x.d.GatewayURL != "":
		x.skip(checkKernels, "kernels of a server that somebody else runs are not isolated")
	case x.env.Python == nil || x.env.Problem != "":
		x.skip(checkKernels, "there is no gateway: see %s and %s", checkPython, checkPackages)
	default:
		x.escapes(checkKernels, backendGateway)
	}
}

// escapes lets code of a backend try to get out of the strongest rung that it has.
func (x *examination) escapes(check, backend string) {
	cage, err := temp.Make("doctor")
	if err != nil {
		x.find(check, FindingFailed, "", "%v", err)
		return
	}
	defer func() { _ = os.RemoveAll(cage) }() // nothing of worth is in it
	s := Settings{
		Brand: x.d.Brand, Home: x.d.Home, Env: x.d.Env, Python: x.d.Python, Backend: backend,
		Cage: &Cage{Write: []string{cage}, Read: []string{filepath.Dir(x.env.Python.Path)}},
	}
	var tried Tried
	var noHost error
	escapes, err := TryToEscape(x.ctx, x.home.Dir(), func(_ context.Context, code string) (Escaped, error) { // x.ctx bounds it
		tried, noHost = x.run(s, Cell{Session: "escape", Cwd: cage, Code: code}, escapeTime)
		switch {
		case noHost != nil:
			return Escaped{}, noHost
		case tried.Err != nil:
			return Escaped{}, tried.Err
		case !tried.OK || tried.JSON == nil:
			return Escaped{}, errors.New("the code did not run: " + tried.Text)
		}
		return Escaped{JSON: tried.JSON, Level: tried.Level}, nil
	})
	switch {
	case x.ctx.Err() != nil:
	case noHost != nil:
		x.find(check, FindingFailed, "", "%v", noHost)
	case err != nil:
		x.find(check, FindingFailed, "", "the rung %s cannot be used: %v", tried.Level, err)
	default:
		x.found = append(x.found, escapeFinding(check, tried.Level, escapes))
	}
	x.left(check, tried)
}

// escapeFinding judges what came of the attempts.
func escapeFinding(check, level string, escapes []Escape) Finding {
	promised, out, open := 0, []string{}, []string{}
	for _, e := range escapes {
		if !e.Prevented && !e.Promised && !e.Own {
			open = append(open, e.Attempt)
		}
		if e.Promised {
			promised++
			if !e.Prevented {
				out = append(out, e.Attempt+" ("+e.Detail+")")
			}
		}
	}
	f := Finding{Check: check, State: FindingOK, Detail: fmt.Sprintf(
		"the strongest rung here is %s: %d of %d attempts to escape were prevented, as promised; it is used where it is asked for", level, promised, len(escapes))}
	switch {
	case len(out) > 0:
		f.State, f.Detail = FindingFailed, fmt.Sprintf("the rung %s does not hold: code could %s", level, strings.Join(out, "; "))
		f.Mend = "do not run code that you do not trust on this system"
	case len(open) > 0 && !loose(level):
		f.Detail += "; it leaves open: " + strings.Join(open, ", ")
	case loose(level):
		f.State = FindingWarning
		f.Detail = fmt.Sprintf("the strongest rung here is %s: sessions can read and change all that you can", level)
		f.Mend = "use Linux 5.13 or newer with Landlock, or install bubblewrap (bwrap)"
	}
	return f
}

// firstLine is a text up to its first line break.
func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
