package environment

import (
	"context"

	"github.com/coppice-run/coppice/internal/pyenv"
)

type (
	// Runtime is an interpreter that runs and is new enough.
	Runtime = pyenv.Runtime
	// Step is one place where an interpreter was looked for, and what became of it.
	Step = pyenv.Step
	// Package is one of the packages that a Kernel Gateway needs.
	Package = pyenv.Package
	// NoPythonError says that no interpreter can be used, and why.
	NoPythonError = pyenv.NoPythonError
	// MissingPackagesError says which packages an interpreter lacks, and how to get
	// them.
	MissingPackagesError = pyenv.MissingPackagesError
)

// Find finds the interpreter of a host with these options: Options.Python, or else
// the first that runs of VIRTUAL_ENV, an active conda environment that is not its
// base, .venv and venv in the working directory of this process, the managed
// environment, and python and python3 on PATH. A host has one interpreter: the
// working directories of its sessions do not matter.
//
// Each candidate is run once, for at most a minute. Runtime.Steps tells of those that
// were tried, also with an error. The error is a [*NoPythonError], or matches
// [ErrOptions].
func Find(ctx context.Context, o Options) (Runtime, error) {
	place, err := o.resolve()
	if err != nil {
		return Runtime{}, err
	}
	return pyenv.Resolve(ctx, search(o, place))
}

// Preflight says which packages for a Kernel Gateway an interpreter has. It runs it
// once, for at most a minute, and imports none of them. The error is a
// [*MissingPackagesError] when one is missing; the packages are then returned as
// well.
func Preflight(ctx context.Context, rt Runtime) ([]Package, error) {
	return pyenv.Preflight(ctx, rt)
}

// PassedOver returns the virtual environments that [Find] comes to first and that
// cannot be used, as far as that shows without running anything: each step says
// why. It is nil when the interpreter was named, or with options that are invalid.
func PassedOver(o Options) []Step {
	place, err := o.resolve()
	if err != nil {
		return nil
	}
	return pyenv.Broken(search(o, place))
}

// Broken returns the steps at which something was that cannot be used.
func Broken(steps []Step) []Step {
	var broken []Step
	for _, s := range steps {
		if s.Outcome == pyenv.OutcomeBroken {
			broken = append(broken, s)
		}
	}
	return broken
}
