package files

import (
	"errors"
	"io/fs"
)

// MakeDir makes a directory, and those above it that are missing, with permission bits
// of which the umask takes away; 0: 0755. One that is there is no error.
func (f *Folder) MakeDir(name string, mode fs.FileMode) (Info, error) {
	at, err := clean(name)
	if err != nil {
		return Info{}, fail("make", name, err)
	}
	if mode &= bits; mode == 0 {
		mode = 0o755
	}
	if at != "." {
		if err := f.makeAll(at, mode); err != nil {
			return Info{}, fail("make", name, err)
		}
	}
	info, err := f.Stat(at)
	return info, fail("make", name, err)
}

// makeAll makes a directory and those above it.
func (f *Folder) makeAll(at string, mode fs.FileMode) error {
	err := f.root.MkdirAll(at, mode)
	if errors.Is(err, fs.ErrExist) {
		return ErrNotDir // something stands there, and it is none
	}
	return err
}

// MoveOptions say how something is moved. The zero value of each field is its default.
type MoveOptions struct {
	// Replace lets a file take the place of one that is there. false: there must be
	// nothing, or the error matches fs.ErrExist. A directory is never replaced.
	Replace bool
}

// Move gives a file, a directory or a symbolic link another name in the folder. The
// directory that it moves to has to be there.
func (f *Folder) Move(from, to string, o MoveOptions) (info Info, err error) {
	a, err := named(from)
	if err != nil {
		return Info{}, fail("move", from, err)
	}
	b, err := named(to)
	if err != nil {
		return Info{}, fail("move", to, err)
	}
	moved, err := f.root.Lstat(a)
	if err != nil {
		return Info{}, fail("move", from, err)
	}
	there, err := f.root.Lstat(b)
	switch {
	case err == nil && (!o.Replace || there.IsDir() || moved.IsDir()):
		return Info{}, fail("move", to, fs.ErrExist)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return Info{}, fail("move", to, err)
	}
	if !o.Replace && moved.Mode().IsRegular() {
		// A link is made only where nothing stands, also when something has come there by now.
		if err := f.root.Link(a, b); err != nil {
			return Info{}, fail("move", to, err)
		}
		err = f.root.Remove(a)
	} else {
		err = f.root.Rename(a, b)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return Info{}, fail("move", to, err) // what is moved was there: it is the directory
	}
	if err != nil {
		return Info{}, fail("move", from, err)
	}
	f.used.forget()
	info, err = f.Stat(b)
	return info, fail("move", to, err)
}

// Remove removes what stands at a path: a symbolic link itself, never what it points
// to. A directory has to be empty, unless all says that everything in it goes too. What
// is not there is an error that matches fs.ErrNotExist.
func (f *Folder) Remove(name string, all bool) error {
	at, err := named(name)
	if err != nil {
		return fail("remove", name, err)
	}
	if _, err := f.root.Lstat(at); err != nil {
		return fail("remove", name, err)
	}
	if all {
		err = f.root.RemoveAll(at)
	} else {
		err = f.root.Remove(at)
	}
	f.used.forget()
	return fail("remove", name, err)
}
