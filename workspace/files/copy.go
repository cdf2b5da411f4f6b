package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/coppice-run/coppice/internal/file"
)

// copyPiece is how much of a file is copied between two looks at the context. The system
// copies it, where it can without reading it.
const copyPiece = 64 << 20

// CopyTo copies all that is in the folder into another one, which has to be empty: files
// with their content, permission bits and times, directories, and symbolic links as they
// are; one that names something in this folder by its absolute path names the same in the
// other. Hard links become files of their own. What can be no file of another folder, such as
// a socket or a FIFO, fails with a *file.NotRegularError, and so does what may not be read.
// After an error the other folder holds a part.
//
// What changes meanwhile is copied as it was met, and what goes is not copied: whoever wants
// the folder as it was at one moment keeps others from it. Temporary files of writes that are
// under way are left out.
func (f *Folder) CopyTo(ctx context.Context, to *Folder) error {
	from, err := f.root.OpenRoot(".")
	if err != nil {
		return fail("copy", ".", err)
	}
	into, err := to.root.OpenRoot(".")
	if err != nil {
		return fail("copy", ".", errors.Join(err, from.Close()))
	}
	defer to.used.forget() // links and directories have their size too
	c := copying{ctx: ctx, from: f, to: to}
	at, err := c.directory(from, into, ".")
	return fail("copy", at, err)
}

// copying is one copy of a folder.
type copying struct {
	ctx      context.Context //nolint:containedctx // it lives as long as one call
	from, to *Folder
}

// directory copies what is in an open directory into another one, and closes both. It
// returns what it was at when it failed.
func (c copying) directory(from, into *os.Root, at string) (failed string, err error) {
	defer drop(from, &err)
	defer drop(into, &err)
	entries, err := entriesOf(from)
	if err != nil {
		return at, err
	}
	for _, i := range entries {
		below := path.Join(at, i.Name())
		if c.ctx.Err() != nil {
			return below, context.Cause(c.ctx)
		}
		switch i.Mode().Type() {
		case 0:
			if unfinished.MatchString(i.Name()) {
				continue
			}
			err = c.file(from, into, i)
		case fs.ModeSymlink:
			err = c.link(from, into, i.Name())
		case fs.ModeDir:
			var deeper string
			if deeper, err = c.below(from, into, i, below); deeper != "" {
				below = deeper
			}
		default:
			err = &file.NotRegularError{Kind: kindOf(i.Mode())}
		}
		if err != nil {
			return below, err
		}
	}
	return "", nil
}

// below copies a directory. Its permissions and its time come last: they may forbid what is
// in it, which changes the time.
func (c copying) below(from, into *os.Root, i fs.FileInfo, at string) (failed string, err error) {
	inner, err := from.OpenRoot(i.Name() + "/")
	if err != nil {
		return "", unlessGone(err)
	}
	if err := into.Mkdir(i.Name(), 0o700); err != nil {
		return "", errors.Join(err, inner.Close())
	}
	target, err := into.OpenRoot(i.Name() + "/")
	if err != nil {
		return "", errors.Join(err, inner.Close())
	}
	if failed, err := c.directory(inner, target, at); err != nil {
		return failed, err
	}
	return "", errors.Join(into.Chmod(i.Name(), i.Mode().Perm()), into.Chtimes(i.Name(), i.ModTime(), i.ModTime()))
}

// unlessGone is why something of a folder cannot be read, nil when it is there no more.
func unlessGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// link copies a symbolic link.
func (c copying) link(from, into *os.Root, name string) error {
	target, err := from.Readlink(name)
	if err != nil {
		return unlessGone(err)
	}
	if rest, ok := strings.CutPrefix(target, c.from.dir); ok && (rest == "" || os.IsPathSeparator(rest[0])) {
		target = filepath.Join(c.to.dir, rest)
	}
	return into.Symlink(target, name)
}

// file copies a regular file.
func (c copying) file(from, into *os.Root, i fs.FileInfo) (err error) {
	in, err := file.OpenIn(from, i.Name())
	if err != nil {
		return unlessGone(err)
	}
	defer drop(in, &err)
	account, err := c.to.store(c.ctx, 0)
	if err != nil {
		return err
	}
	defer func() { account.done(err == nil) }()
	out, err := into.OpenFile(i.Name(), os.O_WRONLY|os.O_CREATE|os.O_EXCL|file.NonBlock, 0o600)
	if err != nil {
		return err
	}
	if err = c.content(out, in, account); err == nil {
		err = copyAttributes(out, in)
	}
	if err == nil {
		err = out.Chmod(i.Mode().Perm())
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return into.Chtimes(i.Name(), i.ModTime(), i.ModTime())
}

// copyAttributes copies those that belong to the user.
func copyAttributes(out, in *os.File) error {
	all, err := file.Attributes(in, "")
	if err != nil {
		return err
	}
	return file.SetAttributes(out, all)
}

// content copies what a file holds, piece by piece.
func (c copying) content(out, in *os.File, account *storing) error {
	for {
		if c.ctx.Err() != nil {
			return context.Cause(c.ctx)
		}
		n, err := io.CopyN(out, in, copyPiece)
		if over := account.take(n); over != nil {
			return over
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("copy what it holds: %w", err)
		}
	}
}
