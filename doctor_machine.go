package coppice

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-run/coppice/actors/checkup"
	"github.com/coppice-run/coppice/actors/kernel/jupyter"
	"github.com/coppice-run/coppice/internal/home"
	"github.com/coppice-run/coppice/internal/machine"
	"github.com/coppice-run/coppice/messages"
)

// Bounds of Doctor.
const (
	// cleanWait bounds the wait for others that change the shared gateways, and
	// the end of what is left.
	cleanWait = 10 * time.Second
	// trialTime bounds one cell, with the start of its kernel.
	trialTime = 90 * time.Second
	// looseMost is how many files that others can read are named.
	looseMost = 5
)

func (x *examination) sharedDir() string { return jupyter.SharedDir(x.r.dir) }

// permissions looks whether others can read what we keep.
func (x *examination) permissions() {
	own := filepath.Join("agent", "modules")
	loose, err := checkup.FindLoose(x.r.dir, []string{"python-env", "python-env.tmp", own}, 0o077, looseMost+1)
	if err != nil {
		x.find(checkPermissions, FindingFailed, "", "%v", err)
		return
	}
	for i, l := range loose {
		if i == looseMost {
			x.find(checkPermissions, FindingFailed, "chmod -R go= "+quoteShell(x.r.dir), "there are more in %s", x.r.dir)
			break
		}
		mend := "chmod go= " + quoteShell(l.Path)
		if strings.HasPrefix(l.Why, "belongs") {
			mend = "chown " + strconv.Itoa(os.Getuid()) + " " + quoteShell(l.Path) + " (as that user or root)"
		}
		x.find(checkPermissions, FindingFailed, mend, "%s %s: there may be tokens and what sessions showed in it", l.Path, l.Why)
	}
	// Modules may be read by others; whoever can change them runs code as this user.
	modules, err := checkup.FindLoose(filepath.Join(x.r.dir, own), nil, 0o022, looseMost)
	if err != nil {
		x.find(checkPermissions, FindingFailed, "", "%v", err)
	}
	for _, l := range modules {
		x.find(checkPermissions, FindingFailed, "chmod go-w "+quoteShell(l.Path), "%s %s: every session runs what is in it", l.Path, l.Why)
	}
	if len(loose)+len(modules) == 0 && err == nil {
		x.ok(checkPermissions, "only you can read what is in %s", x.r.dir)
	}
}

// limits looks at what the machine allows.
func (x *examination) limits() {
	defer x.groups()
	l := checkup.Look(home.TempDir(x.r.Env))
	found := limitFindings(l)
	x.found = append(x.found, found...)
	if len(found) == 0 {
		var have []string
		for _, v := range []struct {
			n    uint64
			text string
		}{
			{l.OpenFiles, fmt.Sprintf("%d open files", l.OpenFiles)},
			{l.PIDs, fmt.Sprintf("%d of %d processes", l.PIDsUsed, l.PIDs)},
			{l.Memory, fmt.Sprintf("%s of %s memory free", machine.Size(l.Available), machine.Size(l.Memory))},
			{l.Temp, machine.Size(l.Temp) + " for temporary files"},
		} {
			if v.n > 0 {
				have = append(have, v.text)
			}
		}
		if have == nil {
			x.skip(checkLimits, "this system does not tell them")
			return
		}
		x.ok(checkLimits, "%s", strings.Join(have, ", "))
	}
}

// groups says how sessions are kept to their limits.
func (x *examination) groups() {
	base, have, lacking, err := checkup.Groups()
	switch {
	case err != nil:
		x.ok(checkLimits, "limits of sessions hold for each of their processes, not for all together: %v", err)
	case lacking != "":
		x.ok(checkLimits, "sessions with limits get control groups in %s (%s); %s", base, strings.Join(have, ", "), lacking)
	default:
		x.ok(checkLimits, "sessions with limits get control groups in %s (%s)", base, strings.Join(have, ", "))
	}
}

// What a session needs at least, and what lets a host work well: a kernel of the
// gateway backend costs its gateway 18 descriptors and takes 53 MiB.
const (
	filesLeast, filesGood   = 512, 4096
	pidsLeast, pidsGood     = 64, 512
	memoryLeast, memoryGood = 128 << 20, 512 << 20
	tempLeast, tempGood     = 64 << 20, 512 << 20
)

// limitFindings are the limits that are too low.
func limitFindings(l checkup.Limits) []Finding {
	var found []Finding
	judge := func(known bool, have, least, good uint64, detail, mend string) {
		state := FindingWarning
		switch {
		case !known || have >= good:
			return
		case have < least:
			state = FindingFailed
		}
		found = append(found, Finding{Check: checkLimits, State: state, Detail: detail, Mend: mend})
	}
	judge(l.OpenFiles > 0, l.OpenFiles, filesLeast, filesGood,
		fmt.Sprintf("a process may have only %d files open: kernels fail with EMFILE", l.OpenFiles),
		"ulimit -n 65536 before the program is started (LimitNOFILE= of a service)")
	judge(l.Processes > 0, l.Processes, pidsLeast, pidsGood,
		fmt.Sprintf("this user may have only %d processes", l.Processes),
		"ulimit -u 4096 before the program is started (LimitNPROC= of a service)")
	judge(l.PIDs > 0, l.PIDs-min(l.PIDs, l.PIDsUsed), pidsLeast, pidsGood,
		fmt.Sprintf("%d of %d processes are there already (%s)", l.PIDsUsed, l.PIDs, l.PIDsFrom),
		"end some, or raise "+l.PIDsFrom)
	judge(l.Memory > 0, l.Available, memoryLeast, memoryGood,
		fmt.Sprintf("only %s of %s memory is free (%s)", machine.Size(l.Available), machine.Size(l.Memory), l.MemoryFrom),
		"end other programs, or lower MaxSessions")
	judge(l.Temp > 0, l.Temp, tempLeast, tempGood,
		fmt.Sprintf("only %s is free for temporary files in %s", machine.Size(l.Temp), l.TempDir),
		"make room there, or export TMPDIR=<another folder>")
	return found
}

// runner runs a cell on the runner backend, and asks whether it is forked.
func (x *examination) runner() {
	switch {
	case x.env.Python == nil:
		x.skip(checkRunner, "there is no interpreter")
		return
	case x.d.Quick:
		x.skip(checkRunner, "left out")
		return
	}
	x.trial(checkRunner, BackendRunner, func(h *Host) {
		forks, why, err := h.Forks(x.ctx)
		switch {
		case err != nil:
			x.find(checkFork, FindingFailed, "", "%v", err)
		case !forks:
			x.find(checkFork, FindingWarning, "take another interpreter with --python, one that has os.fork",
				"sessions are not forked, and take 50 ms to start in place of 2: %s", why)
		default:
			x.ok(checkFork, "sessions are forked from a warm interpreter")
		}
	})
}

// gateway runs a cell on a gateway: the one that is set, or one of its own.
func (x *examination) gateway() {
	switch {
	case x.d.Quick:
		x.skip(checkGateway, "left out")
	case x.r.GatewayURL == "" && (x.env.Python == nil || x.env.Problem != ""):
		x.skip(checkGateway, "it cannot be started: see %s and %s", checkPython, checkPackages)
	default:
		x.trial(checkGateway, BackendGateway, nil)
	}
}

// trial starts a host, runs a cell, and looks at the host with more, if there is
// something to look at.
func (x *examination) trial(check, backend string, more func(*Host)) {
	o := Options{
		Brand: x.o.Brand, Home: x.o.Home, Env: x.o.Env, Python: x.o.Python, Backend: backend,
		GatewayURL: x.o.GatewayURL, GatewayToken: x.o.GatewayToken, StartTimeout: x.o.StartTimeout,
	}
	if backend == BackendGateway {
		o.KernelName = x.o.KernelName
	}
	x.with(check, o, func(h *Host) {
		began := time.Now()
		result, err := h.Session("doctor-"+messages.NewID(), In(x.cwd)).Execute(x.ctx, Request{
			Cells: []messages.Cell{{Code: "6 * 7"}}, Mode: messages.ModePerCall, Timeout: trialTime,
		})
		switch {
		case x.ctx.Err() != nil:
			return
		case err != nil:
			x.find(check, FindingFailed, "", "a cell could not be run: %v", err)
		case result.Outcome != messages.OutcomeOK:
			mend := ""
			if backend == BackendGateway && x.r.GatewayURL == "" {
				mend = "coppice setup"
			}
			x.find(check, FindingFailed, mend, "a cell did not run: %s", firstLine(result.Text))
		default:
			x.ok(check, "a cell ran, %d ms from nothing", time.Since(began).Milliseconds())
		}
		if more != nil && x.ctx.Err() == nil {
			more(h)
		}
	})
}

// with starts a host for do, and ends it.
func (x *examination) with(check string, o Options, do func(*Host)) {
	h, err := Start(x.ctx, o)
	if err != nil {
		if x.ctx.Err() == nil {
			x.find(check, FindingFailed, "", "%v", err)
		}
		return
	}
	do(h)
	report := h.Shutdown(x.ctx)
	for _, l := range report.Leftovers {
		x.find(check, FindingFailed, "coppice doctor --fix", "%s did not end: %s", l.Path, l.Exit.Reason)
	}
}

// isolation takes the strongest rung that the system has and lets code try to get
// out of it.
func (x *examination) isolation() {
	switch {
	case x.env.Python == nil:
		x.skip(checkIsolation, "there is no interpreter")
		return
	case x.d.Quick:
		x.skip(checkIsolation, "left out")
		return
	}
	cage, err := os.MkdirTemp("", "coppice-doctor-")
	if err != nil {
		x.find(checkIsolation, FindingFailed, "", "%v", err)
		return
	}
	defer func() { _ = os.RemoveAll(cage) }() // nothing of worth is in it
	o := Options{
		Brand: x.o.Brand, Home: x.o.Home, Env: x.o.Env, Python: x.o.Python, Backend: BackendRunner,
		Isolation: Isolation{Level: IsolationStrongest, Write: []string{cage}, Read: []string{filepath.Dir(x.env.Python.Path)}},
	}
	x.with(checkIsolation, o, func(h *Host) {
		level, _ := h.Isolation()
		escapes, err := h.TryToEscape(x.ctx)
		switch {
		case x.ctx.Err() != nil:
		case err != nil:
			x.find(checkIsolation, FindingFailed, "", "the rung %s cannot be used: %v", level, err)
		default:
			x.found = append(x.found, escapeFinding(level, escapes))
		}
	})
}

// escapeFinding judges what came of the attempts.
func escapeFinding(level string, escapes []Escape) Finding {
	promised, out := 0, []string{}
	for _, e := range escapes {
		if e.Promised {
			promised++
			if !e.Prevented {
				out = append(out, e.Attempt+" ("+e.Detail+")")
			}
		}
	}
	f := Finding{Check: checkIsolation, State: FindingOK, Detail: fmt.Sprintf(
		"the strongest rung here is %s: %d of %d attempts to escape were prevented, as promised; it is used where it is asked for", level, promised, len(escapes))}
	switch {
	case len(out) > 0:
		f.State, f.Detail = FindingFailed, fmt.Sprintf("the rung %s does not hold: code could %s", level, strings.Join(out, "; "))
		f.Mend = "do not run code that you do not trust on this system"
	case level == IsolationOff || level == IsolationPrivileges:
		f.State = FindingWarning
		f.Detail = fmt.Sprintf("the strongest rung here is %s: sessions can read and change all that you can", level)
		f.Mend = "use Linux 5.13 or newer with Landlock, or install bubblewrap (bwrap)"
	}
	return f
}

func itoa(n int) string { return strconv.Itoa(n) }

// count writes a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// quoteShell writes text as a word of a POSIX shell.
func quoteShell(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:@%,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
