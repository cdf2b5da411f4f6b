package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/walls"
	"github.com/coppice-run/coppice/internal/custody"
	"github.com/coppice-run/coppice/internal/home"
	"github.com/coppice-run/coppice/internal/machine"
	"github.com/coppice-run/coppice/internal/pyenv"
	"github.com/coppice-run/coppice/internal/pysrc"
	"github.com/coppice-run/coppice/messages"
)

// HostOptions are what a host can say of the backend. The zero value of each field is
// its default.
type HostOptions struct {
	// NoFork starts an interpreter for each session, in 50 ms instead of 2: for
	// modules that do not survive a fork.
	NoFork bool
	// Spares is how many sessions are forked ahead, so that a new one is ready at
	// once. Each costs what an idle session does; they do not count in MaxSessions,
	// and none are kept while memory is low. 0: 2, but not more than MaxSessions;
	// negative: none; at most 64.
	Spares int
}

// Provision returns the backend as a value.
func Provision(o HostOptions) kernel.Provisioner { return provisioner{o} }

type provisioner struct{ o HostOptions }

// Name returns "runner".
func (provisioner) Name() string { return Name }

// Available looks for an interpreter: it needs nothing else.
func (provisioner) Available(ctx context.Context, s *kernel.Site) (string, error) {
	if _ = s.Look(ctx); s.Found == nil { // what a gateway lacks does not matter
		return "", kernel.ErrNoPython
	}
	return "it needs nothing but a Python interpreter", nil
}

// What a session takes with a small library loaded, 32 MiB, and how many a host keeps
// at most that was not told how many: each is a process.
const (
	sessionMemory = 32 << 20
	mostSessions  = 500
)

// Sessions returns as many as the free memory bears.
func (provisioner) Sessions(s kernel.Site) int {
	return kernel.Fitting(machine.Look(home.TempDir(s.Env)).Available, sessionMemory, 8, mostSessions)
}

// Warming says how many sessions wait to be taken.
func (p provisioner) Warming(s kernel.Site) string {
	switch n := p.spares(s.MaxSessions); {
	case p.o.NoFork:
		return "none waits: sessions of the runner backend that are not forked are started when they are asked for"
	case n <= 0:
		return "none waits, as Spares says"
	default:
		return fmt.Sprintf("%d forked sessions of the runner backend wait for new ones", n)
	}
}

// nameServer is the name of the fork server in the tree.
const nameServer = "fork-server"

// Provision makes the backend.
func (p provisioner) Provision(s kernel.Site) (kernel.Backend, error) {
	if s.Limits.Negative() {
		return nil, fmt.Errorf("a limit of sessions is negative: %+v", s.Limits)
	}
	if err := limits(s.Limits).check(); err != nil {
		return nil, err
	}
	rung, err := walls.Absolute(s.Isolation)
	if err != nil {
		return nil, err
	}
	level, description, err := walls.Isolation(rung).Active()
	if err != nil {
		return nil, err
	}
	if err := p.inside(level, s.Limits); err != nil {
		return nil, err
	}
	prelude := ""
	if s.StatusMIME != "" {
		prelude = pysrc.SessionPrelude(s.StatusMIME)
	}
	preload := DefaultPreload
	if s.Hibernate {
		preload = append(slices.Clone(preload), "coppice_runner.rebuild", "coppice_runner.freeze")
	}
	keep, err := p.keep(s, rung)
	if err != nil {
		return nil, err
	}
	server := NewServer(ServerOptions{
		Preload: preload,
		Home:    s.Dir, Python: s.Python, Found: s.Found, Env: s.Env, Isolation: rung, Limits: s.Limits, NoFork: p.o.NoFork, Trace: s.Trace,
		Prelude: prelude, Spares: p.spares(s.MaxSessions), Start: s.Start, Owner: s.Owner, Mark: s.Mark,
		Keep: keep,
	})
	return &provided{
		Backend: New(Options{Server: server, Prelude: prelude, Modules: s.Modules}), Server: server, site: s, level: level, description: description,
	}, nil
}

// inside refuses what sessions cannot have in a sandbox with a kernel of its own.
func (p provisioner) inside(level string, l kernel.Limits) error {
	switch {
	case level != kernel.IsolationGVisor:
		return nil
	case p.o.NoFork:
		return fmt.Errorf("NoFork: sessions on the rung %s are forked from a server in their sandbox; leave NoFork out, or use another rung", level)
	case l.Processors > 0:
		return fmt.Errorf("a limit of processors for each session is not kept to on the rung %s, where they share a sandbox; leave it out, limit all of a workspace (workspace.Total), or use another rung", level)
	}
	return nil
}

// keep returns how sessions outlive their host, nil where they do not. The error is why they
// cannot.
func (p provisioner) keep(s kernel.Site, i kernel.Isolation) (*KeepOptions, error) {
	switch {
	case !s.Keep:
		return nil, nil //nolint:nilnil // they end with it
	case !custody.Supported:
		return nil, fmt.Errorf("KeepSessions: %w", custody.ErrUnsupported)
	case p.o.NoFork:
		return nil, errors.New("KeepSessions: sessions that are not forked end with their host; leave NoFork out")
	case i.Walled():
		return nil, fmt.Errorf("KeepSessions: the walls around sessions (isolation %s) end with their host; use the isolation %s, or leave KeepSessions out", i.Level, kernel.IsolationPrivileges)
	case s.Limits.Processors > 0:
		return nil, errors.New("KeepSessions: a limit of processors needs a control group, which ends with the host; leave one of them out")
	case s.KeepFor < 0:
		return nil, errors.New("KeepFor is negative; use 0 for the default")
	}
	name := sha256.Sum256([]byte(s.KeepName))
	return &KeepOptions{Dir: filepath.Join(s.Dir, "kept", hex.EncodeToString(name[:8])), For: s.KeepFor, Warn: s.Warn}, nil
}

// spares is how many sessions are forked ahead where at most so many may live.
func (p provisioner) spares(sessions int) int {
	const usual = 2
	switch {
	case p.o.Spares < 0:
		return -1
	case p.o.Spares == 0:
		return min(usual, sessions)
	default:
		return min(p.o.Spares, sessions)
	}
}

// provided is the backend of a host, with all that it can do.
type provided struct {
	*Backend
	*Server

	site               kernel.Site
	level, description string
}

// Process returns the fork server.
func (p *provided) Process() (name string, s kernel.Server) { return nameServer, p.Server }

// Leave says that the host ends and leaves its sessions: closing one then leaves it to the
// next host.
func (p *provided) Leave() { p.Server.keep.leave() }

// Inherit takes over what an earlier host has left.
func (p *provided) Inherit(ctx context.Context) ([]kernel.Inherited, error) {
	if p.Server.keep == nil {
		return nil, nil
	}
	return p.Server.keep.inherit(ctx)
}

// Disown ends the session that waits for a start with a key.
func (p *provided) Disown(ctx context.Context, key messages.SessionKey) {
	p.Server.keep.disown(ctx, key)
}

// Forget ends what an earlier host has left under a key, unless a start has taken it over.
func (p *provided) Forget(key messages.SessionKey) { p.Server.keep.forget(key) }

// Kept reports whether sessions would outlive the host.
func (p *provided) Kept() (kept bool, why string) { return p.Server.keep.kept() }

// Isolation returns the rung that sessions are on, and what it does, in words.
func (p *provided) Isolation() (level, description string) { return p.level, p.description }

// Confine puts a program behind the walls that the sessions are behind. Their temporary
// folder is the program's, where the system's own is closed to it.
func (p *provided) Confine(program kernel.Program) (kernel.Confined, error) {
	return walls.Isolation(p.Server.o.Isolation).Confine(program, p.Server.o.Owner.Interpreter(), &p.Server.folders, &p.Server.egress, &p.Server.users)
}

// Refused returns the hosts of the network that were asked for and refused.
func (p *provided) Refused() []kernel.Refusal { return p.Server.egress.Refused() }

// Check looks for the interpreter, unless that was done.
func (p *provided) Check(ctx context.Context) error {
	if p.site.Found != nil {
		return nil
	}
	_, err := pyenv.Resolve(ctx, pyenv.Options{Python: p.site.Python, Home: p.site.Dir, Env: p.site.Env})
	return err
}

var (
	_ kernel.Served   = (*provided)(nil)
	_ kernel.Forker   = (*provided)(nil)
	_ kernel.Sparer   = (*provided)(nil)
	_ kernel.Limiter  = (*provided)(nil)
	_ kernel.Isolator = (*provided)(nil)
	_ kernel.Checker  = (*provided)(nil)
	_ kernel.Closer   = (*provided)(nil)
	_ kernel.Confiner = (*provided)(nil)
	_ kernel.Keeper   = (*provided)(nil)
	_ kernel.Heir     = (*provided)(nil)
)
