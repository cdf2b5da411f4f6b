package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/file/own"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// Name is what the workspaces are called in the tree.
const Name = "workspaces"

// Kind is the kind of a workspace in the tree.
const Kind = "workspace"

// Host is what a set needs of its host. All fields are required but Owner, Needed and Logger.
type Host struct {
	// Dir is where the folders are that workspaces have of their own.
	Dir string
	// Sessions returns the actor that has the sessions.
	Sessions func() supervisor.Ref
	// Place makes what the kernels of a workspace come from; the error refuses the
	// workspace. It starts nothing.
	Place func(folder string, o Options) (Place, error)
	// Env is the environment of the host, unfiltered.
	Env []string
	// Owner owns the processes of workspaces that have no walls. nil: nothing does.
	Owner *process.Owner
	// Needed says that something still needs a folder that a killed host has left of a workspace
	// of this name: it stays then, and a new workspace gets another. nil: nothing does.
	Needed own.Needed
	// Logger hears what could not be removed. nil: it is not logged.
	Logger *slog.Logger
}

// Place is what the kernels of a workspace come from. The zero value is the host's own.
type Place struct {
	// Backend makes them. nil: that of the host.
	Backend kernel.Backend
	// Server is the process that they come from. nil: there is none.
	Server *supervisor.Spec
	// Rung is the isolation that they are on, and About what it does, in words.
	Rung, About string
	// Wall puts the processes of the workspace behind the walls that the kernels are
	// behind. nil: there are none.
	Wall kernel.Confiner
	// Brood knows the kernels that were made and that no one has begun. nil: there are none.
	Brood kernel.Brooder
	// Owner owns the processes of the workspace, and its kernels where they have a Server:
	// it ends with the workspace. nil: that of the host does.
	Owner *process.Owner
	// Mark is what its processes are known by. 0: one is made.
	Mark process.Mark
	// Inside says that its kernels run in a kernel of their own, so that this system sees what
	// they run in and none of their processes.
	Inside bool
	// Count counts what runs in the sandbox that a process makes, by its number. nil: nothing does.
	Count func(ctx context.Context, pid int) (int, error)
}

// Set is the workspaces of a host. Make it with New, put its Spec into the tree, and
// Attach it.
type Set struct {
	o      Host
	limits SetOptions
	groups groups

	mu    sync.Mutex
	self  supervisor.Ref         // zero until attached; guarded by mu
	all   map[string]*Workspace  // those that have not ended, and those that end; guarded by mu
	gone  map[string]*EndedError // guarded by mu
	order []string               // of gone; guarded by mu
}

// keptEnds is of how many workspaces that have ended it is known why.
const keptEnds = 1024

// New returns a set.
func New(host Host, o SetOptions) *Set {
	if host.Logger == nil {
		host.Logger = slog.New(slog.DiscardHandler)
	}
	return &Set{o: host, limits: o, all: map[string]*Workspace{}, gone: map[string]*EndedError{}}
}

// Spec is the set's part of the tree.
func (s *Set) Spec() supervisor.Spec {
	return supervisor.Spec{Key: Name, Kind: Name, New: func() supervisor.Behaviour {
		return supervisor.New(supervisor.Options{Name: Name, Strategy: s.strategy(), Handler: &handler{set: s, timers: map[string]func(){}, waiting: map[string][]supervisor.Work{}}})
	}}
}

// strategy is what becomes of workspaces.
func (s *Set) strategy() strategy.Strategy {
	var list []strategy.Strategy
	if s.limits.MaxPerOwner > 0 {
		list = append(list, strategy.Quota(s.limits.MaxPerOwner))
	}
	if s.limits.Max > 0 {
		list = append(list, strategy.LRU(s.limits.Max))
	}
	if len(list) == 0 {
		return nil
	}
	return strategy.Pin(strategy.Chain(list...))
}

// ref is the actor of the set; the zero Ref before the tree stands.
func (s *Set) ref() supervisor.Ref {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.self
}

// tell sends a message to the actor of the set; after its end, nothing needs it.
func (s *Set) tell(msg any) { s.ref().Tell(msg) }

// Open makes a workspace, or returns the one of this name that is there: it has to be
// made alike, or o to be zero. It returns when the folder is there. The error is an
// *OptionsError, an *ExistsError, matches ErrNoPlace, or says why the folder cannot be
// used.
func (s *Set) Open(ctx context.Context, name string, o Options) (*Workspace, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	asked := o.Zero()
	o, err := o.settle()
	if err != nil {
		return nil, err
	}
	if w, err := s.Get(name); err == nil {
		if asked || w.o.same(o) {
			return w, nil
		}
		return nil, &ExistsError{name}
	}
	folder, has, err := s.claimFolder(ctx, name, o)
	if err != nil {
		return nil, fmt.Errorf("make the workspace %s: %w", name, err)
	}
	place, err := s.o.Place(folder, o)
	if err != nil {
		return nil, fmt.Errorf("make the workspace %s: %w", name, errors.Join(err, has.Release(false)))
	}
	now := time.Now()
	w := &Workspace{set: s, name: name, o: o, made: now, last: now, folder: folder, own: has, place: place, mark: cmp.Or(place.Mark, process.NewMark()), kernels: map[int]root{}, done: make(chan struct{}), labels: o.Labels, endAt: o.EndAt, idleEnd: o.IdleEnd}
	w.unclaim = w.owner().Claim(w.mark)
	if w.group, w.kept, err = s.groups.new(ctx, o.Total, place.Inside, place.Count != nil, s.limits.looks); err != nil {
		w.giveUp()
		return nil, fmt.Errorf("make the workspace %s: %w", name, err)
	}
	made, err := supervisor.Ask[*Workspace](ctx, s.ref(), create{w, asked})
	switch {
	case err != nil && ctx.Err() != nil:
		// It may be on its way: then it ends, perhaps before its folder had an actor that
		// would remove what is its own.
		if there, err := supervisor.Ask[bool](context.WithoutCancel(ctx), s.ref(), withdraw{w}); err == nil && there {
			go func() { // ends with the workspace, at the latest with the tree
				<-w.done
				w.giveUp()
			}()
		} else {
			w.giveUp()
		}
		return nil, fmt.Errorf("make the workspace %s: %w", name, err)
	case made != w:
		w.giveUp()
	}
	if err != nil {
		return nil, s.meaning(w, err)
	}
	return made, nil
}

// claimFolder returns the folder of a workspace that is to be made, and the right to it where it is
// the workspace's own: once nothing is left of an earlier one of its name, which has that folder.
func (s *Set) claimFolder(ctx context.Context, name string, o Options) (string, *own.Folder, error) {
	s.mu.Lock()
	earlier := s.all[name]
	s.mu.Unlock()
	if earlier != nil && earlier.Err() != nil {
		select {
		case <-earlier.done:
		case <-ctx.Done():
			return "", nil, fmt.Errorf("wait for the end of the earlier one: %w", context.Cause(ctx))
		}
	}
	if o.Folder != "" {
		return o.Folder, nil, nil
	}
	has, err := own.Take(s.o.Dir, name, o.KeepFolder, s.o.Needed)
	if err != nil {
		return "", nil, fmt.Errorf("take a folder for it: %w", err)
	}
	return has.Path(), has, nil
}

// Get returns a workspace that has not ended. The error is an *EndedError, or matches
// ErrUnknown.
func (s *Set) Get(name string) (*Workspace, error) {
	s.mu.Lock()
	w, gone := s.all[name], s.gone[name]
	s.mu.Unlock()
	switch {
	case w != nil:
		return w, w.Err()
	case gone != nil:
		return nil, gone
	default:
		return nil, fmt.Errorf("%w: %.80q", ErrUnknown, name)
	}
}

// Filter chooses workspaces. The zero value takes all.
type Filter struct {
	// Labels have to be there with these values; "" as the value: with any.
	Labels map[string]string
	// Owner has to be this one. "": any.
	Owner string
}

func (f Filter) takes(i Info) bool {
	for k, v := range f.Labels {
		if has, ok := i.Labels[k]; !ok || v != "" && v != has {
			return false
		}
	}
	return f.Owner == "" || f.Owner == i.Owner
}

// List describes the workspaces that have not ended, in the order of their names.
func (s *Set) List(f Filter) []Info {
	all := s.workspaces()
	list := make([]Info, 0, len(all))
	for _, w := range all {
		if i := w.Info(); i.Ended == "" && f.takes(i) {
			list = append(list, i)
		}
	}
	slices.SortFunc(list, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// workspaces are all that there are, ended ones too.
func (s *Set) workspaces() []*Workspace {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.all))
}

// Followed is how many processes run whose output somebody reads, in all workspaces: who waits
// for the end of one does. Any goroutine may call it.
func (s *Set) Followed() int {
	n := 0
	for _, w := range s.workspaces() {
		_, running := w.roots()
		for _, p := range running {
			if p.Followed() {
				n++
			}
		}
	}
	return n
}

// ReleaseOwner ends the workspaces of an owner, and returns when they have ended, or
// with ctx.
func (s *Set) ReleaseOwner(ctx context.Context, owner string) error {
	var all []*Workspace
	for _, i := range s.List(Filter{Owner: owner}) {
		if w, err := s.Get(i.Name); err == nil && owner != "" {
			s.tell(end{w, ReasonOwner, fmt.Sprintf("its owner %s has left", owner)})
			all = append(all, w)
		}
	}
	for _, w := range all {
		select {
		case <-w.done:
		case <-ctx.Done():
			return fmt.Errorf("wait for the end of the workspaces of %s: %w", owner, context.Cause(ctx))
		}
	}
	return nil
}

// meaning is an error of the tree in the words of this package.
func (s *Set) meaning(w *Workspace, err error) error {
	switch {
	case errors.Is(err, supervisor.ErrOverloaded):
		return &noPlaceError{err}
	case errors.Is(err, supervisor.ErrNoProcess), errors.Is(err, supervisor.ErrGone), errors.Is(err, supervisor.ErrDraining), errors.Is(err, supervisor.ErrEnded):
		return &EndedError{w.name, ReasonShutdown, "its host has been shut down", time.Now()}
	default:
		return fmt.Errorf("the workspace %s: %w", w.name, err)
	}
}

// forget takes out a workspace of which nothing is left.
func (s *Set) forget(w *Workspace) {
	ended, _ := errors.AsType[*EndedError](w.Err())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[w.name] != w {
		return
	}
	delete(s.all, w.name)
	if _, known := s.gone[w.name]; !known {
		s.order = append(s.order, w.name)
	}
	s.gone[w.name] = ended
	for len(s.order) > keptEnds {
		delete(s.gone, s.order[0])
		s.order = s.order[1:]
	}
}
