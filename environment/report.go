package environment

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/coppice-run/coppice/internal/home"
	"github.com/coppice-run/coppice/internal/pyenv"
)

// Report says what a host with the same options would find.
type Report struct {
	Folders
	Interpreter
}

// Folders are the names of the folders of a user: Dir is <Home>/.<Brand>.
type Folders struct {
	Brand string `json:"brand"`
	Home  string `json:"home"`
	Dir   string `json:"dir"`
}

// Interpreter is the Python that sessions get, and what reaches it.
type Interpreter struct {
	// Python is the interpreter that was chosen, nil when none can be used.
	Python *Runtime `json:"python"`
	// Problem says why there is none, or why no Kernel Gateway can run in it.
	Problem string `json:"problem,omitempty"`
	// Steps are the places where an interpreter was looked for, in order.
	Steps []Step `json:"steps"`
	// Unused is the interpreter of a virtual environment in the session's working
	// directory that is not used: a host has one interpreter for all its sessions,
	// and looks for it in its own working directory. To use it, a host has to name
	// it. "" when there is none, and when an interpreter was named or an active
	// environment goes before it.
	Unused string `json:"unused,omitempty"`
	// Packages are those that the gateway backend needs.
	Packages []Package `json:"packages"`
	// Passed and Withheld are the names of the variables of the environment
	// that kernels see and do not see.
	Passed   []string `json:"passed"`
	Withheld []string `json:"withheld"`

	err error
}

// Err is Problem as an error, nil when a Kernel Gateway can run: a [*NoPythonError],
// a [*MissingPackagesError], or why the interpreter did not answer.
func (i Interpreter) Err() error { return i.err }

// Look says what a host with these options would find in this process, without
// starting anything but the interpreters that it tries. cwd is a session's working
// directory, "" that of this process; it decides nothing but Interpreter.Unused. The
// error is for options that are invalid (it matches
// [ErrOptions]), for a working directory that cannot be used, and for the end of
// ctx; a missing Python is part of the report.
func Look(ctx context.Context, o Options, cwd string) (Report, error) {
	place, err := o.resolve()
	if err != nil {
		return Report{}, err
	}
	if cwd, err = home.WorkingDir(cwd); err != nil {
		return Report{}, err
	}
	r := Report{Folders: Folders{Brand: place.Brand, Home: place.Path, Dir: place.Dir()}}
	r.Passed, r.Withheld = split(place.Env)
	rt, err := pyenv.Resolve(ctx, search(o, place))
	r.Steps = rt.Steps
	if err == nil {
		r.Python = &rt
		r.Packages, err = pyenv.Preflight(ctx, rt)
	}
	if ctx.Err() != nil {
		return r, fmt.Errorf("look at the environment: %w", context.Cause(ctx))
	}
	if r.err = err; err != nil {
		r.Problem = err.Error()
	}
	r.Unused = unused(o, rt, cwd)
	return r, nil
}

// unused returns the interpreter that a host in cwd would take, and this one does
// not since it is elsewhere.
func unused(o Options, rt Runtime, cwd string) string {
	if o.Python != "" || rt.Source == pyenv.SourceVirtualEnv || rt.Source == pyenv.SourceConda {
		return ""
	}
	own := pyenv.OwnPython(cwd)
	if own == "" || sameFile(cwd, ".") || rt.Venv != "" && sameFile(filepath.Dir(filepath.Dir(own)), rt.Venv) {
		return ""
	}
	return own
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	other, wrong := os.Stat(b)
	return err == nil && wrong == nil && os.SameFile(one, other)
}

// split returns the names of the variables that pass the filter, and of those
// that do not.
func split(env []string) (passed, withheld []string) {
	keep := map[string]bool{}
	for _, kv := range pyenv.Filter(env) {
		keep[name(kv)] = true
	}
	for _, kv := range env {
		if n := name(kv); keep[n] {
			passed = append(passed, n)
		} else if n != "" {
			withheld = append(withheld, n)
		}
	}
	return passed, withheld
}

func name(kv string) string {
	for i := 1; i < len(kv); i++ { // from 1: names of Windows may begin with =
		if kv[i] == '=' {
			return kv[:i]
		}
	}
	return kv
}
