package coppice

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/coppice-run/coppice/actors/checkup"
	"github.com/coppice-run/coppice/actors/kernel/jupyter"
	"github.com/coppice-run/coppice/actors/python"
)

// python looks for an interpreter and its packages, as a host would.
func (x *examination) python() {
	o := x.o
	env, err := Environment(x.ctx, o, x.cwd)
	if err != nil {
		return // options were resolved before; ctx has ended
	}
	x.env = env
	for _, s := range env.Steps {
		if s.Outcome == "broken" {
			state := FindingWarning
			if env.Python == nil {
				state = FindingFailed
			}
			x.find(checkPython, state, mendStep(s), "%s (%s) %s; it is passed over", s.Name, s.Path, s.Why)
		}
	}
	if env.Python == nil {
		x.find(checkPython, FindingFailed, "install Python from your system's packages or python.org, or name one with --python", "%s", env.Problem)
		x.skip(checkPackages, "there is no interpreter to ask")
		return
	}
	x.ok(checkPython, "%s (Python %s, found by %s)", env.Python.Path, env.Python.Version, env.Python.Source)
	x.packages()
}

// mendStep is what mends an interpreter that was passed over.
func mendStep(s python.Step) string {
	switch {
	case s.Name == "managed":
		return "coppice setup"
	case s.Name == "--python":
		return "name another interpreter with --python, or none"
	case s.Name == "VIRTUAL_ENV" && s.Why == "no such directory":
		return "unset VIRTUAL_ENV"
	case s.Name == "CONDA_PREFIX":
		return "conda deactivate"
	case s.Name == "python" || s.Name == "python3":
		return "take it out of PATH, or install it again"
	default:
		return "python3 -m venv --clear " + quoteShell(venvOfStep(s.Path))
	}
}

// venvOfStep is the environment that a step's path is in: some steps name its
// interpreter.
func venvOfStep(path string) string {
	for _, end := range []string{"/bin/python", `\Scripts\python.exe`} {
		if venv, ok := strings.CutSuffix(path, end); ok {
			return venv
		}
	}
	return path
}

// packages looks at those that a Kernel Gateway needs.
func (x *examination) packages() {
	if x.r.GatewayURL != "" {
		x.skip(checkPackages, "an external gateway is set: none are needed here")
		return
	}
	pip := quoteShell(x.env.Python.Path) + " -m pip install"
	missing := python.Missing(x.env.Packages)
	var have, old []string
	for _, p := range x.env.Packages {
		switch pinned := python.Pinned(p.Dist); {
		case !p.Found: // missing, or another stands in for it
		case p.Version == "":
			have = append(have, p.Dist)
		case pinned != "" && python.Older(python.Major(p.Version), python.Major(pinned)):
			old = append(old, p.Dist+" "+p.Version+" (tested: "+pinned+" and later)")
		default:
			have = append(have, p.Dist+" "+p.Version)
		}
	}
	state := FindingWarning // the runner backend needs none of them
	if x.r.Backend == BackendGateway || x.r.KernelName != "" {
		state = FindingFailed
	}
	if len(missing) > 0 {
		x.find(checkPackages, state, "coppice setup, or: "+pip+" jupyter_kernel_gateway ipykernel", "%s lacks %s", x.env.Python.Path, strings.Join(missing, ", "))
	}
	if len(old) > 0 {
		x.find(checkPackages, FindingWarning, pip+" --upgrade jupyter_kernel_gateway ipykernel", "older than what is tested: %s", strings.Join(old, ", "))
	}
	if len(missing)+len(old) == 0 {
		x.ok(checkPackages, "%s", strings.Join(have, ", "))
	}
}

// managed looks at the environment that coppice setup makes.
func (x *examination) managed() {
	s, err := python.Check(x.ctx, python.SetupOptions{Home: x.r.dir, Env: x.r.Env})
	switch {
	case err != nil:
		x.find(checkManaged, FindingFailed, "coppice setup", "%v", err)
	case s.State == python.EnvReady:
		x.ok(checkManaged, "%s is ready (Python %s)", s.Dir, s.Version)
	case s.State == "absent":
		x.skip(checkManaged, "it was not set up; coppice setup makes one")
	case s.State == "foreign":
		x.find(checkManaged, FindingWarning, "move "+quoteShell(s.Dir)+" away, then coppice setup", "%s: %s", s.Dir, s.Why)
	default:
		x.find(checkManaged, FindingWarning, "coppice setup", "%s is %s: %s", s.Dir, s.State, s.Why)
	}
}

// backend says which backend a host would take.
func (x *examination) backend() {
	if x.env.Backend == "" {
		x.find(checkBackend, FindingFailed, "", "none can be used: %s", x.env.BackendWhy)
		return
	}
	x.ok(checkBackend, "%s, since %s", x.env.Backend, x.env.BackendWhy)
}

// external asks the servers of somebody else that are set.
func (x *examination) external() {
	if x.r.GatewayURL == "" {
		if !slices.ContainsFunc(x.found, func(f Finding) bool { return f.Check == checkExternal }) {
			x.skip(checkExternal, "none is set")
		}
		return
	}
	for _, e := range x.r.externals() {
		how, err := jupyter.Ask(x.ctx, e.URL, e.Token)
		mend := ""
		switch how {
		case jupyter.ExternalOK:
			x.ok(checkExternal, "a Jupyter server answers and takes the token")
			continue
		case jupyter.ExternalURL:
			mend = "export PI_PYTHON_GATEWAY_URL=http://127.0.0.1:8888"
		case jupyter.ExternalToken:
			mend = "export PI_PYTHON_GATEWAY_TOKEN=<the server's token>"
		case jupyter.ExternalTimeout:
			mend = "look whether the server is well and the network lets you through, or unset PI_PYTHON_GATEWAY_URL"
		case jupyter.ExternalUnreachable:
			mend = "start the server or mend PI_PYTHON_GATEWAY_URL, or unset it"
		case jupyter.ExternalAnswer:
			mend = "let PI_PYTHON_GATEWAY_URL name a Jupyter server, with its base path"
		}
		x.find(checkExternal, FindingFailed, mend, "%v", err)
	}
}

// shared looks at the gateways that hosts of this user share.
func (x *examination) shared() {
	all, err := Gateways(x.ctx, x.o)
	if err != nil {
		x.find(checkShared, FindingFailed, "chmod u+rw "+quoteShell(x.sharedDir()+"/gateway.json"), "%v", err)
		return
	}
	alive := 0
	for _, g := range all {
		switch g.State {
		case GatewayRunning:
			alive++
			x.ok(checkShared, "gateway %d at %s (shard %d) answers; %s, %s of %d, %s", g.PID, g.URL, g.Shard, count(g.Hosts, "host"), count(max(g.Kernels, 0), "kernel"), g.MaxKernels, count(g.Sessions, "kept session"))
		case "silent":
			alive++
			x.find(checkShared, FindingFailed, "coppice gateway stop (its sessions are lost)", "gateway %d at %s (shard %d) lives and does not answer: %s", g.PID, g.URL, g.Shard, g.Why)
		}
	}
	if alive == 0 {
		x.ok(checkShared, "none runs")
	}
}

// lock looks at the lock of those gateways.
func (x *examination) lock() {
	h, state := checkup.Locked(x.sharedDir())
	switch state {
	case checkup.LockStuck:
		x.find(checkLock, FindingFailed, "kill -9 "+itoa(h.PID), "process %d holds %s/gateway.lock and has not said so since %s: it is stuck (%s)",
			h.PID, x.sharedDir(), h.Beat.Format("15:04:05"), h.Doing)
	case checkup.LockHeld:
		x.ok(checkLock, "process %d holds it just now (%s)", h.PID, h.Doing)
	default:
		x.ok(checkLock, "it is free")
	}
}

// leftovers looks for what hosts that were killed left, and ends it when that was
// asked for.
func (x *examination) leftovers() {
	if !x.d.Fix {
		found, err := checkup.Leftovers(x.sharedDir())
		if err != nil {
			x.find(checkLeftovers, FindingFailed, "", "%v", err)
		}
		for _, l := range found {
			state := FindingWarning
			if l.PID != 0 {
				state = FindingFailed
			}
			x.find(checkLeftovers, state, "coppice doctor --fix", "%s", l.What)
		}
		groups := checkup.LeftGroups()
		for _, dir := range groups {
			x.find(checkLeftovers, FindingWarning, "coppice doctor --fix", "the control group %s of a host that was killed", dir)
		}
		if len(found)+len(groups) == 0 && err == nil {
			x.ok(checkLeftovers, "nothing was left behind")
		}
		return
	}
	ctx, cancel := context.WithTimeout(x.ctx, cleanWait)
	defer cancel()
	gone, err := checkup.Clean(ctx, x.sharedDir())
	for _, l := range gone {
		x.find(checkLeftovers, FindingFixed, "", "%s: gone", l.What)
	}
	groups, failed := checkup.CleanGroups(ctx)
	for _, dir := range groups {
		x.find(checkLeftovers, FindingFixed, "", "the control group %s of a host that was killed: gone", dir)
	}
	if failed != nil {
		x.find(checkLeftovers, FindingFailed, "", "%v", failed)
	}
	locked, held := errors.AsType[*checkup.LockedError](err)
	switch {
	case held && locked.PID != 0:
		x.find(checkLeftovers, FindingFailed, "end process "+itoa(locked.PID)+", then coppice doctor --fix", "%v", err)
	case err != nil:
		x.find(checkLeftovers, FindingFailed, "", "%v", err)
	case len(gone)+len(groups) == 0 && failed == nil:
		x.ok(checkLeftovers, "nothing was left behind")
	}
}

// modules reads those of the user and of the project.
func (x *examination) modules() {
	if x.env.Python == nil {
		x.skip(checkModules, "there is no interpreter to read them")
		return
	}
	functions, modules, err := describeModules(x.ctx, x.r, x.cwd)
	if err != nil {
		x.find(checkModules, FindingWarning, "", "%v", err)
		return
	}
	bad := false
	for _, m := range modules {
		if m.Problem != "" {
			bad = true
			x.find(checkModules, FindingWarning, "mend or remove "+quoteShell(m.Path), "%s is not loaded: %s", m.Path, m.Problem)
		}
	}
	if !bad {
		x.ok(checkModules, "%s with %s", count(len(modules), "module"), count(len(functions), "function"))
	}
}
