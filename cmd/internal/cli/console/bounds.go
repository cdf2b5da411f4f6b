package console

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/home"
)

// Bounds are the flags of commands whose host runs code: what sessions
// are kept from, what one may use, and how much a result holds. A flag that is not
// given leaves the option to its variable, which the host reads.
type Bounds struct {
	isolation            coppice.Isolation
	memory, cpu, runtime string
	files, processes     string
	processors           string
	output, artifact     string
	cmd                  *cobra.Command // nil: it has none of the flags
}

// boundFlags are the names of the flags.
var boundFlags = []string{
	"isolation", "isolation-write", "isolation-read", "isolation-network", "isolation-loopback", "isolation-host", "isolation-users", "max-memory", "max-cpu", "max-runtime",
	"max-files", "max-processes", "max-processors", "max-output", "max-artifact",
}

// Isolations are the values of --isolation, from the weakest on.
var Isolations = []string{
	kernel.IsolationOff, kernel.IsolationPrivileges, kernel.IsolationLandlock, kernel.IsolationSeccomp,
	kernel.IsolationUser, kernel.IsolationBubblewrap, kernel.IsolationGVisor, kernel.IsolationStrongest,
}

// add adds the flags to a command.
func (b *Bounds) add(cmd *cobra.Command) {
	flags, i := cmd.Flags(), &b.isolation
	b.cmd = cmd
	flags.StringVar(&i.Level, "isolation", "", "what sessions are kept from: "+strings.Join(Isolations, ", ")+" (default: COPPICE_ISOLATION, else privileges, and off with the gateway backend)")
	flags.StringArrayVar(&i.Write, "isolation-write", nil, "a folder that isolated sessions may change, in place of this one; may be repeated")
	flags.StringArrayVar(&i.Read, "isolation-read", nil, "a folder that isolated sessions may read besides the system's; may be repeated")
	flags.BoolVar(&i.Network, "isolation-network", false, "let isolated sessions use the network")
	flags.BoolVar(&i.Loopback, "isolation-loopback", false, "let isolated sessions connect to ports of this machine")
	flags.StringArrayVar(&i.Hosts, "isolation-host", nil, "a host that isolated sessions may reach, through a proxy: api.example.com, *.example.org, git.example.net:8443; may be repeated")
	flags.BoolVar(&i.Users, "isolation-users", false, "give each session a user of its own, with --isolation bubblewrap; it takes root")
	flags.StringVar(&b.memory, "max-memory", "", "how much memory the code of a session may take, with the runner backend: 512M, 2G or bytes of address space, of which a thread maps 72M (default: COPPICE_MAX_MEMORY, else no limit)")
	flags.StringVar(&b.cpu, "max-cpu", "", "how much processor time a cell may use, with the runner backend: 90s, 2m or seconds (default: COPPICE_MAX_CPU, else no limit)")
	flags.StringVar(&b.runtime, "max-runtime", "", "how long a cell may run: 90s, 2m or seconds (default: COPPICE_MAX_RUNTIME, else no limit)")
	flags.StringVar(&b.files, "max-files", "", "how many files the code of a session may have open (default: COPPICE_MAX_FILES, else no limit)")
	flags.StringVar(&b.processes, "max-processes", "", "how many processes of its own a session may have at a time, with the runner backend (default: COPPICE_MAX_PROCESSES, else no limit)")
	flags.StringVar(&b.processors, "max-processors", "", "how many processors a session may keep busy, 0.5 for half of one, with the runner backend and control groups (default: COPPICE_MAX_PROCESSORS, else no limit)")
	flags.StringVar(&b.output, "max-output", "", "how much text a result holds before its middle goes to a file: 100K, 2M or bytes (default: COPPICE_MAX_OUTPUT, else 50K)")
	flags.StringVar(&b.artifact, "max-artifact", "", "how much of one output is kept in a file: 100M, 2G or bytes (default: COPPICE_MAX_ARTIFACT, else 4G)")
}

// Given reports whether one of the flags was given.
func (b *Bounds) Given() bool {
	return b.cmd != nil && slices.ContainsFunc(boundFlags, b.cmd.Flags().Changed)
}

// Isolation is what the flags say of it.
func (b *Bounds) Isolation() coppice.Isolation { return b.isolation }

// Walled reports whether the flags, or COPPICE_ISOLATION in env, keep sessions from
// files: what runs with the rights of the host is then more than they have.
func (b *Bounds) Walled(env []string) bool {
	switch cmp.Or(b.isolation.Level, home.Lookup(env, "COPPICE_ISOLATION")) {
	case "", kernel.IsolationOff, kernel.IsolationPrivileges:
		return false
	default:
		return true
	}
}

// options fills in what the flags say. The error is a UsageError.
func (b *Bounds) options(o coppice.Options) (coppice.Options, error) {
	l, out := &o.Limits, &o.Output
	err := cmp.Or(
		b.isolate(&o),
		given("max-memory", b.memory, &l.Memory, home.Size),
		given("max-cpu", b.cpu, &l.CPU, home.Duration),
		given("max-runtime", b.runtime, &l.Runtime, home.Duration),
		given("max-files", b.files, &l.Files, home.Count),
		given("max-processes", b.processes, &l.Processes, home.Count),
		given("max-processors", b.processors, &l.Processors, home.Share),
		given("max-output", b.output, &out.Budget.Bytes, home.Length),
		given("max-artifact", b.artifact, &out.MaxArtifact, home.Size),
	)
	return o, err
}

// isolate fills in the isolation.
func (b *Bounds) isolate(o *coppice.Options) error {
	i := b.isolation
	if i.Level != "" && !slices.Contains(Isolations, i.Level) {
		return Usagef("--isolation must be one of %s, not %q", strings.Join(Isolations, ", "), i.Level)
	}
	if slices.Contains(append(slices.Clone(i.Write), i.Read...), "") {
		return Usagef("--isolation-write and --isolation-read want a folder; write . for the working directory")
	}
	if more := i.Write != nil || i.Read != nil || i.Network || i.Loopback || i.Hosts != nil || i.Users; more && !b.Walled(o.Env) {
		return Usagef("--isolation-write, --isolation-read, --isolation-network, --isolation-loopback, --isolation-host and --isolation-users say more about an isolation, and there is none; add --isolation landlock or a stronger one")
	}
	if err := Networks(i.Network, i.Loopback, i.Hosts); err != nil {
		return err
	}
	o.Isolation = i
	return nil
}

// Networks refuses flags of the network that contradict each other. The error is a UsageError.
func Networks(network, loopback bool, hosts []string) error {
	switch {
	case len(hosts) > 0 && network:
		return Usagef("--isolation-network allows the whole network, and --isolation-host some hosts of it alone; leave one of them out")
	case len(hosts) > 0 && loopback:
		return Usagef("--isolation-host allows some hosts alone, and --isolation-loopback the ports of this machine; leave --isolation-loopback out, and add --isolation-host 127.0.0.1:PORT")
	}
	return nil
}

// given reads a flag into what to points at; "" leaves that alone. The error is a
// UsageError that names the flag.
func given[T any](flag, text string, to *T, read func(string) (T, error)) error {
	if text == "" {
		return nil
	}
	v, err := read(text)
	if err != nil {
		return Usagef("--%s: %v", flag, err)
	}
	*to = v
	return nil
}

// CallTimeout is the flag of commands whose clients make calls that may name no timeout.
type CallTimeout string

// Add adds the flag to a command.
func (t *CallTimeout) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar((*string)(t), "call-timeout", "", "how long a call may take that names no timeout: 90s, 5m, seconds, or none (default: COPPICE_CALL_TIMEOUT, else 10m)")
}

// Fill fills in what the flag says. The error is a UsageError.
func (t CallTimeout) Fill(o *coppice.Options) error {
	return given("call-timeout", string(t), &o.Timeout, home.Limit)
}
