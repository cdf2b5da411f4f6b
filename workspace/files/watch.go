package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/fsnotify/fsnotify"
)

// Change is what happened to something in a watched directory.
type Change struct {
	Op ChangeOp `json:"op"`
	// Path is what it happened to, relative to the folder; of ChangeLost the watched
	// directory.
	Path string `json:"path"`
}

// ChangeOp says what happened.
type ChangeOp string

// The changes. A file that this package writes is a ChangeMade, after a ChangeMade and a
// ChangeMovedAway of its temporary file.
const (
	ChangeMade      ChangeOp = "made"
	ChangeWritten   ChangeOp = "written"
	ChangeRemoved   ChangeOp = "removed"
	ChangeMovedAway ChangeOp = "moved_away"
	ChangeMode      ChangeOp = "mode"
	// ChangeLost says that more happened than could be told: look again.
	ChangeLost ChangeOp = "lost"
)

// maxWatched is how many directories one Watch looks at: each takes a descriptor.
const maxWatched = 256

// Watch tells what happens in a directory, with all below it when recursive is set, until
// ctx ends, the folder is closed, the directory is removed or tell returns an error,
// and returns why. ready is called once, when nothing that happens from then on is missed; nil: it
// is not called. Both are called in the goroutine of the caller. While
// tell does not return, changes wait in the system's queue; when that is full, a
// ChangeLost says so. Directories below that are made are watched too; what is
// made in them before that is told as made. At most 256 directories are watched: more
// are an error.
func (f *Folder) Watch(ctx context.Context, name string, recursive bool, ready func(), tell func(Change) error) error {
	at, err := clean(name)
	if err != nil {
		return fail("watch", name, err)
	}
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return fail("watch", name, ErrClosed)
	}
	f.watches.Add(1)
	f.mu.Unlock()
	defer f.watches.Done()
	return fail("watch", name, f.watch(ctx, at, recursive, ready, tell))
}

func (f *Folder) watch(ctx context.Context, at string, recursive bool, ready func(), tell func(Change) error) (err error) {
	n, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("ask the system for changes: %w", err)
	}
	w := &watch{f: f, at: at, recursive: recursive, notify: n, dirs: map[string]watched{}, tell: tell}
	defer drop(n, &err)
	defer w.close()
	if err := w.add(ctx, at, false); err != nil {
		return err
	}
	if at != "." {
		// The system does not tell the end of a directory that someone holds open, but of
		// that above it.
		if err := w.look(path.Dir(at), true); err != nil {
			return err
		}
	}
	if ready != nil {
		ready()
	}
	for {
		select {
		case e := <-n.Events:
			if over, err := w.event(ctx, e); err != nil || over {
				return err
			}
		case err := <-n.Errors:
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				return err
			}
			if err := tell(Change{ChangeLost, at}); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-f.ended:
			return ErrClosed
		}
	}
}

// watch is one Watch. It belongs to its caller's goroutine.
type watch struct {
	f         *Folder
	at        string
	recursive bool
	notify    *fsnotify.Watcher
	dirs      map[string]watched // by the name that the system knows them by
	tell      func(Change) error
}

// watched is a directory that is looked at. It is held open: its name for the system
// says which open file it is, so that nothing else can be put in its place.
type watched struct {
	open *os.File
	at   string
	// above says that it is the one above that which the caller watches.
	above bool
}

func (w *watch) close() {
	for _, d := range w.dirs {
		_ = d.open.Close() // it was only looked at
	}
}

// look asks the system for the changes of one directory.
func (w *watch) look(at string, above bool) error {
	if len(w.dirs) >= maxWatched {
		return fmt.Errorf("there are more than %d directories; watch one of those below", maxWatched)
	}
	root, err := w.f.dirOf(at)
	if err != nil {
		return err
	}
	open, err := root.Open(".")
	if err = errors.Join(err, root.Close()); err != nil {
		return err
	}
	name := systemName(open)
	if err := w.notify.Add(name); err != nil {
		_ = open.Close() // it was only looked at
		return fmt.Errorf("ask the system for changes: %w", err)
	}
	w.dirs[filepath.ToSlash(name)] = watched{open, at, above}
	return nil
}

// add watches a directory, and those below it. later says that the directory was made
// while others were watched: what is in it by now is told.
func (w *watch) add(ctx context.Context, at string, later bool) error {
	if err := w.look(at, false); err != nil {
		return err
	}
	return w.f.walk(ctx, at, 1, func(i Info) error {
		if later {
			if err := w.tell(Change{ChangeMade, i.Path}); err != nil {
				return err
			}
		}
		if !w.recursive || i.Kind != KindDirectory {
			return nil
		}
		return gone(w.add(ctx, i.Path, later))
	})
}

// gone drops the error that something is not there any more.
func gone(err error) error {
	if err != nil && (errors.Is(err, fs.ErrNotExist) || errors.Is(meaning(err), ErrNotDir)) {
		return nil
	}
	return err
}

// event tells one event of the system. over: the watched directory is no more.
func (w *watch) event(ctx context.Context, e fsnotify.Event) (over bool, err error) {
	name := filepath.ToSlash(e.Name)
	if _, ok := w.dirs[name]; ok {
		return false, nil // of a watched directory itself: the one above it tells
	}
	cut := strings.LastIndexByte(name, '/')
	d, ok := w.dirs[name[:max(cut, 0)]]
	switch {
	case !ok:
		return false, nil
	case d.above && w.there():
		return false, nil
	case d.above:
		return true, w.tell(Change{ChangeRemoved, w.at})
	}
	at := path.Join(d.at, name[cut+1:])
	for _, one := range changes {
		if e.Op&one.op == 0 {
			continue
		}
		if err := w.tell(Change{one.say, at}); err != nil {
			return false, err
		}
		switch one.say {
		case ChangeMade:
			err = w.made(ctx, at)
		case ChangeRemoved, ChangeMovedAway:
			err = w.drop(at)
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// changes are what the system's events say, in the order in which they are told when one
// says several.
var changes = []struct {
	op  fsnotify.Op
	say ChangeOp
}{{fsnotify.Create, ChangeMade}, {fsnotify.Write, ChangeWritten}, {fsnotify.Remove, ChangeRemoved}, {fsnotify.Rename, ChangeMovedAway}, {fsnotify.Chmod, ChangeMode}}

// there reports whether the watched directory still stands where it was.
func (w *watch) there() bool {
	now, err := w.f.root.Lstat(w.at)
	if err != nil {
		return false
	}
	for _, d := range w.dirs {
		if d.at == w.at && !d.above {
			then, err := d.open.Stat()
			return err == nil && os.SameFile(now, then)
		}
	}
	return false
}

// made watches what was just made, if it is a directory.
func (w *watch) made(ctx context.Context, at string) error {
	if !w.recursive {
		return nil
	}
	if i, err := w.f.Stat(at); err != nil || i.Kind != KindDirectory {
		return nil //nolint:nilerr // what it is now comes as an event of its own
	}
	return gone(w.add(ctx, at, true))
}

// drop ends the watches of a directory that is not there any more, and of those below it.
func (w *watch) drop(at string) error {
	for name, d := range w.dirs {
		if d.above || d.at != at && !strings.HasPrefix(d.at, at+"/") {
			continue
		}
		delete(w.dirs, name)
		if err := w.notify.Remove(filepath.FromSlash(name)); err != nil && !errors.Is(err, fsnotify.ErrNonExistentWatch) {
			return fmt.Errorf("end the watch of %s: %w", d.at, err)
		}
		_ = d.open.Close() // it was only looked at
	}
	return nil
}
