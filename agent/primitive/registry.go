package primitive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/coppice-run/coppice/messages"
)

// ErrPack is matched by every error about a pack or a primitive that cannot be
// installed.
var ErrPack = errors.New("invalid pack")

// Pack is a namespace of primitives.
type Pack struct {
	// Name is the namespace: a letter, then letters, digits and underscores.
	Name string
	// Guidance tells whoever writes code when to use the pack; it may be empty. Models
	// read its first 800 bytes or so in the descriptions of the tools that run code.
	Guidance string
	// BackendName names the backend. "": Name. It need not be an identifier.
	BackendName string
	// Backend is what the handlers work on; nil when they need nothing.
	Backend any
	// Primitives are the pack's functions. The name of the pack is put before
	// names that do not begin with it.
	Primitives []Primitive
}

// Primitive is one function.
type Primitive struct {
	// Name is dotted: "context.remember".
	Name string
	// Description says what it does.
	Description string
	// InputType, OutputType and OutputParsing describe the arguments as a whole,
	// the value, and how to read it.
	InputType, OutputType, OutputParsing string
	// Parameters are in the order of Python's definition.
	Parameters []Parameter
	// BestPractices are at least one sentence on how to use it well.
	BestPractices []string
	// NextSteps is what is worth doing with the value.
	NextSteps []string
	// Pause lets the active time of the cell's call stand still while it runs.
	Pause bool
	// Backend names another backend than that of the pack.
	Backend string
	// Handler serves a call. Its error is raised in the code, see
	// messages.HostError; the value is sent as JSON.
	Handler func(ctx context.Context, c *Call) (any, error)
}

type (
	// Installer is a backend that hears that its pack was installed.
	Installer interface{ OnInstall(*Registry) error }
	// Cloner is a backend that has another one for a fork. Others are shared.
	Cloner interface {
		CloneForFork(Fork) (backend any, err error)
	}
	// CallEnder is a backend that hears of the end of each call, whatever came of
	// it. The result of the call waits until it returns, for no longer than ctx; its
	// error stands in the result and is logged.
	CallEnder interface {
		OnCallEnd(ctx context.Context, end CallEnd) error
	}
	// SessionEnder is a backend that is notified when a session was closed: another one of
	// the same name has nothing of it. It must not block. A session that only loses
	// its interpreter, by a reset, a crash or to make room, goes on.
	SessionEnder interface{ OnSessionEnd(messages.SessionKey) }
	// Closer is a backend that hears that it is not used any more.
	Closer interface{ OnClose() error }
)

// Fork says for whom a registry is copied.
type Fork struct {
	ID      string
	Session messages.SessionKey
}

// CallEnd says how a call ended.
type CallEnd struct {
	Session messages.SessionKey
	Exec    string
	Outcome messages.Outcome
	// Emit emits an event into the stream of the call. It does nothing after
	// OnCallEnd has returned. It is never nil for a backend.
	Emit func(name string, data any)
}

// Registry holds packs. The zero value is not usable; New makes one.
type Registry struct {
	mu         sync.RWMutex
	packs      map[string]Pack   // guarded by mu
	primitives map[string]*entry // by full name; guarded by mu
	backends   map[string]any    // guarded by mu
	owned      map[string]bool   // backends that Close closes; guarded by mu
	closed     bool              // guarded by mu
}

type entry struct {
	Primitive
	pack    string
	backend string // its name; "" when it needs none
	checks  []*check
}

// New returns a registry that has the four primitives of the namespace runtime.
func New() *Registry {
	r := &Registry{packs: map[string]Pack{}, primitives: map[string]*entry{}, backends: map[string]any{}, owned: map[string]bool{}}
	for _, p := range own(r) {
		r.primitives[p.Name] = p
	}
	return r
}

var (
	segment = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)
	dotted  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)*$`)
)

// ownPack is the namespace of the registry's own primitives.
const ownPack = "runtime"

// Install adds a pack. One of the same name is an error, unless replace is set:
// then its primitives are dropped, and its backend is closed when the new one is
// another. The error matches [ErrPack] and changes nothing.
func (r *Registry) Install(p Pack, replace bool) error {
	entries, err := r.entries(&p)
	if err != nil {
		return fmt.Errorf("%w %q: %w", ErrPack, p.Name, err)
	}
	r.mu.Lock()
	old, had := r.packs[p.Name]
	if had && !replace {
		r.mu.Unlock()
		return fmt.Errorf("%w %q: it is installed already; ask for its replacement", ErrPack, p.Name)
	}
	if other, taken := r.backends[p.BackendName]; taken && other != nil && (!had || old.BackendName != p.BackendName) {
		r.mu.Unlock()
		return fmt.Errorf("%w %q: another pack has a backend %q", ErrPack, p.Name, p.BackendName)
	}
	for name, e := range r.primitives {
		if e.pack == p.Name {
			delete(r.primitives, name)
		}
	}
	maps.Copy(r.primitives, entries)
	previous := r.backends[old.BackendName]
	if had {
		delete(r.backends, old.BackendName)
		delete(r.owned, old.BackendName)
	}
	r.packs[p.Name] = p
	if p.Backend != nil {
		r.backends[p.BackendName], r.owned[p.BackendName] = p.Backend, true
	}
	r.mu.Unlock()
	if had && same(previous, p.Backend) {
		return nil
	}
	err = closeBackend(previous)
	if i, ok := p.Backend.(Installer); ok {
		err = errors.Join(err, i.OnInstall(r))
	}
	return err
}

// entries checks a pack and completes its names.
func (r *Registry) entries(p *Pack) (map[string]*entry, error) {
	if !segment.MatchString(p.Name) || p.Name == ownPack {
		return nil, errors.New("the name of a pack is a letter, then letters, digits and underscores, and not runtime")
	}
	if p.BackendName == "" {
		p.BackendName = p.Name
	}
	if strings.ContainsAny(p.BackendName, ". \t\n") {
		return nil, fmt.Errorf("the backend's name %q must be one word without dots", p.BackendName)
	}
	entries := make(map[string]*entry, len(p.Primitives))
	for _, one := range p.Primitives {
		if !strings.HasPrefix(one.Name, p.Name+".") {
			one.Name = p.Name + "." + one.Name
		}
		e, err := newEntry(one, p)
		if err != nil {
			return nil, fmt.Errorf("primitive %s: %w", one.Name, err)
		}
		if entries[one.Name] != nil {
			return nil, fmt.Errorf("there are two primitives %s", one.Name)
		}
		entries[one.Name] = e
	}
	return entries, nil
}

func newEntry(one Primitive, p *Pack) (*entry, error) {
	e := &entry{Primitive: one, pack: p.Name, backend: one.Backend}
	if e.backend == "" && p.Backend != nil {
		e.backend = p.BackendName
	}
	switch {
	case !dotted.MatchString(one.Name):
		return nil, errors.New("the name must be identifiers with dots between them")
	case one.Handler == nil:
		return nil, errors.New("it has no handler")
	case strings.TrimSpace(one.Description) == "":
		return nil, errors.New("it has no description")
	case len(one.BestPractices) == 0:
		return nil, errors.New("it has no best practices: say at least in one sentence how to use it well")
	}
	return e, e.compile()
}

// Remove takes a pack out and closes its backend. False: no such pack.
func (r *Registry) Remove(pack string) (bool, error) {
	r.mu.Lock()
	p, ok := r.packs[pack]
	delete(r.packs, pack)
	for name, e := range r.primitives {
		if e.pack == pack {
			delete(r.primitives, name)
		}
	}
	backend := r.backends[p.BackendName]
	owned := r.owned[p.BackendName]
	if ok {
		delete(r.backends, p.BackendName)
		delete(r.owned, p.BackendName)
	}
	r.mu.Unlock()
	if !ok || !owned {
		return ok, nil
	}
	return true, closeBackend(backend)
}

// Fork returns a registry for a fork: the same packs, and a backend of its own
// for each that is a [Cloner]. Its Close closes those.
func (r *Registry) Fork(f Fork) (*Registry, error) {
	c := New()
	r.mu.RLock()
	maps.Copy(c.packs, r.packs)
	for name, e := range r.primitives {
		if e.pack != ownPack {
			c.primitives[name] = e
		}
	}
	backends := maps.Clone(r.backends)
	r.mu.RUnlock()
	for name, b := range backends {
		cloner, ok := b.(Cloner)
		if !ok {
			c.backends[name] = b
			continue
		}
		own, err := cloner.CloneForFork(f)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("copy the backend %q for fork %s: %w", name, f.ID, err), c.Close())
		}
		c.backends[name], c.owned[name] = own, !same(own, b)
	}
	return c, nil
}

// CallEnders returns the backends that hear of the end of a call, by name. It is for
// the host, which calls each in a goroutine of its own. Any goroutine may call it.
func (r *Registry) CallEnders() map[string]CallEnder {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var enders map[string]CallEnder
	for name, b := range r.backends {
		if e, ok := b.(CallEnder); ok {
			if enders == nil {
				enders = map[string]CallEnder{}
			}
			enders[name] = e
		}
	}
	return enders
}

// SessionEnded tells the backends that a session was closed. It is for the host. Any
// goroutine may call it.
func (r *Registry) SessionEnded(key messages.SessionKey) {
	r.mu.RLock()
	backends := slices.Collect(maps.Values(r.backends))
	r.mu.RUnlock()
	for _, b := range backends {
		if hears, ok := b.(SessionEnder); ok {
			hears.OnSessionEnd(key)
		}
	}
}

// Close closes the backends. It may be called more than once.
func (r *Registry) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	var all []any
	for _, name := range slices.Sorted(maps.Keys(r.owned)) {
		if r.owned[name] {
			all = append(all, r.backends[name])
		}
	}
	r.mu.Unlock()
	var errs []error
	for _, b := range all {
		errs = append(errs, closeBackend(b))
	}
	return errors.Join(errs...)
}

func closeBackend(b any) error {
	if c, ok := b.(Closer); ok {
		return c.OnClose()
	}
	return nil
}

// same compares backends, of which some cannot be compared.
func same(a, b any) (equal bool) {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return comparable(a) && comparable(b) && a == b
}
