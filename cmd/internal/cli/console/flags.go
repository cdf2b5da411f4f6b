package console

import (
	"cmp"
	"errors"
	"math"
	"os/exec"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/internal/home"
	"github.com/coppice-run/coppice/messages"
)

// HostFlags are those of every command that starts a host.
type HostFlags struct {
	// Backend is the name of one, or auto; Python is the option of the host.
	Backend string
	Python  string
	// Chosen says what has chosen the backend in place of whoever named none; "": nothing has.
	Chosen string
	// StartTimeout and InterruptGrace are those of coppice.Options, as they are written.
	StartTimeout, InterruptGrace string
	// PassEnv is that of coppice.Options.
	PassEnv []string
	// Bounds are those of a command that runs the code of its user or of clients, see
	// AddBounded.
	Bounds
}

// TakeRunner takes the runner backend for a flag or a variable, where nobody has named one.
func (f *HostFlags) TakeRunner(by string) {
	f.Backend, f.Chosen = "runner", by+" takes the runner backend where none is named"
}

// Add adds the flags to a command.
func (f *HostFlags) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Backend, "backend", "auto", "how kernels are made: auto, gateway or runner")
	cmd.Flags().StringVar(&f.Python, "python", "", "the Python interpreter to use (default: the active or managed environment)")
	cmd.Flags().StringVar(&f.StartTimeout, "start-timeout", "", "how long a kernel, or the process that it comes from, may take to start, without the time that it waits for a processor: 90s, 2m or seconds (default: COPPICE_START_TIMEOUT, else 2m)")
	cmd.Flags().StringVar(&f.InterruptGrace, "interrupt-grace", "", "how long interrupted code has to stop before its kernel is ended, without the time that it waits for a processor (default: COPPICE_INTERRUPT_GRACE, else 1.5s)")
	cmd.Flags().StringSliceVar(&f.PassEnv, "pass-env", nil, "variables that code gets besides those that always pass: TZ,HTTPS_PROXY,CUDA_* (default: COPPICE_PASS_ENV)")
}

// AddBounded adds the flags to a command that runs the code of its user or of clients,
// and those that say within which bounds.
func (f *HostFlags) AddBounded(cmd *cobra.Command) {
	f.Add(cmd)
	f.add(cmd)
}

// Options fills in what the flags say; g are those of the gateway backend. The error is
// a UsageError.
func (f *HostFlags) Options(g coppice.GatewayOptions, o coppice.Options) (coppice.Options, error) {
	b, err := coppice.BackendNamed(f.Backend, g, coppice.RunnerOptions{})
	if err != nil {
		return o, UsageError{err}
	}
	o.Backend, o.Python, o.PassEnv = b, f.Python, f.PassEnv
	if err := cmp.Or(
		given("start-timeout", f.StartTimeout, &o.StartTimeout, home.Duration),
		given("interrupt-grace", f.InterruptGrace, &o.InterruptGrace, home.Duration),
	); err != nil {
		return o, err
	}
	if o, err = f.options(o); err != nil {
		return o, err
	}
	return o, CheckPython(f.Python)
}

// CheckPython returns a UsageError when --python names no file that could be run, also
// on the search path; "" is right. That it is a Python turns out when it is run.
func CheckPython(name string) error {
	if name == "" {
		return nil
	}
	if _, err := exec.LookPath(name); err != nil && !errors.Is(err, exec.ErrDot) {
		return Usagef("--python: %w; coppice env shows which Python there is", err)
	}
	return nil
}

// ColdGateway starts no kernel that nothing has asked for: a command has one session.
var ColdGateway = coppice.GatewayOptions{WarmKernels: -1}

// The bounds of --timeout.
const (
	minTimeout = time.Second
	maxTimeout = 600 * time.Second
)

// ParseTimeout reads --timeout, seconds or a time with its unit; "" is 0, for none. What
// is not from 1 to 600 s is a UsageError.
func ParseTimeout(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := ParseTime(text)
	if err != nil || d < minTimeout || d > maxTimeout {
		return 0, Usagef("--timeout must be a number of seconds from %d to %d, or a time such as 90s or 5m, not %q", minTimeout/time.Second, maxTimeout/time.Second, text)
	}
	return d, nil
}

// maxSeconds is what a time.Duration holds, about 292 years.
const maxSeconds = float64(math.MaxInt64 / int64(time.Second))

// ParseTime reads a length of time as all flags have it: a number of seconds (5, 1.5),
// or numbers with units (90s, 5m, 1h30m). The error says no more than that it is not one.
func ParseTime(text string) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		if math.IsNaN(seconds) || math.Abs(seconds) > maxSeconds {
			return 0, errNoTime
		}
		return time.Duration(seconds * float64(time.Second)), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, errNoTime
	}
	return d, nil
}

var errNoTime = errors.New("it is no length of time: use seconds, or a unit as in 90s, 5m or 1h30m")

// Time is the value of a flag that is a length of time, see [ParseTime].
type Time time.Duration

// Set reads the flag.
func (t *Time) Set(text string) error {
	d, err := ParseTime(text)
	*t = Time(d)
	return err
}

// String is what the flag says, "0" for what help does not show as a default.
func (t *Time) String() string {
	if *t == 0 {
		return "0"
	}
	return time.Duration(*t).String()
}

// Type is what help calls the flag's value.
func (t *Time) Type() string { return "duration" }

// StageOf says in words what a change in the tree means to someone who waits for a
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
