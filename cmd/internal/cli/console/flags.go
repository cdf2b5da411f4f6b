package console

import (
	"math"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/messages"
)

// HostFlags are those of every command that starts a host.
type HostFlags struct {
	// Backend is the name of one, or auto; Python is the option of the host.
	Backend string
	Python  string
}

// Add adds the flags to a command.
func (f *HostFlags) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Backend, "backend", "auto", "how kernels are made: auto, gateway or runner")
	cmd.Flags().StringVar(&f.Python, "python", "", "the Python interpreter to use (default: the active or managed environment)")
}

// Options fills in what the flags say; g are those of the gateway backend. The error is
// a UsageError.
func (f *HostFlags) Options(g coppice.GatewayOptions, o coppice.Options) (coppice.Options, error) {
	b, err := coppice.BackendNamed(f.Backend, g, coppice.RunnerOptions{})
	if err != nil {
		return o, UsageError{err}
	}
	o.Backend, o.Python = b, f.Python
	return o, nil
}

// ColdGateway starts no kernel that nothing has asked for: a command has one session.
var ColdGateway = coppice.GatewayOptions{WarmKernels: -1}

// ToolDir is the flag of commands whose host may keep tools warm.
type ToolDir string

// Add adds the flag to a command.
func (d *ToolDir) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar((*string)(d), "tool-dir", "", "a folder of tools that code calls as tool.NAME(...), kept warm meanwhile (see coppice tool)")
}

// Launcher is the option of the host, nil when the flag was not given.
func (d ToolDir) Launcher() *launcher.Options {
	if d == "" {
		return nil
	}
	return &launcher.Options{Dir: string(d)}
}

// The bounds of --timeout, in seconds.
const (
	minTimeout = 1
	maxTimeout = 600
)

// ParseTimeout reads --timeout, seconds; "" is 0, for none. What is no number from 1 to
// 600 is a UsageError.
func ParseTimeout(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(seconds) || seconds < minTimeout || seconds > maxTimeout {
		return 0, Usagef("--timeout must be a number of seconds from %d to %d, not %q", minTimeout, maxTimeout, text)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// StageOf says in words what a change in the tree means to somebody who waits for a
// kernel, or "".
func StageOf(e messages.Lifecycle) string {
	c, ok := e.(messages.ChildChanged)
	if !ok || c.To != messages.ChildStarting {
		return ""
	}
	switch c.Kind {
	case "server":
		if c.Key != "kernel-gateway" {
			return "starting Python"
		}
		return "starting the Kernel Gateway"
	case "kernel":
		return "starting a kernel"
	default:
		return ""
	}
}
