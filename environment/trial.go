package environment

import (
	"context"
	"time"
)

// Names of backends, as package coppice has them.
const (
	backendGateway = "gateway"
	backendRunner  = "runner"
)

// Settings are the options of a host, as far as [Doctor] looks at them. The fields
// are those of coppice.Options with the same names and the same defaults.
type Settings struct {
	Brand, Home, Python string
	Env                 []string
	// Backend is auto, gateway or runner. "": auto.
	Backend, KernelName string
	// GatewayURL and GatewayToken are those of external servers. "":
	// COPPICE_PYTHON_GATEWAY_URL and COPPICE_PYTHON_GATEWAY_TOKEN from Env.
	GatewayURL, GatewayToken string
	StartTimeout             time.Duration
	// Cage keeps sessions of the runner backend from everything but its folders, as
	// far as the system can. nil: the rung that is the default of hosts.
	Cage *Cage
}

func (s Settings) options() Options {
	return Options{Brand: s.Brand, Home: s.Home, Python: s.Python, Env: s.Env}
}

// Cage are the folders that isolated sessions may change, and those that they may
// read besides the system's and the interpreter's.
type Cage struct{ Write, Read []string }

// Trial is what [Doctor] needs of the package that starts hosts; coppice.Trial is
// one. Doctor calls its methods from its own goroutine, one at a time.
type Trial interface {
	// Plan says what a host with these settings would do, without starting
	// anything. problem is why no Kernel Gateway can be started, as
	// [Interpreter.Err] says it. The error says that the settings are invalid.
	Plan(s Settings, problem error) (Plan, error)
	// Run starts a host with these settings, runs a cell in a session of its own,
	// and ends the host before it returns. The error says why the host could not be
	// started; what went wrong later is in Tried.
	Run(ctx context.Context, s Settings, c Cell) (Tried, error)
}

// Plan is what a host would do.
type Plan struct {
	// Backend is what calls would run on, "" when nothing can; Why says why.
	Backend, Why string
	// Warm says how many kernels would wait for new sessions, as a sentence.
	Warm string
}

// Cell is the code of a trial.
type Cell struct {
	// Session begins the name of the session; Cwd is its working directory.
	Session, Cwd string
	Code         string
	// Timeout bounds the cell, with the start of its kernel.
	Timeout time.Duration
}

// Tried is what came of a trial.
type Tried struct {
	// Err says why the cell could not be run, nil when it was.
	Err error
	// OK says that the cell ended without an exception; Text is what it showed, and
	// JSON its first application/json display, nil without one. Took is the time
	// from the first call of the session to its result.
	OK   bool
	Text string
	JSON []byte
	Took time.Duration
	// Level is the rung of isolation that the session was on.
	Level string
	// Forks says whether sessions of the runner backend are forked from a warm
	// interpreter; NoFork says why not, and ForksErr why that is not known. The
	// gateway backend has none of it.
	Forks    bool
	NoFork   string
	ForksErr error
	// Left is what did not end with the host.
	Left []Left
}

// Left is a part of a host's tree that did not end, and why.
type Left struct{ Path, Reason string }
