package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/coppice-run/coppice/internal/file"
)

// What an [Error] may be around; ask with errors.Is.
var (
	// ErrPath: the path cannot be one within a folder: it is empty where something has
	// to be named, too long, no UTF-8, or holds a NUL.
	ErrPath = errors.New("the path cannot be used")
	// ErrOutside: the path leaves the folder: it is absolute, has an element "..", or
	// comes by a symbolic link that leads out or is absolute.
	ErrOutside = errors.New("the path leaves the folder")
	// ErrQuota: the folder would hold more than it may.
	ErrQuota = errors.New("the folder's quota is used up")
	// ErrNoSpace: the disk is full that the folder is on.
	ErrNoSpace = errors.New("the disk that the folder is on is full")
	// ErrLink: something was to be written to a symbolic link.
	ErrLink = errors.New("there is a symbolic link; name what it points to")
	// ErrNotEmpty: a directory that is to be removed holds something.
	ErrNotEmpty = errors.New("the directory is not empty")
	// ErrIsDir: there is a directory in place of a file.
	ErrIsDir = errors.New("there is a directory")
	// ErrNotDir: there is something else in place of a directory.
	ErrNotDir = errors.New("there is no directory, but something else")
	// ErrAttributes: the file system keeps no attributes of files, or has no room for them.
	ErrAttributes = file.ErrAttributes
	// ErrClosed: the folder was closed, with its workspace.
	ErrClosed = errors.New("the folder is closed")
)

// Error says what failed with which path.
type Error struct {
	// Op is the operation: "read", "write", "list", "stat", "make", "move", "remove",
	// "copy", "watch".
	Op string
	// Path is what was named, as it was named.
	Path string
	// Err is why.
	Err error
}

// Error returns all three.
func (e *Error) Error() string { return fmt.Sprintf("%s %.200q: %v", e.Op, e.Path, e.Err) }

// Unwrap returns why.
func (e *Error) Unwrap() error { return e.Err }

// fail wraps an error of an operation; nil stays nil.
func fail(op, path string, err error) error {
	if err == nil {
		return nil
	}
	if already, ok := errors.AsType[*Error](err); ok {
		err = already.Err
	}
	return &Error{Op: op, Path: path, Err: meaning(err)}
}

// escapes is what os.Root says when a path leaves it; the error has no name of its own.
// A test holds it to that.
const escapes = "path escapes from parent"

// meaning is an error of the system in the words of this package, without the paths of
// this machine that may stand in it.
func meaning(err error) error {
	for { // they stand in each other
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = e.Err
		} else if e, ok := errors.AsType[*os.LinkError](err); ok {
			err = e.Err
		} else {
			break
		}
	}
	switch {
	case err.Error() == escapes:
		return ErrOutside
	case errors.Is(err, os.ErrClosed):
		return ErrClosed
	case errors.Is(err, syscall.ENOTDIR):
		return ErrNotDir
	case errors.Is(err, syscall.EISDIR):
		return ErrIsDir
	case errors.Is(err, syscall.ENOTEMPTY):
		return ErrNotEmpty
	case errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.EINVAL):
		return fmt.Errorf("%w: %w", ErrPath, err)
	case errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: %w", ErrQuota, err)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	default:
		return err
	}
}
