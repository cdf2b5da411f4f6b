package kernelserver

import (
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/pyenv"
	"github.com/coppice-run/coppice/internal/sandbox"
)

const (
	// attempts bounds how often another port is tried. Between choosing a free
	// port and listening on it lies the start of Python.
	attempts = 5
	// healthEvery is the pause between two questions to a starting gateway, and
	// healthTimeout bounds one. A question that is given up was answered for nothing:
	// the first makes the gateway scan for kernelspecs, which takes a while where
	// others want the processors, too. One that dies breaks the connection.
	healthEvery   = 50 * time.Millisecond
	healthTimeout = 30 * time.Second
	// stopGrace is for the gateway to end its kernels, which it does one after
	// the other.
	stopGrace = 2 * time.Second
	// noFile is the limit of open files: a kernel costs its gateway 18.
	noFile = 65536
	// tailLines is how much output an error carries.
	tailLines = 15
)

// DefaultKernelVars are the names that one kernel may be given and another not,
// besides KERNEL_*; see Options.KernelVars.
var DefaultKernelVars = []string{"PI_SESSION_FILE", "PI_ARTIFACTS_DIR", "PI_TOOL_BRIDGE_URL", "PI_TOOL_BRIDGE_SESSION"}

// Options says how to run a gateway. Only Runtime is required.
type Options struct {
	// Runtime is an interpreter with the packages that pyenv.Preflight wants.
	Runtime pyenv.Runtime
	// JupyterServer says that the interpreter has no Kernel Gateway: Jupyter
	// Server is run in its place, with the same guarantees. A gateway that
	// hosts share finds out by itself.
	JupyterServer bool
	// Env is the environment of gateway and kernels, already filtered. Nil is
	// Runtime.Env.
	Env []string
	// Dir is the directory below which a POST may name a "path" to start its
	// kernel in; "" is the root, so that a path is a directory of the system. A
	// POST without a path starts its kernel in an empty private directory, and
	// the gateway itself runs there too, so that no file of a project passes for
	// a module.
	Dir string
	// Token is what clients must show. "" makes one of 32 random bytes.
	Token string
	// KernelVars are the names that KernelEnv may carry for one kernel. Nil is
	// DefaultKernelVars.
	KernelVars []string
	// Fork makes kernels by fork, on Linux: of a process that has imported what they
	// need, which the gateway starts with itself. Where that does not work they are
	// spawned, as they are without it, and the gateway logs once why.
	Fork bool
	// MaxKernels is where the gateway refuses a further kernel with 403. It
	// checks before it waits, so that a burst overshoots. 0: no limit.
	MaxKernels int
	// Start bounds each attempt of Launch: how long the gateway may have had the
	// chance to answer. The zero value is that of [opportunity.Starting].
	Start opportunity.Budget
	// Rules confine the gateway with its kernels, and all that they start. Its private
	// directory is opened as far as they need it. The zero value does not. Not for a gateway
	// that outlives its host.
	Rules sandbox.Rules
	// User is whom the gateway and its kernels run as, which takes root; its private directory is
	// opened to them as far as they need it, and they have nothing of it that the environment does
	// not say. nil: as the host does. Not for a gateway that outlives its host.
	User *process.User
	// Owner owns the gateway and its kernels, and all that they start. nil: nothing does.
	// A gateway that outlives its host has none.
	Owner *process.Owner
	// TempDir is where the private directory is made; "" is the system's own, or
	// /tmp where that path is too long for sockets.
	TempDir string
	// Output, if not nil, is called with every line that the gateway and its
	// kernels print, the token taken out. It is called from one goroutine and
	// must not block.
	Output func(line string)
}

func (o Options) withDefaults() Options {
	if o.Env == nil {
		o.Env = o.Runtime.Env
	}
	if o.KernelVars == nil {
		o.KernelVars = DefaultKernelVars
	}
	if o.Start.Opportunity <= 0 {
		o.Start = opportunity.Starting(0, o.Start.Ceiling)
	}
	return o
}

// args is the command line of the gateway.
func (o Options) args(dir private, port int) []string {
	if o.JupyterServer {
		return append([]string{dir.join("server.py")}, o.flags(port)...)
	}
	return append([]string{dir.join("kernel_gateway.py")}, o.flags(port)...)
}

// forks says whether kernels are forked.
func (o Options) forks() bool { return o.Fork && runtime.GOOS == "linux" }

// flags are the settings of the gateway. They are those of a Kernel Gateway, which
// server.py translates.
func (o Options) flags(port int) []string {
	dir := o.Dir
	if dir == "" {
		dir = rootDir
	}
	args := []string{
		"--JupyterApp.answer_yes=True",
		"--KernelGatewayApp.ip=127.0.0.1",
		"--KernelGatewayApp.port=" + strconv.Itoa(port),
		// By default a taken port makes it move to another one without a word.
		"--KernelGatewayApp.port_retries=0",
		"--JupyterWebsocketPersonality.list_kernels=True",
		"--KernelSpecManager.ensure_native_kernel=False",
		"--MappingKernelManager.root_dir=" + dir,
		// Who owns the kernels decides when they end.
		"--MappingKernelManager.cull_idle_timeout=0",
		// The death of a kernel is reported at once, and it is not replaced unasked.
		"--KernelRestarter.restart_limit=0",
		"--KernelRestarter.time_to_dead=0.5",
		// By default output over a rate is dropped.
		"--ZMQChannelsWebsocketConnection.limit_rate=False",
	}
	if runtime.GOOS != "windows" {
		// Unix sockets: no port that another process can take or reach.
		args = append(args, "--KernelManager.transport=ipc")
	}
	if o.MaxKernels > 0 {
		args = append(args, "--KernelGatewayApp.max_kernels="+strconv.Itoa(o.MaxKernels))
	}
	return args
}

// sharedArgs is the command line of a gateway that hosts share.
func (o Options) sharedArgs(dir private, port int) []string {
	o.MaxKernels = 0 // gateway.py counts, and reads how many from its settings
	return append([]string{dir.join("gateway.py"), dir.join("shared.json"), "--log-level=WARN"}, o.flags(port)...)
}

// temporary are the names by which programs find their temporary directory. The
// gateway's own is private, since it leaves files there; kernels keep the user's.
var temporary = []string{"TMPDIR", "TEMP", "TMP"}

// env is the environment of the gateway: that of the kernels and what it needs
// itself. Only names listed in KG_ENV_PROCESS_WHITELIST go on to a kernel.
func (o Options) env(token string, p private) []string {
	env := slices.DeleteFunc(slices.Clone(o.Env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == "IPYTHONDIR" || strings.HasPrefix(name, "KG_") || strings.HasPrefix(name, "JUPYTER_") || slices.Contains(temporary, name)
	})
	env = append(env, "IPYTHONDIR="+p.ipython())
	var names []string
	for _, entry := range env {
		if name, _, _ := strings.Cut(entry, "="); !strings.Contains(name, ",") {
			names = append(names, name)
		}
	}
	for _, name := range temporary {
		env = append(env, name+"="+p.scratch())
	}
	return append(env,
		"KG_AUTH_TOKEN="+token,
		"KG_ENV_PROCESS_WHITELIST="+strings.Join(names, ","),
		"KG_ENV_WHITELIST="+strings.Join(o.KernelVars, ","),
		"JUPYTER_NO_CONFIG=1",
		"JUPYTER_PLATFORM_DIRS=1",
		"JUPYTER_CONFIG_DIR="+p.config(),
		"JUPYTER_DATA_DIR="+p.data(),
		"JUPYTER_PATH="+o.dataPath(p),
		"JUPYTER_RUNTIME_DIR="+p.sockets(),
		"PYTHONUNBUFFERED=1",
	)
}

// dataPath is where the gateway looks for kernelspecs besides the interpreter's
// own: the private folder, whose python3 comes before all others, and those of
// the user, whose kernels of other languages can be chosen.
func (o Options) dataPath(p private) string {
	dirs := []string{p.data()}
	home := ""
	for _, entry := range o.Env {
		switch name, value, _ := strings.Cut(entry, "="); {
		case name == "XDG_DATA_HOME" && filepath.IsAbs(value):
			dirs = append(dirs, filepath.Join(value, "jupyter"))
		case name == "HOME":
			home = value
		}
	}
	if home != "" {
		dirs = append(dirs, filepath.Join(home, ".local", "share", "jupyter"))
		if runtime.GOOS == "darwin" {
			dirs = append(dirs, filepath.Join(home, "Library", "Jupyter"))
		}
	}
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// kernelEnv is what the kernelspec sets: what the gateway has for itself and the
// kernels have otherwise. Dollars are doubled, as Jupyter fills in $NAME.
func (o Options) kernelEnv() map[string]string {
	env := make(map[string]string)
	for _, entry := range o.Env {
		if name, value, ok := strings.Cut(entry, "="); ok && slices.Contains(temporary, name) {
			env[name] = strings.ReplaceAll(value, "$", "$$")
		}
	}
	return env
}
