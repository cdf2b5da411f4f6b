package own

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/coppice-run/coppice/internal/file/temp"
)

// maxTwins is how many folders one name may have.
const maxTwins = 1000

// Needed says whether something still needs the folder that a process has left which was killed.
// name is what the folder was taken for. nil: nothing does.
type Needed func(name, folder string) bool

// Folder is a folder that this process has.
type Folder struct {
	mark *mark
	keep bool
	// was is what its mark said of what was found there; "" when there was nothing.
	was  string
	once sync.Once
	err  error // of the end; of once
}

// Take takes a folder in dir for a name, which is one element of a path and has no "~": the
// first that is free, without what a killed process has left there. It need not be there yet.
// keep has it stay when it is released, and may get one that was kept, or of which nothing says
// whose it is, with what is in it.
func Take(dir, name string, keep bool, needed Needed) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of folders: %w", err)
	}
	for n := 1; n <= maxTwins; n++ {
		base := name
		if n > 1 {
			base += twin + strconv.Itoa(n)
		}
		m, err := take(dir, base)
		if err != nil {
			return nil, err
		}
		if m == nil {
			continue
		}
		f := &Folder{mark: m, keep: keep}
		free, made, err := f.free(name, needed)
		if err == nil && free {
			return f, nil
		}
		if err = errors.Join(err, m.leave(made)); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s and its %d twins in %s are taken or needed; remove those that nothing needs", name, maxTwins-1, dir)
}

// free makes the folder ready to be used; false: what is there has to stay. made says that its
// mark was made for the look alone.
func (f *Folder) free(name string, needed Needed) (free, made bool, err error) {
	there, err := f.mark.there()
	if err != nil {
		return false, false, err
	}
	says, err := f.mark.says()
	if err != nil {
		return false, false, err
	}
	made = says == ""
	if there {
		switch dead := says == saysOwn; {
		case says == saysKept, f.keep && !dead:
			f.was = saysKept
		case dead && needed != nil && needed(name, f.mark.folder):
			if !f.keep {
				return false, false, nil
			}
			f.was = saysOwn
		case dead && temp.Remove(f.mark.folder) == nil:
		default:
			return false, made, nil
		}
	}
	will := saysOwn
	if f.keep {
		will = saysKept
	}
	if err := f.mark.say(will); err != nil {
		return false, made, err
	}
	return true, made, nil
}

// Path returns where it is.
func (f *Folder) Path() string { return f.mark.folder }

// Release lets go of the folder, which is removed unless it was to be kept. used says that
// something was done with it: else what was found there stays as it was. Only the first call
// does something; nil has no folder.
func (f *Folder) Release(used bool) error {
	if f == nil {
		return nil
	}
	f.once.Do(func() {
		switch {
		case used && f.keep:
			f.err = f.mark.leave(false)
		case !used && f.was != "":
			f.err = errors.Join(f.mark.say(f.was), f.mark.leave(false))
		default:
			err := temp.Remove(f.mark.folder)
			f.err = errors.Join(err, f.mark.leave(err == nil))
		}
	})
	return f.err
}

// Left is a folder that nobody has.
type Left struct {
	// Name is what it was taken for.
	Name, Folder string
	// Dead says that it is of a process that was killed; else nothing says whose it is.
	Dead bool
}

// Leftovers returns the folders in dir that nobody has and that are not to be kept, by name.
func Leftovers(dir string) ([]Left, error) {
	var left []Left
	err := each(context.Background(), dir, func(l Left) (bool, error) {
		left = append(left, l)
		return false, nil
	})
	return left, err
}

// Clean removes those of processes that were killed which nothing needs, and returns them.
// The end of ctx is looked at between two of them. The error says which could not be removed.
func Clean(ctx context.Context, dir string, needed Needed) (gone []string, err error) {
	err = each(ctx, dir, func(l Left) (bool, error) {
		if !l.Dead || needed != nil && needed(l.Name, l.Folder) {
			return false, nil
		}
		if err := temp.Remove(l.Folder); err != nil {
			return false, fmt.Errorf("remove what was left behind: %w", err)
		}
		gone = append(gone, l.Folder)
		return true, nil
	})
	return gone, err
}

// each calls do for each folder that nobody has and that is not to be kept, while nobody can take
// it, and removes its mark when that says so. Marks without a folder go, too.
func each(ctx context.Context, dir string, do func(Left) (bool, error)) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for what was left behind: %w", err)
	}
	var bases []string
	for _, e := range entries {
		base, is := folderOf(e.Name())
		if !is && e.IsDir() && !strings.HasPrefix(e.Name(), before) {
			base, is = e.Name(), true
		}
		if is {
			bases = append(bases, base)
		}
	}
	slices.Sort(bases)
	var all error
	for _, base := range slices.Compact(bases) {
		if ctx.Err() != nil {
			return errors.Join(all, context.Cause(ctx))
		}
		all = errors.Join(all, look(dir, base, do))
	}
	return all
}

// look is each, for one folder.
func look(dir, base string, do func(Left) (bool, error)) error {
	m, err := take(dir, base)
	if m == nil || err != nil {
		return err
	}
	there, err := m.there()
	says := ""
	if err == nil {
		says, err = m.says()
	}
	if err != nil {
		return errors.Join(err, m.leave(false))
	}
	remove := says == "" || !there && says == saysOwn // it was made for this look, or says nothing
	if there && says != saysKept {
		name, _, _ := strings.Cut(base, twin)
		var gone bool
		gone, err = do(Left{Name: name, Folder: filepath.Join(dir, base), Dead: says == saysOwn})
		remove = remove || gone
	}
	return errors.Join(err, m.leave(remove))
}
