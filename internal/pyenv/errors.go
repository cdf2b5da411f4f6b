package pyenv

import (
	"fmt"
	"strings"
)

// NoPythonError says that no interpreter can be used.
type NoPythonError struct {
	// Asked is the interpreter that was asked for, "" when any would do.
	Asked string
	// Steps are the places that were tried, at least one.
	Steps []Step
	// Disturbed says that one of them was ended from outside while it was asked, or got
	// no processor: it may be found the next time.
	Disturbed bool
}

// Error says what was wrong and how to get a Python.
func (e *NoPythonError) Error() string {
	if e.Asked != "" {
		return fmt.Sprintf("the Python %q cannot be used: it %s; name another interpreter, or none to let one be found", e.Asked, e.Steps[len(e.Steps)-1].Why)
	}
	var broken []string
	for _, s := range e.Steps {
		if s.Outcome == OutcomeBroken {
			broken = append(broken, fmt.Sprintf("%s (%s) %s", s.Name, s.Path, s.Why))
		}
	}
	text := "no Python " + minVersion + " or newer was found"
	if len(broken) > 0 {
		text += ": " + strings.Join(broken, "; ")
	}
	return text + "; install one from your system's packages or python.org, or name one with --python"
}

// Lasting reports whether this stays so until somebody changes something.
func (e *NoPythonError) Lasting() bool { return !e.Disturbed }

// Passing reports whether it says nothing about the next time.
func (e *NoPythonError) Passing() bool { return e.Disturbed }

// MissingPackagesError says that an interpreter runs and lacks packages.
type MissingPackagesError struct {
	Python  string
	Version string
	Source  Source
	// Missing are names to install.
	Missing []string
}

// Lasting reports that this stays so until somebody installs them.
func (e *MissingPackagesError) Lasting() bool { return true }

// Error names the packages and both ways to get them.
func (e *MissingPackagesError) Error() string {
	setup, pip := "coppice setup", e.Python+" -m pip install jupyter_kernel_gateway ipykernel"
	what := fmt.Sprintf("Python %s at %s lacks %s", e.Version, e.Python, strings.Join(e.Missing, ", "))
	switch e.Source {
	case SourceOption, SourceVirtualEnv, SourceConda, SourceDotVenv, SourceVenv:
		// A chosen environment goes before the managed one, so that building the
		// managed one would change nothing by itself.
		return fmt.Sprintf("%s: run `%s`, or run `%s` and choose its environment with --python", what, pip, setup)
	default:
		return fmt.Sprintf("%s: run `%s`, or `%s`", what, setup, pip)
	}
}
