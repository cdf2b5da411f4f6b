package notebook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coppice-run/coppice/internal/file"
)

// MaxFile is how large a file may be that Open, OpenOrNew, OpenOutline and NewFile
// read, in bytes: 512 MiB. [Parse] takes any size.
const MaxFile = 512 << 20

// File is a notebook on disk, opened to be edited and saved. It is for one
// goroutine at a time, as its document is.
type File struct {
	// Document is what is edited. Only [File.Replace] replaces it.
	*Document
	// Path is the path that was opened.
	Path string

	// real is Path with symbolic links resolved: what is locked and replaced.
	real string
	// exists says that there was a file when it was read or last saved; disk
	// is then what it held. foreign says that the document does not come from
	// there.
	exists, foreign bool
	disk            saved
	// swept says that what killed programs left of earlier saves was removed.
	swept bool
	// beforeRename, when set, runs under the lock, between the check and the
	// rename. Tests set it.
	beforeRename func()
}

// Open reads a notebook from disk. A missing file is an error of kind ErrNotFound,
// what is no regular file one of kind ErrNotFile, which is returned without a wait,
// and a file of more than MaxFile bytes one of kind ErrTooLarge; the others are
// those of [Parse]. The reading ends with ctx.
func Open(ctx context.Context, path string) (*File, error) {
	f := &File{Path: path}
	real, err := resolve(path)
	if err != nil {
		return nil, openFault(path, err)
	}
	f.real = real
	data, err := file.Read(ctx, real, MaxFile)
	if err != nil {
		return nil, openFault(path, err)
	}
	if f.Document, err = Parse(data); err != nil {
		return nil, withPath(err, path)
	}
	f.exists, f.disk.data = true, data
	return f, nil
}

// resolve follows symbolic links. Its error names path, which not all of filepath do.
func resolve(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real, nil
	}
	if _, named := errors.AsType[*fs.PathError](err); !named {
		err = &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return "", err
}

func openFault(path string, err error) error {
	var kind error
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &Error{Kind: ErrNotFound, Path: path, Err: err}
	case file.IsNotRegular(err):
		kind = ErrNotFile
	case file.IsTooLarge(err):
		kind = ErrTooLarge
	default:
		return err
	}
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		err = inner.Err // the path is in the message already
	}
	return &Error{Kind: kind, Path: path, Err: err}
}

// OpenOrNew is Open, but a missing file is an empty nbformat 4.5 notebook that
// Save will write.
func OpenOrNew(ctx context.Context, path string) (*File, error) {
	f, err := Open(ctx, path)
	if !errors.Is(err, ErrNotFound) {
		return f, err
	}
	real, err := resolveNew(path)
	if err != nil {
		return nil, err
	}
	return &File{Document: New(), Path: path, real: real}, nil
}

// resolveNew returns where a file that does not exist yet will be. A symbolic
// link that leads nowhere leads there.
func resolveNew(path string) (string, error) {
	for range 40 {
		target, err := os.Readlink(path)
		if err != nil {
			return filepath.Abs(path)
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	return "", &fs.PathError{Op: "open", Path: path, Err: errors.New("too many symbolic links")}
}

// NewFile connects a document to a path that Save will write to, such as that
// of a copy. What is at the path now, notebook or not, is replaced by the
// first Save, unless someone changes it before. What cannot be replaced so is an
// error of kind ErrNotFile or ErrTooLarge.
func NewFile(ctx context.Context, path string, d *Document) (*File, error) {
	f := &File{Document: d, Path: path, foreign: true}
	real, err := resolve(path)
	if errors.Is(err, fs.ErrNotExist) {
		f.real, err = resolveNew(path)
		return f, err
	}
	if err != nil {
		return nil, err
	}
	f.real = real
	there, err := file.Open(real)
	if err != nil {
		return nil, openFault(path, err)
	}
	defer func() { _ = there.Close() }() // it was only read
	was := newDigester()
	if _, err := io.Copy(was, file.NewReader(ctx, there, MaxFile)); err != nil {
		return nil, openFault(path, err)
	}
	f.exists, f.disk.digested = true, was.sum()
	return f, nil
}

// Replace makes d the document that Save writes, such as one that was merged from what
// was read. The file is still compared with what was read.
func (f *File) Replace(d *Document) { f.Document, f.foreign = d, true }

// Exists reports whether the notebook was on disk when it was read or last
// saved.
func (f *File) Exists() bool { return f.exists }

// ApplyText is [Document.ApplyText]; an error names the file.
func (f *File) ApplyText(text string, opts *ApplyOptions) (*ApplyReport, error) {
	report, err := f.Document.ApplyText(text, opts)
	return report, withPath(err, f.Path)
}

// Save writes the notebook if it is not what is on disk, and reports whether
// it wrote.
//
// It takes the lock of the file, waiting until ctx ends (then ErrLocked), and
// compares the file with what was read: if someone changed, removed or made
// it meanwhile, nothing is written and the error is ErrChanged. The new
// content goes to a temporary file beside it, which is flushed to disk and
// then takes the notebook's place, so that a reader sees the old notebook or
// the new one. Permission bits stay, and
// owner, group, extended attributes and access control lists as far as the system
// allows; a symbolic link stays and its target is
// replaced; other hard links keep the old content.
//
// The lock is advisory: it keeps two users of this package apart. Against
// others there is the comparison, and the moment between it and the rename.
//
// A program that is killed in the middle leaves the old notebook, and hidden files beside
// it, the lock and half of the new one; the first Save after that removes them.
func (f *File) Save(ctx context.Context) (written bool, err error) {
	if f.exists && !f.edited && !f.foreign {
		return false, nil
	}
	unlock, err := lockFile(ctx, f.real)
	if err != nil {
		return false, withPath(err, f.Path)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	now, err := f.checkUnchanged(ctx)
	if err != nil {
		return false, err
	}
	if f.sameAsDisk() {
		return false, nil
	}
	if !f.swept { // no one else writes here now
		file.RemoveUnfinished(f.real)
		f.swept = true
	}
	wrote := newDigester()
	switch err := f.replace(wrote, now); {
	case errors.Is(err, errSame):
		return false, nil
	case err != nil:
		return false, err
	}
	f.exists, f.foreign, f.disk = true, false, saved{digested: wrote.sum()}
	return true, nil
}

// CheckSave returns why no Save can write where the file is: its folder is not there or
// takes no new file, or the notebook itself may not be written. nil does not promise that
// a Save will: a disk may be full. It is for who does something that cannot be undone before
// the first Save, such as running the cells; it changes nothing, and does not wait for a
// lock that someone else holds.
func (f *File) CheckSave() error {
	if err := tryLock(f.real); err != nil {
		if inner, ok := errors.AsType[*fs.PathError](err); ok {
			err = inner.Err // its path is that of the lock, which says nothing to a person
		}
		return fmt.Errorf("write %s: no file can be made in the folder %s: %w", f.Path, filepath.Dir(f.real), err)
	}
	if !f.exists {
		return nil
	}
	there, err := file.OpenFile(f.real, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("write %s: %w", f.Path, openFault(f.Path, err))
	}
	return there.Close()
}

// sameAsDisk reports whether the edits have made what was read. Of a file that was
// written since it was read, replace finds that out.
func (f *File) sameAsDisk() bool {
	if !f.exists || f.disk.data == nil {
		return false
	}
	to := &comparing{f.disk.data}
	_, err := f.WriteTo(to)
	return err == nil && len(to.rest) == 0
}

// errSame ends a save that would write what is there.
var errSame = errors.New("the content is the same")

// checkUnchanged compares what is on disk with what was read. It returns what
// the file is like now, nil when there is none. The file is opened for
// writing, though nothing is written: a notebook that its owner made read-only
// is not to be replaced either.
func (f *File) checkUnchanged(ctx context.Context) (now fs.FileInfo, err error) {
	disk, err := file.OpenFile(f.real, os.O_RDWR, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !f.exists:
		return nil, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, &Error{Kind: ErrChanged, Path: f.Path, Reason: "it was removed since it was read"}
	case err != nil:
		return nil, openFault(f.Path, err)
	}
	defer func() { err = errors.Join(err, disk.Close()) }()
	if !f.exists {
		return nil, &Error{Kind: ErrChanged, Path: f.Path, Reason: "it was made since it was found missing"}
	}
	same, err := f.disk.same(file.NewReader(ctx, disk, f.disk.most()))
	if err != nil {
		return nil, err
	}
	if !same {
		return nil, &Error{Kind: ErrChanged, Path: f.Path, Reason: "its content is not what was read"}
	}
	return disk.Stat()
}

// equalContent compares a file with bytes, holding little of it.
func equalContent(r io.Reader, want []byte) (bool, error) {
	buf := make([]byte, 1<<16)
	for {
		n, err := r.Read(buf)
		if n > len(want) || !bytes.Equal(buf[:n], want[:n]) {
			return false, nil
		}
		want = want[n:]
		if err == io.EOF {
			return len(want) == 0, nil
		}
		if err != nil {
			return false, err
		}
	}
}

// replace writes the notebook again, and what it writes to wrote too; errSame when that
// is what is there. was is what it is like, nil when there is none yet.
func (f *File) replace(wrote *digester, was fs.FileInfo) error {
	// What the umask leaves of this is the mode of a new notebook.
	o := file.WriteOptions{Mode: 0o666, Like: was, Durable: true}
	o.Before = func() error {
		if f.exists && f.disk.data == nil && f.disk.digested == wrote.sum() {
			return errSame
		}
		if f.beforeRename != nil {
			f.beforeRename()
		}
		return nil
	}
	return file.WriteFrom(f.real, func(to io.Writer) error {
		_, err := f.WriteTo(io.MultiWriter(to, wrote))
		return err
	}, o)
}
