package pyenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Source says where an interpreter was found. It is the name of a [Step].
type Source string

// The sources, in the order in which they are tried.
const (
	SourceOption     Source = "--python"     // Options.Python
	SourceVirtualEnv Source = "VIRTUAL_ENV"  // the active virtual environment
	SourceConda      Source = "CONDA_PREFIX" // the active conda environment, unless it is the base
	SourceDotVenv    Source = ".venv"        // <cwd>/.venv
	SourceVenv       Source = "venv"         // <cwd>/venv
	SourceManaged    Source = "managed"      // what Setup built
	SourcePython     Source = "python"       // on PATH
	SourcePython3    Source = "python3"      // on PATH
)

// Outcome says what became of a [Step].
type Outcome string

// The outcomes. Why is set for each but OutcomeChosen.
const (
	OutcomeChosen Outcome = "chosen"
	OutcomeAbsent Outcome = "absent" // there is nothing
	OutcomeBroken Outcome = "broken" // there is something, and it cannot be used
)

// Step is one place where an interpreter was looked for.
type Step struct {
	Name    Source  `json:"name"`
	Path    string  `json:"path,omitempty"`
	Outcome Outcome `json:"outcome"`
	// Why is a sentence part for people: "does not run: exited with code 127".
	Why string `json:"why,omitempty"`
}

// Options says where to look for an interpreter.
type Options struct {
	// Python is the interpreter to use, by path or by a name on PATH; nothing
	// else is then tried. A leading ~ is the home directory, and a relative path
	// starts at Cwd. "" looks around.
	Python string
	// Cwd is the directory whose virtual environment is taken; "" is that of the
	// process, which is what hosts take for all their sessions.
	Cwd string
	// Home is the directory of the brand, such as ~/.coppice, which holds the
	// managed environment; "" passes that step over.
	Home string
	// Env is the host's environment; nil is that of the process. It may hold
	// secrets: only what Filter leaves reaches an interpreter.
	Env []string
	// Memory is a directory in which the answers of interpreters are kept, for the
	// processes that come: one that has answered is not run again, until its file or its
	// environment is another. "" keeps none.
	Memory string
	// Fresh runs each interpreter, whatever Memory knows of it, and corrects that.
	Fresh bool
}

// Runtime is an interpreter that runs and is new enough.
type Runtime struct {
	// Path is the interpreter, absolute. For a version manager's shim it is the
	// interpreter that the shim stands for.
	Path string `json:"path"`
	// Version is "3.11.7".
	Version string `json:"version"`
	// Venv is the virtual environment it belongs to, or "".
	Venv   string `json:"venv,omitempty"`
	Source Source `json:"source"`
	// Env is the filtered environment for this interpreter. Programs of Venv are
	// found first, and VIRTUAL_ENV is Venv or not set.
	Env []string `json:"-"`
	// Steps are the places that were tried, the chosen one last.
	Steps []Step `json:"steps"`
	// Recalled says that it was not run: Options.Memory knew it.
	Recalled bool `json:"-"`
}

// Resolve finds the interpreter of a host: Options.Python, or else the
// first that runs of VIRTUAL_ENV, <cwd>/.venv, <cwd>/venv, the managed
// environment, and python and python3 on PATH; after VIRTUAL_ENV comes an active
// conda environment, but not conda's base, which is on PATH. What cannot be used is passed
// over and told in Runtime.Steps, which is set also when Resolve fails. Each
// candidate that Options.Memory does not know is run once, for at most a minute of time
// in which it could run.
//
// The error is a [*NoPythonError].
func Resolve(ctx context.Context, o Options) (Runtime, error) {
	env := environ(o.Env)
	if o.Env == nil {
		env = os.Environ()
	}
	r := resolver{env: Filter(env), home: env.get(homeVar), cwd: o.Cwd, memory: o.Memory, fresh: o.Fresh}
	if info, err := os.Stat(o.Cwd); err == nil && info.IsDir() {
		r.dir = o.Cwd
	}
	if o.Python != "" {
		r.try(ctx, SourceOption, r.explicit(o.Python), "", !strings.ContainsAny(o.Python, `/\`))
		return r.result(o.Python)
	}
	if venv := r.env.get("VIRTUAL_ENV"); venv == "" {
		r.skip(SourceVirtualEnv, "", OutcomeAbsent, "is not set")
	} else {
		r.tryVenv(ctx, SourceVirtualEnv, venv)
	}
	r.tryConda(ctx)
	r.tryVenv(ctx, SourceDotVenv, filepath.Join(r.cwd, ".venv"))
	r.tryVenv(ctx, SourceVenv, filepath.Join(r.cwd, "venv"))
	if o.Home != "" {
		r.tryManaged(ctx, ManagedDir(o.Home))
	}
	for _, s := range []Source{SourcePython, SourcePython3} {
		r.tryPath(ctx, s)
	}
	return r.result("")
}

// Broken returns the virtual environments that [Resolve] comes to first and passes
// over, as far as that shows without running anything: what VIRTUAL_ENV names is not
// there, or one holds no interpreter.
func Broken(o Options) []Step {
	env := environ(o.Env)
	if o.Env == nil {
		env = os.Environ()
	}
	r := resolver{cwd: o.Cwd}
	if o.Python != "" {
		return nil
	}
	for _, v := range []struct {
		source Source
		path   string
	}{{SourceVirtualEnv, environ(Filter(env)).get("VIRTUAL_ENV")}, {SourceDotVenv, filepath.Join(r.cwd, ".venv")}, {SourceVenv, filepath.Join(r.cwd, "venv")}} {
		if v.path == "" {
			continue
		}
		if isProgram(venvPython(v.path)) {
			break
		}
		r.tryVenv(context.Background(), v.source, v.path) // nothing is run: it holds no program
	}
	return slices.DeleteFunc(r.steps, func(s Step) bool { return s.Outcome != OutcomeBroken })
}

// resolver carries one search. It belongs to the goroutine of Resolve.
type resolver struct {
	env  environ // filtered
	home string  // the user's home directory, for ~
	cwd  string  // where relative paths start
	dir  string  // where candidates run; "" when cwd is not a directory
	// memory and fresh are those of the Options.
	memory string
	fresh  bool
	steps  []Step
	found  Runtime
	// disturbed says that what was wrong with one of them says nothing about it.
	disturbed bool
}

func (r *resolver) done() bool { return r.found.Path != "" }

func (r *resolver) skip(s Source, path string, outcome Outcome, why string) {
	r.steps = append(r.steps, Step{Name: s, Path: path, Outcome: outcome, Why: why})
}

func (r *resolver) tryVenv(ctx context.Context, s Source, venv string) {
	if r.done() {
		return
	}
	if abs, err := filepath.Abs(venv); err == nil {
		venv = abs
	}
	if _, err := os.Stat(venv); err != nil {
		outcome := OutcomeAbsent
		if s == SourceVirtualEnv {
			outcome = OutcomeBroken // it was asked for
		}
		r.skip(s, venv, outcome, "no such directory")
		return
	}
	if python := venvPython(venv); isProgram(python) {
		r.try(ctx, s, python, venv, false)
	} else {
		r.skip(s, venv, OutcomeBroken, "holds no "+filepath.Base(binDir(venv))+"/"+filepath.Base(python))
	}
}

// tryConda takes the interpreter of an active conda environment. Shells activate
// the base environment by themselves, so that it says nothing about this project.
func (r *resolver) tryConda(ctx context.Context) {
	prefix := r.env.get("CONDA_PREFIX")
	switch name := r.env.get("CONDA_DEFAULT_ENV"); {
	case r.done() || prefix == "":
		return // who has no conda need not hear of it
	case name == "base" || name == "root":
		r.skip(SourceConda, prefix, OutcomeAbsent, "is conda's base environment, which is looked for on PATH")
		return
	}
	if _, err := os.Stat(prefix); err != nil {
		r.skip(SourceConda, prefix, OutcomeBroken, "no such directory")
		return
	}
	python := condaPython(prefix)
	if !isProgram(python) {
		r.skip(SourceConda, prefix, OutcomeBroken, "holds no Python")
		return
	}
	if r.try(ctx, SourceConda, python, "", false); r.done() {
		r.found.Env = environ(r.found.Env).onPath(filepath.Dir(python))
	}
}

func (r *resolver) tryManaged(ctx context.Context, dir string) {
	if r.done() {
		return
	}
	if _, err := os.Stat(incompleteMark(dir)); err == nil {
		r.skip(SourceManaged, dir, OutcomeBroken, "its set-up did not finish; run coppice setup")
		return
	}
	r.tryVenv(ctx, SourceManaged, dir)
}

func (r *resolver) tryPath(ctx context.Context, s Source) {
	if r.done() {
		return
	}
	if file := r.env.lookPath(string(s)); file != "" {
		r.try(ctx, s, file, "", true)
	} else {
		r.skip(s, "", OutcomeAbsent, "is not on PATH")
	}
}

// try runs a candidate. What was found on PATH may be the shim of a version
// manager, whose choice changes with the directory; the interpreter behind it
// is then taken.
func (r *resolver) try(ctx context.Context, s Source, python, venv string, onPath bool) {
	if python == "" {
		r.skip(s, "", OutcomeAbsent, "is not on PATH")
		return
	}
	if !isProgram(python) {
		r.skip(s, python, OutcomeBroken, "is not a program")
		return
	}
	env := r.env.inVenv(venv)
	p, kept, recalled := r.recall(ctx, python, env)
	if !recalled {
		var err error
		if p, err = probe(ctx, python, env, r.dir); err != nil {
			r.skip(s, python, OutcomeBroken, err.Error())
			r.disturbed = r.disturbed || errors.As(err, new(*passingError))
			return
		}
		remember(kept, python, p)
	}
	if !p.recent() {
		r.skip(s, python, OutcomeBroken, fmt.Sprintf("is Python %s, and %s or newer is needed", p.version(), minVersion))
		return
	}
	path := python
	if onPath && filepath.IsAbs(p.executable) && isProgram(p.executable) {
		path = p.executable
	}
	if venv == "" {
		if venv = venvOf(path); venv != "" {
			env = r.env.inVenv(venv)
		}
	}
	r.found = Runtime{Path: path, Version: p.version(), Venv: venv, Source: s, Env: env, Recalled: recalled}
	r.steps = append(r.steps, Step{Name: s, Path: python, Outcome: OutcomeChosen})
}

// explicit turns what the user wrote into an absolute path.
func (r *resolver) explicit(python string) string {
	rest, tilde := strings.CutPrefix(python, "~")
	switch {
	case tilde && r.home != "" && (rest == "" || os.IsPathSeparator(rest[0])):
		python = r.home + rest
	case !strings.ContainsAny(python, `/\`):
		if file := r.env.lookPath(strings.TrimSuffix(python, exeSuffix)); file != "" {
			return file
		}
		return ""
	case !filepath.IsAbs(python):
		python = filepath.Join(r.cwd, python)
	}
	if abs, err := filepath.Abs(python); err == nil {
		python = abs
	}
	return python
}

func (r *resolver) result(asked string) (Runtime, error) {
	r.found.Steps = r.steps
	if !r.done() {
		return r.found, &NoPythonError{Asked: asked, Steps: r.steps, Disturbed: r.disturbed}
	}
	return r.found, nil
}
