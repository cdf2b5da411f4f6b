package environment

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coppice-run/coppice/internal/cgroup"
	"github.com/coppice-run/coppice/internal/file/own"
	"github.com/coppice-run/coppice/internal/file/temp"
	"github.com/coppice-run/coppice/internal/home"
	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/pyenv"
	"github.com/coppice-run/coppice/internal/sharedgateway"
	"github.com/coppice-run/coppice/internal/shell"
)

// python looks for an interpreter and its packages, as a host would.
func (x *examination) python() {
	env, err := Look(x.ctx, x.d.options(), x.cwd)
	if err != nil {
		return // the options were resolved before; ctx has ended
	}
	x.env = env
	for _, s := range Broken(env.Steps) {
		state := FindingWarning
		if env.Python == nil {
			state = FindingFailed
		}
		x.find(checkPython, state, mendStep(s), "%s (%s) %s; it is passed over", s.Name, s.Path, s.Why)
	}
	if env.Unused != "" {
		x.find(checkPython, FindingWarning, "name it with --python "+shell.Quote(env.Unused), "%s is not used for sessions in %s: %s", env.Unused, x.cwd, whyUnused)
	}
	if env.Python == nil {
		x.find(checkPython, FindingFailed, "install Python from your system's packages or python.org, or name one with --python", "%s", env.Problem)
		x.skip(checkPackages, "there is no interpreter to ask")
		return
	}
	x.ok(checkPython, "%s (Python %s, found by %s)", env.Python.Path, env.Python.Version, env.Python.Source)
	x.packages()
}

// whyUnused says why the virtual environment of a working directory is not used.
const whyUnused = "a host has one Python for all its sessions, and looks for it in its own working directory"

// mendStep is what mends an interpreter that was passed over.
func mendStep(s Step) string {
	switch {
	case s.Name == pyenv.SourceManaged:
		return "coppice setup"
	case s.Name == pyenv.SourceOption:
		return "name another interpreter with --python, or none"
	case s.Name == pyenv.SourceVirtualEnv && s.Why == "no such directory":
		return "unset VIRTUAL_ENV"
	case s.Name == pyenv.SourceConda:
		return "conda deactivate"
	case s.Name == pyenv.SourcePython || s.Name == pyenv.SourcePython3:
		return "take it out of PATH, or install it again"
	default:
		return "python3 -m venv --clear " + shell.Quote(venvOfStep(s.Path))
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
	if x.d.GatewayURL != "" {
		x.skip(checkPackages, "an external gateway is set: none are needed here")
		return
	}
	pip := shell.Quote(x.env.Python.Path) + " -m pip install"
	missing := pyenv.Missing(x.env.Packages)
	var have, old []string
	for _, p := range x.env.Packages {
		switch pinned := pyenv.Pinned(p.Dist); {
		case !p.Found: // missing, or another stands in for it
		case p.Version == "":
			have = append(have, p.Dist)
		case pinned != "" && pyenv.Older(pyenv.Major(p.Version), pyenv.Major(pinned)):
			old = append(old, p.Dist+" "+p.Version+" (tested: "+pinned+" and later)")
		default:
			have = append(have, p.Dist+" "+p.Version)
		}
	}
	state := FindingWarning // the runner backend needs none of them
	if x.d.Backend == backendGateway || x.d.KernelName != "" {
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
	s, err := pyenv.Check(x.ctx, pyenv.SetupOptions{Home: x.home.Dir(), Env: x.home.Env})
	switch {
	case err != nil:
		x.find(checkManaged, FindingFailed, "coppice setup", "%v", err)
	case s.State == Ready:
		x.ok(checkManaged, "%s is ready (Python %s)", s.Dir, s.Version)
	case s.State == Absent:
		x.skip(checkManaged, "it was not set up; coppice setup makes one")
	case s.State == Foreign:
		x.find(checkManaged, FindingWarning, "move "+shell.Quote(s.Dir)+" away, then coppice setup", "%s: %s", s.Dir, s.Why)
	default:
		x.find(checkManaged, FindingWarning, "coppice setup", "%s is %s: %s", s.Dir, s.State, s.Why)
	}
}

// backend says which backend a host would take.
func (x *examination) backend() {
	if x.d.Trial == nil {
		x.skip(checkBackend, "left out")
		return
	}
	plan, err := x.d.Trial.Plan(x.d.Settings, x.env.Err())
	switch {
	case err != nil:
		x.find(checkBackend, FindingFailed, "", "%v", err)
	case plan.Backend == "":
		x.find(checkBackend, FindingFailed, "", "none can be used: %s", plan.Why)
	default:
		x.ok(checkBackend, "%s, since %s", plan.Backend, plan.Why)
	}
}

// external asks the external servers that are set.
func (x *examination) external() {
	if x.d.GatewayURL == "" {
		if !slices.ContainsFunc(x.found, func(f Finding) bool { return f.Check == checkExternal }) {
			x.skip(checkExternal, "none is set")
		}
		return
	}
	url, token := home.Name(x.d.Env, urlVariable), home.Name(x.d.Env, tokenVariable)
	all, _ := jupyter.ParseRemotes(x.d.GatewayURL, x.d.GatewayToken) // settings has checked them
	for _, e := range all {
		how, err := jupyter.AskExternal(x.ctx, e.URL, e.Token)
		mend := ""
		switch how {
		case jupyter.ExternalOK:
			x.ok(checkExternal, "a Jupyter server answers and takes the token")
			continue
		case jupyter.ExternalURL:
			mend = "export " + url + "=http://127.0.0.1:8888"
		case jupyter.ExternalToken:
			mend = "export " + token + "=<the server's token>"
		case jupyter.ExternalTimeout:
			mend = "check the server and the network on the way to it, or unset " + url
		case jupyter.ExternalUnreachable:
			mend = "start the server or correct " + url + ", or unset it"
		case jupyter.ExternalAnswer:
			mend = "let " + url + " name a Jupyter server, with its base path"
		}
		x.find(checkExternal, FindingFailed, mend, "%v", err)
	}
}

// shared looks at the gateways that hosts of this user share.
func (x *examination) shared() {
	all, err := sharedgateway.Look(x.ctx, x.sharedDir())
	if err != nil {
		x.find(checkShared, FindingFailed, "chmod u+rw "+shell.Quote(x.sharedDir()+"/gateway.json"), "%v", err)
		return
	}
	alive := 0
	for _, g := range all {
		switch g.State {
		case sharedgateway.StateRunning:
			alive++
			x.ok(checkShared, "gateway %d at %s (shard %d) answers; %s, %s of %d, %s", g.PID, g.URL, g.Shard, count(g.Hosts, "host"), count(max(g.Kernels, 0), "kernel"), g.MaxKernels, count(g.Sessions, "kept session"))
		case sharedgateway.StateSilent:
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
	h, state := sharedgateway.Locked(x.sharedDir())
	switch state {
	case sharedgateway.LockStuck:
		x.find(checkLock, FindingFailed, "kill -9 "+itoa(h.PID), "process %d holds %s/gateway.lock and has not said so since %s: it is stuck (%s)",
			h.PID, x.sharedDir(), h.Beat.Format("15:04:05"), h.Doing)
	case sharedgateway.LockHeld:
		x.ok(checkLock, "process %d holds it just now (%s)", h.PID, h.Doing)
	default:
		x.ok(checkLock, "it is free")
	}
}

// leftovers looks for what hosts that were killed left, and ends it when that was
// asked for.
func (x *examination) leftovers() {
	if !x.d.Fix {
		found, err := sharedgateway.Leftovers(x.sharedDir())
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
		groups := cgroup.Leftovers(cgroup.Options{})
		for _, dir := range groups {
			x.find(checkLeftovers, FindingWarning, "coppice doctor --fix", "the control group %s of a host that was killed", dir)
		}
		folders := temp.Abandoned()
		for _, dir := range folders {
			x.find(checkLeftovers, FindingWarning, "coppice doctor --fix", "the temporary folder %s of a host that was killed", dir)
		}
		sockets := temp.AbandonedSockets(x.runDir())
		for _, path := range sockets {
			x.find(checkLeftovers, FindingWarning, "coppice doctor --fix", "the socket %s of a coppice serve that was killed", path)
		}
		if len(found)+len(groups)+len(folders)+len(sockets)+x.workspaces() == 0 && err == nil {
			x.ok(checkLeftovers, "nothing was left behind")
		}
		return
	}
	ctx, done := opportunity.Within(x.ctx, cleanWait, opportunity.Unknown{})
	defer done()
	gone, err := sharedgateway.Clean(ctx, x.sharedDir())
	for _, l := range gone {
		x.find(checkLeftovers, FindingFixed, "", "%s: gone", l.What)
	}
	groups, failed := cgroup.Clean(ctx, cgroup.Options{})
	for _, dir := range groups {
		x.find(checkLeftovers, FindingFixed, "", "the control group %s of a host that was killed: gone", dir)
	}
	folders, stay := temp.Clean(ctx)
	for _, dir := range folders {
		x.find(checkLeftovers, FindingFixed, "", "the temporary folder %s of a host that was killed: gone", dir)
	}
	sockets, stuck := temp.CleanSockets(x.runDir())
	for _, path := range sockets {
		x.find(checkLeftovers, FindingFixed, "", "the socket %s of a coppice serve that was killed: gone", path)
	}
	if failed = errors.Join(failed, stay, stuck); failed != nil {
		x.find(checkLeftovers, FindingFailed, "", "%v", failed)
	}
	locked, held := errors.AsType[*sharedgateway.LockedError](err)
	switch {
	case held && locked.PID != 0:
		x.find(checkLeftovers, FindingFailed, "end process "+itoa(locked.PID)+", then coppice doctor --fix", "%v", err)
	case err != nil:
		x.find(checkLeftovers, FindingFailed, "", "%v", err)
	case len(gone)+len(groups)+len(folders)+len(sockets)+x.workspaces() == 0 && failed == nil:
		x.ok(checkLeftovers, "nothing was left behind")
	}
}

// runDir is where servers have their sockets.
func (x *examination) runDir() string { return filepath.Join(x.home.Dir(), "run") }

// workspaces tells of the folders of workspaces that no host has, and returns how many. They are not
// removed here: only a host knows whether a session on disk needs one.
func (x *examination) workspaces() int {
	left, err := own.Leftovers(filepath.Join(x.home.Dir(), "workspaces"))
	if err != nil {
		x.find(checkLeftovers, FindingFailed, "", "%v", err)
		return 1
	}
	for _, l := range left {
		if l.Dead {
			x.find(checkLeftovers, FindingWarning, "", "%s, of a workspace whose host was killed: the next host removes it, unless sessions on disk may need it", l.Folder)
		} else {
			x.find(checkLeftovers, FindingWarning, "rm -r "+shell.Quote(l.Folder)+" (if you do not need what is in it)", "%s, of a workspace of which nothing says whether it is needed", l.Folder)
		}
	}
	return len(left)
}

// modules reads those of the user and of the project.
func (x *examination) modules() {
	if x.env.Python == nil {
		x.skip(checkModules, "there is no interpreter to read them")
		return
	}
	functions, modules, err := ModuleHelpers(x.ctx, x.d.options(), x.cwd)
	if err != nil {
		x.find(checkModules, FindingWarning, "", "%v", err)
		return
	}
	bad := false
	for _, m := range modules {
		if m.Problem != "" {
			bad = true
			x.find(checkModules, FindingWarning, "mend or remove "+shell.Quote(m.Path), "%s is not loaded: %s", m.Path, m.Problem)
		}
	}
	if !bad {
		x.ok(checkModules, "%s with %s", count(len(modules), "module"), count(len(functions), "function"))
	}
}
