package environment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/coppice-run/coppice/internal/home"
	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/internal/shell"
)

// DoctorOptions says what [Doctor] looks at. The zero value of each field is its
// default.
type DoctorOptions struct {
	// Settings are those of the host that is asked about.
	Settings
	// Trial starts hosts: coppice.Trial. nil: what needs a host is left out, that is
	// the choice of the backend, the kernels that wait, and a cell on each backend.
	Trial Trial
	// Cwd is the working directory of the sessions that are asked about. "": that
	// of this process.
	Cwd string
	// Fix ends kernels and gateways that no program claims and that hosts of this
	// user started, and removes their files. Nothing else is changed. false: nothing
	// is.
	Fix bool
	// Quick leaves out what takes over a second: no kernel is started. false: a cell
	// runs on each backend that can be had.
	Quick bool
	// Progress hears which check begins, from the goroutine of Doctor. nil: progress
	// is not reported.
	Progress func(check string)
}

// FindingState says how a check came out.
type FindingState string

// The states of a [Finding].
const (
	FindingOK      FindingState = "ok"
	FindingWarning FindingState = "warning" // it works, and may not for long or not as meant
	FindingFailed  FindingState = "failed"
	FindingFixed   FindingState = "fixed"   // it was found, and DoctorOptions.Fix has mended it
	FindingSkipped FindingState = "skipped" // it could not be looked at, or need not be
)

// Finding is what one check found. A check may find several things.
type Finding struct {
	// Check names the check: "python", "leftovers".
	Check string       `json:"check"`
	State FindingState `json:"state"`
	// Detail says what was seen.
	Detail string `json:"detail"`
	// Mend is the command or the setting that mends it, "" when there is none or
	// nothing to mend.
	Mend string `json:"mend,omitempty"`
}

// Diagnosis is what [Doctor] found.
type Diagnosis struct {
	// Healthy says that no check failed.
	Healthy  bool      `json:"healthy"`
	Findings []Finding `json:"findings"`
}

// Names of the checks, in their order.
const (
	checkSettings    = "settings"
	checkFolders     = "folders"
	checkPython      = "python"
	checkPackages    = "packages"
	checkManaged     = "managed environment"
	checkBackend     = "backend"
	checkExternal    = "external gateway"
	checkShared      = "shared gateways"
	checkLock        = "lock"
	checkLeftovers   = "leftovers"
	checkPermissions = "permissions"
	checkLimits      = "limits"
	checkWarm        = "warm kernels"
	checkRunner      = "runner"
	checkFork        = "fork"
	checkIsolation   = "isolation"
	checkGateway     = "gateway"
	checkKernels     = "isolation of kernels"
	checkModules     = "modules"
)

// Doctor looks for what keeps sessions from working with these settings: each
// known failure has a check that names it and the command that mends it. It takes
// a few seconds, since it runs a cell on each backend; whatever it starts ends
// before it returns.
//
// The error is for settings that are invalid for another reason than a check names
// (it matches [ErrOptions], or is that of [Trial]) and for the end of ctx; the
// findings until then are returned. Any goroutine may call it.
func Doctor(ctx context.Context, d DoctorOptions) (Diagnosis, error) {
	x := &examination{ctx: ctx, d: d}
	x.settings()
	var err error
	if x.home, err = x.d.options().resolve(); err != nil {
		return x.result(), err
	}
	if x.d.Trial != nil {
		if x.plan, err = x.d.Trial.Plan(x.d.Settings, nil); err != nil {
			return x.result(), err
		}
	}
	for _, c := range []struct {
		name string
		do   func()
	}{
		{checkFolders, x.folders},
		{checkPython, x.python},
		{checkManaged, x.managed},
		{checkBackend, x.backend},
		{checkExternal, x.external},
		{checkShared, x.shared},
		{checkLock, x.lock},
		{checkLeftovers, x.leftovers},
		{checkPermissions, x.permissions},
		{checkLimits, x.limits},
		{checkWarm, x.warm},
		{checkModules, x.modules},
		{checkRunner, x.runner},
		{checkIsolation, x.isolation},
		{checkGateway, x.gateway},
		{checkKernels, x.kernels},
	} {
		x.begin(c.name)
		c.do()
		if ctx.Err() != nil {
			return x.result(), fmt.Errorf("look for what is wrong: %w", context.Cause(ctx))
		}
	}
	return x.result(), nil
}

// examination is one run of Doctor. It belongs to Doctor's goroutine.
type examination struct {
	ctx   context.Context //nolint:containedctx // it lives as long as one call of Doctor
	d     DoctorOptions   // once settings has run, without what cannot be used
	home  home.Home
	plan  Plan
	env   Report
	cwd   string // "" when the asked one cannot be used
	found []Finding
}

func (x *examination) begin(check string) {
	if x.d.Progress != nil {
		x.d.Progress(check)
	}
}

func (x *examination) result() Diagnosis {
	healthy := !slices.ContainsFunc(x.found, func(f Finding) bool { return f.State == FindingFailed })
	return Diagnosis{Healthy: healthy, Findings: x.found}
}

func (x *examination) find(check string, s FindingState, mend, format string, args ...any) {
	x.found = append(x.found, Finding{Check: check, State: s, Detail: fmt.Sprintf(format, args...), Mend: mend})
}

func (x *examination) ok(check, format string, args ...any) {
	x.find(check, FindingOK, "", format, args...)
}

func (x *examination) skip(check, format string, args ...any) {
	x.find(check, FindingSkipped, "", format, args...)
}

// settings looks at what the options and the environment ask for.
func (x *examination) settings() {
	x.begin(checkSettings)
	before := len(x.found)
	s := &x.d.Settings
	if s.Env == nil {
		s.Env = os.Environ()
	}
	if s.GatewayURL == "" {
		s.GatewayURL = home.Lookup(s.Env, urlVariable)
	}
	if s.GatewayToken == "" {
		s.GatewayToken = home.Lookup(s.Env, tokenVariable)
	}
	if _, err := jupyter.ParseRemotes(s.GatewayURL, s.GatewayToken); err != nil {
		mend := "export " + home.Name(s.Env, urlVariable) + "=http://127.0.0.1:8888"
		if _, tokens := errors.AsType[*jupyter.TokensError](err); tokens {
			mend = "export " + home.Name(s.Env, tokenVariable) + "=<the first server's token>,<the second's>"
		}
		x.find(checkExternal, FindingFailed, mend, "%v", err)
		// The rest is looked at as if it were not set.
		s.GatewayURL = ""
		s.Env = home.Without(s.Env, urlVariable)
	}
	switch name, py := home.Name(s.Env, "PI_PY"), home.Lookup(s.Env, "PI_PY"); home.ToolMode(py) {
	case "":
		if py != "" {
			x.find(checkSettings, FindingWarning, "export "+name+"=both", "%s=%s is not one of 0, bash, 1, py, mix, both: coppice mcp refuses it", name, py)
		}
	case "bash-only":
		x.find(checkSettings, FindingWarning, "unset "+name, "%s=%s hides the tool python: agents get only bash", name, py)
	}
	for _, v := range []struct{ name, what string }{
		{"PI_PYTHON_SKIP_CHECK", "no check is made before the tools are handed out"},
		{"PI_PYTHON_IPC_TRACE", "every message is written to a file, which takes time and room"},
	} {
		if home.SwitchedOn(s.Env, v.name) {
			name := home.Name(s.Env, v.name)
			x.find(checkSettings, FindingWarning, "unset "+name, "%s is set: %s", name, v.what)
		}
	}
	if len(x.found) == before {
		x.ok(checkSettings, "nothing is switched off")
	}
}

// The variables that name external servers.
const (
	urlVariable   = "PI_PYTHON_GATEWAY_URL"
	tokenVariable = "PI_PYTHON_GATEWAY_TOKEN" //nolint:gosec // a name
)

// folders looks at the working directory, the home and the place of temporary
// files.
func (x *examination) folders() {
	before := len(x.found)
	cwd, err := home.WorkingDir(x.d.Cwd)
	if x.cwd = cwd; err != nil {
		x.find(checkFolders, FindingFailed, "name a folder that is there with --cwd", "%v", err)
	}
	place, mend := x.home.Dir(), "mkdir -m 700 -p "+shell.Quote(x.home.Dir())
	if _, err := os.Lstat(place); errors.Is(err, os.ErrNotExist) {
		place = x.home.Path
	}
	if err := writable(place); err != nil {
		x.find(checkFolders, FindingFailed, mend+", or set COPPICE_HOME to a folder of yours", "files cannot be kept in %s: %v", place, err)
	}
	temp := home.TempDir(x.home.Env)
	if err := writable(temp); err != nil {
		x.find(checkFolders, FindingFailed, "export TMPDIR=/tmp", "temporary files cannot be made in %s: %v", temp, err)
	}
	if len(x.found) == before {
		x.ok(checkFolders, "%s, %s and %s can be used", x.cwd, x.home.Dir(), temp)
	}
}

// writable makes a file in a folder and removes it.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".coppice-doctor-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
