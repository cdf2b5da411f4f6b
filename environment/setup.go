package environment

import (
	"context"

	"github.com/coppice-run/coppice/internal/pyenv"
)

// SetupOptions says which Python environment to build.
type SetupOptions struct {
	// Brand and Home are as in [Options]: the environment is
	// <Home>/.<Brand>/python-env.
	Brand, Home string
	// Dir is the environment itself, in place of one in Home.
	Dir string
	// Python is the interpreter to build with. "": python3, then python, on
	// PATH.
	Python string
	// Env is the environment in which pip runs, with its settings for index,
	// proxy and certificates. nil: that of this process.
	Env []string
	// Progress hears what is done. It is called from one goroutine at a time
	// and must not block. nil: progress is not reported.
	Progress func(Stage)
}

type (
	// Stage is one report of progress of [Setup].
	Stage = pyenv.Stage
	// StageName says what Setup is doing.
	StageName = pyenv.StageName
	// SetupResult describes an environment.
	SetupResult = pyenv.SetupResult
	// State says whether an environment can be used.
	State = pyenv.EnvState
)

// The states of an environment.
const (
	Ready      = pyenv.EnvReady
	Absent     = pyenv.EnvAbsent
	Incomplete = pyenv.EnvIncomplete // Setup was interrupted
	Outdated   = pyenv.EnvOutdated   // it runs, with other packages
	Unusable   = pyenv.EnvBroken     // its interpreter does not run
	Foreign    = pyenv.EnvForeign    // a directory with something else
)

// The stages of Setup, in order.
const (
	StageWaiting    = pyenv.StageWaiting    // for another run to finish
	StageFinding    = pyenv.StageFinding    // an interpreter to build with
	StageRemoving   = pyenv.StageRemoving   // an environment that cannot be used
	StageCreating   = pyenv.StageCreating   // the virtual environment
	StageCollecting = pyenv.StageCollecting // packages, one by one
	StageInstalling = pyenv.StageInstalling // all that were collected
	StageChecking   = pyenv.StageChecking   // that they can be imported
	StageReady      = pyenv.StageReady
)

// Setup builds the managed Python environment that the gateway backend runs in
// when there is no virtual environment: pinned versions of jupyter_kernel_gateway
// and ipykernel, checked by hash. When it is there already, Setup returns in a
// fraction of a second. It may be interrupted and run again; runs at the same time
// wait for each other.
//
// The error names the next step; it matches [ErrOptions] when an option is wrong,
// and wraps the cause of ctx's end.
func Setup(ctx context.Context, o SetupOptions) (SetupResult, error) {
	so, err := o.resolve()
	if err != nil {
		return SetupResult{}, err
	}
	return pyenv.Setup(ctx, so)
}

// CheckSetup says what Setup would find, and changes nothing. The error is about
// the options; an environment that is not ready is not one.
func CheckSetup(ctx context.Context, o SetupOptions) (SetupResult, error) {
	so, err := o.resolve()
	if err != nil {
		return SetupResult{}, err
	}
	return pyenv.Check(ctx, so)
}

func (o SetupOptions) resolve() (pyenv.SetupOptions, error) {
	place, err := Options{Brand: o.Brand, Home: o.Home, Env: o.Env}.resolve()
	if err != nil {
		return pyenv.SetupOptions{}, err
	}
	return pyenv.SetupOptions{Home: place.Dir(), Dir: o.Dir, Python: o.Python, Env: place.Env, Progress: o.Progress}, nil
}
