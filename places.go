package coppice

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/file/own"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/sandbox"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/store"
	"github.com/coppice-run/coppice/workspace"
)

// newWorkspaces makes the part of the tree that has the workspaces.
func (h *Host) newWorkspaces() *workspace.Set {
	h.owner.Ask(h.anyPython) // their processes may come before any interpreter is known
	return workspace.New(workspace.Host{
		Dir: filepath.Join(h.o.dir, workspace.Name), Sessions: h.gateway, Place: h.placeOf, Env: h.o.Env, Owner: &h.owner, Needed: h.needsFolder, Logger: h.o.Logger,
	}, h.o.Workspaces)
}

// sweepWorkspaces removes the folders that killed hosts of this home have left of workspaces.
func (h *Host) sweepWorkspaces() {
	if _, err := own.Clean(context.Background(), filepath.Join(h.o.dir, workspace.Name), h.needsFolder); err != nil {
		h.o.Logger.Warn("the folder of a workspace, which a killed host has left, was not removed", "err", err)
	}
}

// needsFolder reports whether a session on disk may need the folder that a killed host has left of
// a workspace. It is true when that cannot be known.
func (h *Host) needsFolder(name, _ string) bool {
	kept, err := h.onDisk()
	if err != nil || kept == nil {
		return err != nil
	}
	list, err := kept.List(context.Background())
	return err != nil || slices.ContainsFunc(list, func(r store.Header) bool {
		key, session := messages.ParseSessionKey(r.Name)
		return session && key.Workspace == name
	})
}

// onDisk is where the sessions on disk of this home are, also those that another host has kept
// there, where this one keeps none. nil: there are none.
func (h *Host) onDisk() (store.Store, error) {
	if h.asleep != nil {
		return h.o.Store, nil
	}
	dir, key := filepath.Join(h.o.dir, hibernatedFolder), filepath.Join(h.o.dir, hibernationKey)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // as said
	}
	if _, err := os.Stat(key); err != nil { // without it nothing there can be read, and one would be made
		return nil, err
	}
	return store.OpenFolder(context.Background(), store.FolderOptions{Dir: dir, KeyFile: key})
}

// placeOf makes what the kernels of a workspace come from: what those of the host
// come from, unless it has limits, isolation or an environment of its own.
func (h *Host) placeOf(folder string, o workspace.Options) (workspace.Place, error) {
	if r, is := h.o.Backend.(kernel.Remote); is && r.RemoteURL() != "" && o.Total != (workspace.Total{Output: o.Total.Output}) {
		return workspace.Place{}, fmt.Errorf("%w: the kernels of another server can have no limits of a workspace as a whole but that of the output; leave them out", ErrOptions)
	}
	site := h.site()
	if o.Pass != nil {
		site.Env = o.Passing(h.o.Env)
		if h.found != nil { // the same interpreter, but not with the environment that it was found in
			site.Python, site.Found = h.found.Path, nil
		}
	}
	if o.Limits != (kernel.Limits{}) {
		site.Limits = o.Limits
	}
	own := !reflect.ValueOf(o.Isolation).IsZero()
	if own {
		site.Isolation = o.Isolation
		if o.Isolation.Level == "" { // what is asked for besides does not take the host's walls down
			site.Isolation.Level = h.o.Isolation.Level
		}
	}
	// The folder of the workspace is open to it, in place of the folders of the host.
	site.Isolation.Write = append([]string{folder}, o.Isolation.Write...)
	level, about := h.Isolation()
	if walls := level != kernel.IsolationOff && level != kernel.IsolationPrivileges; !walls && !own && site.Limits == h.o.Limits && o.Pass == nil {
		return workspace.Place{Rung: level, About: about, Wall: wall(h.backend), Brood: brood(h.backend)}, nil
	}
	var place workspace.Place
	if site.Isolation.Walled() { // nothing that began in it gets out of its tree of processes
		place.Owner = &process.Owner{}
		place.Owner.Ask(func(context.Context) string { return h.owner.Interpreter() })
		site.Owner = place.Owner
		place.Mark = process.NewMark()
		site.Mark = place.Mark
	}
	b, err := h.provisioner.Provision(site)
	if err != nil {
		return workspace.Place{}, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	place.Backend, place.Rung, place.About, place.Wall, place.Brood = b, level, about, wall(b), brood(b)
	if s, ok := b.(kernel.Served); ok {
		place.Server = kernel.ServerSpec(s.Process())
	}
	if i, ok := b.(kernel.Isolator); ok {
		place.Rung, place.About = i.Isolation()
		if place.Inside = place.Rung == kernel.IsolationGVisor; place.Inside {
			place.Count = countInside
		}
	}
	return place, nil
}

// countInside counts the processes in the sandbox that a process of this host makes.
func countInside(ctx context.Context, pid int) (int, error) {
	command, err := process.Arguments(pid)
	if err != nil {
		return 0, err
	}
	return sandbox.Count(ctx, command)
}

// kernelIn completes the options of a kernel with what its workspace has.
func (h *Host) kernelIn(o kernel.Options) kernel.Options {
	o.Backend = h.kernels.Maker(o.Key.Kernel)
	if o.Key.Workspace == "" {
		return o
	}
	w, err := h.workspaces.Get(o.Key.Workspace)
	if err != nil {
		return o // it has ended: what was begun in it is ended by now
	}
	o.Env, o.Guard = w.Env(), w
	if b := w.Backend(); b != nil {
		o.Backend = b
	}
	o.CellOutput = w.Total().Output
	if l := w.Limits(); l.Runtime > 0 {
		o.CellRuntime = l.Runtime
	}
	return o
}

// wall is what puts processes behind the walls of a backend's kernels; nil: nothing.
func wall(b kernel.Backend) kernel.Confiner {
	c, _ := b.(kernel.Confiner)
	return c
}

// brood is what knows the kernels of a backend that no one has begun; nil: it has none.
func brood(b kernel.Backend) kernel.Brooder {
	c, _ := b.(kernel.Brooder)
	return c
}
