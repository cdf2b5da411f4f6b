package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/internal/home"
)

// Mode says which of the tools python and bash a model gets.
type Mode string

const (
	// ModeBoth gives both. It is the default.
	ModeBoth Mode = "both"
	// ModePython gives python alone.
	ModePython Mode = "ipy-only"
	// ModeBash gives bash alone.
	ModeBash Mode = "bash-only"
)

// Style is the shape of the tools that run Python.
type Style string

const (
	// StylePython is one tool, python, that takes a list of cells. It is the
	// default.
	StylePython Style = "python"
	// StyleEval is one tool, eval, whose cells have a language, a timeout and a
	// reset each.
	StyleEval Style = "eval"
	// StyleREPL is the pair execute_code and reset_repl.
	StyleREPL Style = "repl"
)

// Options says which tools a model gets. The zero value of each field is its
// default.
type Options struct {
	// Mode says which of python and bash. "": COPPICE_PY from the Env of the host's
	// options (0 or bash, 1 or py, mix or both), else both. There is no bash with a
	// host that runs no commands, see [coppice.Options].
	Mode Mode
	// Style is the shape of the tool for Python. "": StylePython.
	Style Style
	// Notebooks adds the tools notebook_read, notebook_edit and notebook_run, the
	// last of them where a model may run Python.
	Notebooks bool
	// SessionArgument adds the argument session: a model then has several sessions
	// in one conversation, see [Call].
	SessionArgument bool
	// Proxy takes the calls of all these tools in place of this host, unread: for a
	// process whose parent has the sessions. It is given the tool's name, and may be
	// called from any goroutine. With it Python is not looked for here. nil: this
	// host makes them.
	Proxy func(ctx context.Context, tool string, c Call) (Result, error)
	// Cwd is the working directory whose modules the descriptions list. "": that of
	// this process.
	Cwd string
}

// checkTime bounds the check of Python for [Tools].
const checkTime = 15 * time.Second

// Tools returns the tools of a host for a model: those for code, and with a launcher
// those of its folder as it is now, as tool_NAME. The descriptions of those for Python
// name what code can call of the host, as it is now: functions, and packs with their
// guidance, in a bounded length. The error matches
// [coppice.ErrOptions] when an option is wrong; one about the launcher comes with the
// tools for code. Any goroutine may call it.
//
// When Python cannot be used and there is bash, bash alone is given, and its
// description says why: see [ModeOf], and [coppice.Host.CheckPython], which takes a
// tenth of a second the first time. A host without bash gives its Python tools all
// the same: their calls say what is wrong.
func Tools(host *coppice.Host, o Options) ([]Tool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), checkTime)
	defer cancel()
	mode, why, err := ModeOf(ctx, host, o)
	if err != nil {
		return nil, err
	}
	of := host.Options()
	if why != "" {
		of.Logger.Warn("agents get bash alone", "why", why)
	}
	k := kit{host: host, o: o}
	var tools []Tool
	switch o.Style {
	case "", StylePython:
		tools = []Tool{k.pythonTool()}
	case StyleEval:
		tools = []Tool{k.evalTool()}
	case StyleREPL:
		tools = []Tool{k.executeCodeTool(), k.resetTool()}
	default:
		return nil, fmt.Errorf("%w: the tool style %q is not one of python, eval, repl", coppice.ErrOptions, o.Style)
	}
	if mode == ModeBash {
		tools = nil
	}
	if mode != ModePython && of.Bash {
		bash := k.bashTool()
		if why != "" {
			bash.Description += "\n- There is no tool for Python in this session: " + why
		}
		tools = append(tools, bash)
	}
	if o.Notebooks {
		tools = append(tools, k.notebookTools(mode)...)
	}
	for i := range tools {
		tools[i].sessions = o.SessionArgument
	}
	launched, err := launchedTools(context.Background(), host.Launcher())
	tools = append(tools, launched...)
	if o.Proxy != nil {
		for i := range tools {
			name := tools[i].Name
			tools[i].call = func(ctx context.Context, c Call) (Result, error) { return o.Proxy(ctx, name, c) }
		}
	}
	return tools, err
}

// ModeOf says which of the tools python and bash [Tools] gives, and why that is not
// what o asks for, "" when it is: without Python, bash alone is left. It looks for
// Python for as long as ctx lasts. The error matches [coppice.ErrOptions], or is that
// of [coppice.Host.CheckPython] for a ctx that has ended. Any goroutine may call it.
func ModeOf(ctx context.Context, host *coppice.Host, o Options) (mode Mode, why string, err error) {
	of := host.Options()
	switch o.Mode {
	case ModeBoth, ModePython, ModeBash:
		mode = o.Mode
	case "":
		if mode = Mode(home.ToolMode(home.Lookup(of.Env, "PI_PY"))); mode == "" {
			mode = ModeBoth
		}
	default:
		return "", "", fmt.Errorf("%w: the tool mode %q is not one of both, ipy-only, bash-only", coppice.ErrOptions, o.Mode)
	}
	if mode == ModeBash || !of.Bash || o.Proxy != nil {
		return mode, "", nil
	}
	err = host.CheckPython(ctx)
	if errors.Is(err, coppice.ErrNoPython) {
		return ModeBash, err.Error(), nil
	}
	return mode, "", err
}
