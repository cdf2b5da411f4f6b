package coppice

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/internal/home"
	"github.com/coppice-run/coppice/internal/hostcall"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/pyenv"
	"github.com/coppice-run/coppice/messages"
)

// never is a time that does not come.
const never = 100 * 365 * 24 * time.Hour

// WithDefaults returns the options with each zero field replaced by its default, as
// the fields' comments name it, but for MaxSessions, which depends on the machine: that
// is settled when the backend is chosen. It looks at nothing but the options: no variable, no
// file. [Start] calls it; a program may call it to show what a host would use.
func (o Options) WithDefaults() Options {
	o.Backend = cmp.Or(o.Backend, Auto())
	o.KernelMode = cmp.Or(o.KernelMode, messages.ModeSession)
	o.Replay = cmp.Or(o.Replay, ReplayNever)
	o.Hibernate = cmp.Or(o.Hibernate, hibernate.Never)
	o.MaxWaiting = max(cmp.Or(o.MaxWaiting, math.MaxInt32), 0)
	o.IdleTTL = orNever(cmp.Or(o.IdleTTL, 5*time.Minute), never)
	o.Heartbeat = cmp.Or(max(o.Heartbeat, 0), 5*time.Second)
	o.HeartbeatCeiling = cmp.Or(o.HeartbeatCeiling, 120*o.Heartbeat)
	starting := opportunity.Starting(o.StartTimeout, o.StartCeiling)
	o.StartTimeout, o.StartCeiling = starting.Opportunity, starting.Ceiling
	o.Timeout = orNever(cmp.Or(o.Timeout, 10*time.Minute), NoTimeout)
	o.InputTimeout = cmp.Or(o.InputTimeout, 5*time.Minute)
	o.HostCalls = o.HostCalls.withDefaults()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// orNever is d, or without when d is negative.
func orNever(d, without time.Duration) time.Duration {
	if d < 0 {
		return without
	}
	return d
}

// Validate says what is wrong with the options, with the name of the field and the
// next step; the error matches [ErrOptions]. Zero fields are never wrong. It looks at
// nothing but the options: whether a backend can be had is known by [Start] alone.
func (o Options) Validate() error {
	if err := o.validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return nil
}

func (o Options) validate() error {
	for _, b := range []Backend{o.Backend, o.Beside} {
		if v, ok := b.(kernel.Validator); ok {
			if err := v.Validate(); err != nil {
				return err
			}
		}
	}
	if err := oneOf("kernel mode", o.KernelMode, "", messages.ModeSession, messages.ModePerCall); err != nil {
		return err
	}
	if err := oneOf("replay policy", o.Replay, "", ReplayNever, ReplayOnce); err != nil {
		return err
	}
	if err := oneOf("hibernation", o.Hibernate, "", hibernate.Never, hibernate.Lossless, hibernate.Lossy); err != nil {
		return err
	}
	if _, err := isolationLevel(o.Isolation.Level); err != nil {
		return err
	}
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"MaxSessions", int64(o.MaxSessions)},
		{"MaxPerOwner", int64(o.MaxPerOwner)},
		{"MaxRSS", o.MaxRSS},
		{"HeartbeatCeiling", int64(o.HeartbeatCeiling)},
		{"KeepFor", int64(o.KeepFor)},
		{"StartTimeout", int64(o.StartTimeout)},
		{"StartCeiling", int64(o.StartCeiling)},
		{"InterruptGrace", int64(o.InterruptGrace)},
		{"InputTimeout", int64(o.InputTimeout)},
	} {
		if f.value < 0 {
			return fmt.Errorf("%s is negative; use 0 for the default", f.name)
		}
	}
	for _, name := range o.PassEnv {
		if names := pyenv.PassNames(name); len(names) != 1 || names[0] != name || name == "*" || strings.ContainsAny(name, "=\x00") {
			return fmt.Errorf("PassEnv: %q is not the name of a variable, or the beginning of names and *", name)
		}
	}
	return hostcall.Check(o.HostCalls.Functions)
}

// oneOf refuses a word that is none of those that are known; the first is the empty
// one, for the default.
func oneOf[T ~string](what string, v T, known ...T) error {
	if slices.Contains(known, v) {
		return nil
	}
	list := ""
	for _, k := range known[1:] {
		list += ", " + string(k)
	}
	return fmt.Errorf("the %s %q is not one of %s", what, v, list[2:])
}

// FromEnvironment returns the options with what variables of o.Env say in place of
// fields that are zero: COPPICE_HOME and HOME for Home, COPPICE_ARTIFACTS_DIR and
// COPPICE_SESSION_FILE for Output.Artifacts, COPPICE_PYTHON_IPC_TRACE for TraceIPC,
// COPPICE_START_TIMEOUT, COPPICE_INTERRUPT_GRACE and COPPICE_CALL_TIMEOUT for StartTimeout,
// InterruptGrace and Timeout (as "90s", or a number of seconds), COPPICE_MAX_MEMORY, _CPU,
// _RUNTIME, _FILES, _PROCESSES and _PROCESSORS for Limits (sizes as "512M"),
// COPPICE_MAX_OUTPUT and COPPICE_MAX_ARTIFACT for Output, COPPICE_ISOLATION for
// Isolation.Level, and those that the backend knows, as COPPICE_PYTHON_GATEWAY_URL. Where Level
// comes from its variable, COPPICE_ISOLATION_WRITE, _READ, _NETWORK and _USERS are heard,
// too: they loosen no isolation that the program has chosen. The error matches
// [ErrOptions] and names the variable. [Start] calls it.
func (o Options) FromEnvironment() (Options, error) {
	place, err := home.Home{Brand: o.Brand, Path: o.Home, Env: o.Env}.Resolve()
	if err != nil {
		return o, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	o.Brand, o.Home, o.Env = place.Brand, place.Path, place.Env
	if len(o.PassEnv) > 0 {
		all := append(pyenv.PassNames(home.Lookup(o.Env, pyenv.PassVariable)), o.PassEnv...)
		slices.Sort(all)
		o.Env = append(slices.Clone(o.Env), pyenv.PassVariable+"="+strings.Join(slices.Compact(all), ","))
	}
	o.Output = o.Output.fromEnvironment(o.Env, place.Dir())
	o.TraceIPC = o.TraceIPC || home.SwitchedOn(o.Env, "PI_PYTHON_IPC_TRACE")
	if err := o.fill(); err != nil {
		return o, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if b, ok := cmp.Or(o.Backend, Auto()).(kernel.Configurable); ok {
		if o.Backend, err = b.FromEnvironment(o.Env); err != nil {
			return o, fmt.Errorf("%w: %w", ErrOptions, err)
		}
	}
	return o, nil
}

// fill reads the variables of fields that are numbers, times and words. The error names
// the variable.
func (o *Options) fill() error {
	env, l, i := o.Env, &o.Limits, &o.Isolation
	chosen := i.Level != ""
	err := cmp.Or(
		home.Fill(env, "COPPICE_START_TIMEOUT", &o.StartTimeout, home.Duration),
		home.Fill(env, "COPPICE_INTERRUPT_GRACE", &o.InterruptGrace, home.Duration),
		home.Fill(env, "COPPICE_CALL_TIMEOUT", &o.Timeout, home.Limit),
		home.Fill(env, "COPPICE_MAX_MEMORY", &l.Memory, home.Size),
		home.Fill(env, "COPPICE_MAX_CPU", &l.CPU, home.Duration),
		home.Fill(env, "COPPICE_MAX_RUNTIME", &l.Runtime, home.Duration),
		home.Fill(env, "COPPICE_MAX_FILES", &l.Files, home.Count),
		home.Fill(env, "COPPICE_MAX_PROCESSES", &l.Processes, home.Count),
		home.Fill(env, "COPPICE_MAX_PROCESSORS", &l.Processors, home.Share),
		home.Fill(env, "COPPICE_MAX_OUTPUT", &o.Output.Budget.Bytes, home.Length),
		home.Fill(env, "COPPICE_MAX_ARTIFACT", &o.Output.MaxArtifact, home.Size),
		home.Fill(env, "COPPICE_ISOLATION", &i.Level, isolationLevel),
	)
	if err != nil || chosen || i.Level == "" {
		return err
	}
	i.Network = i.Network || home.SwitchedOn(env, "COPPICE_ISOLATION_NETWORK")
	i.Users = i.Users || home.SwitchedOn(env, "COPPICE_ISOLATION_USERS")
	i.Loopback = i.Loopback || home.SwitchedOn(env, "COPPICE_ISOLATION_LOOPBACK")
	return cmp.Or(
		home.FillList(env, "COPPICE_ISOLATION_WRITE", &i.Write),
		home.FillList(env, "COPPICE_ISOLATION_READ", &i.Read),
		home.FillWords(env, "COPPICE_ISOLATION_HOSTS", &i.Hosts),
	)
}

// isolationLevel refuses a word that is no rung.
func isolationLevel(text string) (string, error) {
	return text, oneOf("isolation", text, "", kernel.IsolationOff, kernel.IsolationPrivileges, kernel.IsolationLandlock,
		kernel.IsolationSeccomp, kernel.IsolationUser, kernel.IsolationBubblewrap, kernel.IsolationGVisor, kernel.IsolationStrongest)
}

// resolved is Options without open questions.
type resolved struct {
	Options
	dir  string // ~/.<brand>
	temp string // removed at the end; "" when there is nothing to remove
}

// resolve settles what the options leave open. The error matches ErrOptions.
func (o Options) resolve() (resolved, error) {
	o, err := o.FromEnvironment()
	if err != nil {
		return resolved{Options: o}, err
	}
	if err := o.Validate(); err != nil {
		return resolved{Options: o}, err
	}
	o = o.WithDefaults()
	o.HostCalls.Functions = slices.Clone(o.HostCalls.Functions)
	return resolved{Options: o, dir: home.Home{Brand: o.Brand, Path: o.Home, Env: o.Env}.Dir()}, nil
}

func (o HostCallOptions) withDefaults() HostCallOptions {
	o.MaxCalls = cmp.Or(o.MaxCalls, 10_000)
	o.MaxAtOnce = cmp.Or(max(o.MaxAtOnce, 0), 64)
	return o
}

// hostCalls says that code may call the host. Calls with functions of their own
// need at least one that every call has.
func (r resolved) hostCalls() bool {
	return len(r.HostCalls.Functions) > 0 || len(r.HostCalls.Packs) > 0 || r.HostCalls.Selfref != nil || r.Launcher != nil
}

// fromEnvironment finds the folder of artifacts that the options leave open, "" when
// the environment names none either; dir is ~/.<brand>.
func (o OutputOptions) fromEnvironment(env []string, dir string) OutputOptions {
	session := home.Lookup(env, "PI_SESSION_FILE")
	switch named := home.Lookup(env, "PI_ARTIFACTS_DIR"); {
	case o.Artifacts != "":
	case named != "":
		o.Artifacts = named
	case strings.HasSuffix(session, ".jsonl"):
		o.Artifacts = strings.TrimSuffix(session, ".jsonl")
	case o.KeepArtifacts:
		o.Artifacts = filepath.Join(dir, "artifacts")
	}
	return o
}

// skipCheck says whether the interpreter's packages are taken for granted.
func (r resolved) skipCheck() bool { return home.SwitchedOn(r.Env, "PI_PYTHON_SKIP_CHECK") }

// clean removes what only this host needed.
func (r resolved) clean() error {
	if r.temp == "" {
		return nil
	}
	return os.RemoveAll(r.temp)
}
