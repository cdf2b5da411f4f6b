package python

import (
	"context"

	"github.com/coppice-run/coppice/internal/pyenv"
)

// The types of internal/pyenv.
type (
	// Options says where to look for an interpreter.
	Options = pyenv.Options
	// Runtime is an interpreter that runs and is new enough.
	Runtime = pyenv.Runtime
	// Step is one place where an interpreter was looked for.
	Step = pyenv.Step
	// Package is one of the packages that a kernel gateway needs.
	Package = pyenv.Package
	// SetupOptions says what environment to build.
	SetupOptions = pyenv.SetupOptions
	// SetupResult describes an environment.
	SetupResult = pyenv.SetupResult
	// Stage is one report of progress.
	Stage = pyenv.Stage
	// Module is a file of the user's that every session loads.
	Module = pyenv.Module
	// ModuleFunction is a function that a module offers.
	ModuleFunction = pyenv.ModuleFunction
	// NoPythonError says that no interpreter can be used.
	NoPythonError = pyenv.NoPythonError
	// MissingPackagesError says which packages an interpreter lacks.
	MissingPackagesError = pyenv.MissingPackagesError
)

// EnvReady is the state of an environment that can be used.
const EnvReady = pyenv.EnvReady

// OutcomeBroken is that of a step where something is that cannot be used.
const OutcomeBroken = pyenv.OutcomeBroken

// Resolve finds the interpreter for a session.
func Resolve(ctx context.Context, o Options) (Runtime, error) { return pyenv.Resolve(ctx, o) }

// Broken returns the virtual environments that Resolve passes over, as far as that
// shows without running anything.
func Broken(o Options) []Step { return pyenv.Broken(o) }

// Preflight asks an interpreter which of the needed packages it has.
func Preflight(ctx context.Context, rt Runtime) ([]Package, error) { return pyenv.Preflight(ctx, rt) }

// Filter returns what of an environment a kernel may see.
func Filter(env []string) []string { return pyenv.Filter(env) }

// Setup builds the managed environment, or finds it ready.
func Setup(ctx context.Context, o SetupOptions) (SetupResult, error) { return pyenv.Setup(ctx, o) }

// Check says what Setup would find, and changes nothing.
func Check(ctx context.Context, o SetupOptions) (SetupResult, error) { return pyenv.Check(ctx, o) }

// Pinned returns the oldest version of a package that Setup installs.
func Pinned(dist string) string { return pyenv.Pinned(dist) }

// Older says whether version a comes before b.
func Older(a, b string) bool { return pyenv.Older(a, b) }

// Major is the version up to its first dot.
func Major(version string) string { return pyenv.Major(version) }

// Modules finds the modules of the user and of a project.
func Modules(user, project string) []Module { return pyenv.Modules(user, project) }

// DescribeModules lists the functions that modules offer, without running them.
func DescribeModules(ctx context.Context, cache string, modules []Module, find func(context.Context) (Runtime, error)) ([]ModuleFunction, []Module, error) {
	return pyenv.DescribeModules(ctx, cache, modules, find)
}

// Missing are the names to install of the packages without which no gateway can be
// started.
func Missing(packages []Package) []string { return pyenv.Missing(packages) }
