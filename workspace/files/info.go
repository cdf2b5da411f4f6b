package files

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"
)

// Kind is what stands at a path.
type Kind string

// The kinds. Only a KindFile can be opened.
const (
	KindFile      Kind = "file"
	KindDirectory Kind = "directory"
	KindLink      Kind = "symlink"
	KindOther     Kind = "other" // a FIFO, a socket, a device
)

// Info describes what stands at a path; a symbolic link is described itself.
type Info struct {
	// Path is relative to the folder, with slashes; "." is the folder itself.
	Path string `json:"path"`
	Kind Kind   `json:"kind"`
	// Size is in bytes; of a KindFile alone.
	Size int64 `json:"size"`
	// Listed is how long the list of a KindDirectory is for the system, in bytes.
	Listed int64 `json:"-"`
	// Mode has the permission bits.
	Mode fs.FileMode `json:"mode"`
	// Modified is when the content was changed last.
	Modified time.Time `json:"modified"`
	// Target is what a symbolic link says, which need not be there nor inside.
	Target string `json:"target,omitempty"`
}

func describe(at string, i fs.FileInfo) Info {
	info := Info{Path: at, Kind: KindOther, Mode: i.Mode().Perm(), Modified: i.ModTime()}
	switch i.Mode().Type() {
	case 0:
		info.Kind, info.Size = KindFile, i.Size()
	case fs.ModeDir:
		info.Kind, info.Listed = KindDirectory, i.Size()
	case fs.ModeSymlink:
		info.Kind = KindLink
	}
	return info
}

// Stat describes what stands at a path.
func (f *Folder) Stat(name string) (Info, error) {
	at, err := clean(name)
	if err != nil {
		return Info{}, fail("stat", name, err)
	}
	i, err := f.root.Lstat(at)
	if err != nil {
		return Info{}, fail("stat", name, err)
	}
	info := describe(at, i)
	if info.Kind == KindLink {
		if info.Target, err = f.root.Readlink(at); err != nil {
			return Info{}, fail("stat", name, err)
		}
	}
	return info, nil
}

// ListOptions say what List returns. The zero value of each field is its default.
type ListOptions struct {
	// Depth is how many levels below the directory are listed. 0: 1, what is in the
	// directory itself; negative: all. Symbolic links are listed and not followed.
	Depth int
	// Most is how many entries are returned. 0: 100,000.
	Most int
}

// DefaultMost is how many entries List returns that was not told.
const DefaultMost = 100_000

// errMost ends a walk that has found as much as was asked for.
var errMost = errors.New("enough")

// List describes what is in a directory, in the order of names, each directory followed
// by what is in it. more says that there is more than was asked for. What disappears
// while it is listed is left out.
func (f *Folder) List(ctx context.Context, name string, o ListOptions) (list []Info, more bool, err error) {
	at, err := clean(name)
	if err != nil {
		return nil, false, fail("list", name, err)
	}
	o.Depth, o.Most = cmp.Or(o.Depth, 1), cmp.Or(o.Most, DefaultMost)
	list = []Info{}
	err = f.walk(ctx, at, o.Depth, func(i Info) error {
		if len(list) >= o.Most {
			return errMost
		}
		list = append(list, i)
		return nil
	})
	if errors.Is(err, errMost) {
		return list, true, nil
	}
	if err != nil {
		return nil, false, fail("list", name, err)
	}
	return list, false, nil
}

// walk calls visit for everything below a directory, down to a depth; negative: all.
func (f *Folder) walk(ctx context.Context, at string, depth int, visit func(Info) error) error {
	dir, err := f.dirOf(at)
	if err != nil {
		return err
	}
	return f.walkIn(ctx, dir, at, depth, visit)
}

// walkIn walks an open directory, and closes it.
func (f *Folder) walkIn(ctx context.Context, dir *os.Root, at string, depth int, visit func(Info) error) (err error) {
	defer drop(dir, &err)
	entries, err := entriesOf(dir)
	if err != nil {
		return err
	}
	for _, i := range entries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		info := describe(path.Join(at, i.Name()), i)
		if info.Kind == KindLink {
			info.Target, _ = dir.Readlink(i.Name()) // it may have gone
		}
		if err := visit(info); err != nil {
			return err
		}
		if info.Kind != KindDirectory || depth == 1 {
			continue
		}
		below, err := dir.OpenRoot(i.Name() + "/")
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || err != nil && errors.Is(meaning(err), ErrNotDir) {
			continue // it is listed; that is all there is to say
		}
		if err != nil {
			return err
		}
		if err := f.walkIn(ctx, below, info.Path, depth-1, visit); err != nil {
			return err
		}
	}
	return nil
}

// entriesOf reads a directory, in the order of names.
func entriesOf(dir *os.Root) (infos []fs.FileInfo, err error) {
	d, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer drop(d, &err)
	for {
		const batch = 1024
		entries, err := d.ReadDir(batch)
		for _, e := range entries {
			if i, err := dir.Lstat(e.Name()); err == nil { // else it has just gone
				infos = append(infos, i)
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(infos, func(a, b fs.FileInfo) int { return cmp.Compare(a.Name(), b.Name()) })
	return infos, nil
}
