package notebook

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/coppice-run/coppice/internal/file"
)

// lockPoll is how often a held lock is tried again.
const lockPoll = 20 * time.Millisecond

// lockFile takes the lock of a notebook: a flock on a hidden file beside it,
// since the notebook itself is replaced by each save. Whoever holds the lock
// removes that file when done, so none is left lying about; a waiter then
// finds that what it locked is no longer what is at the path, and starts over.
// A program that is killed while it saves leaves the file: it keeps no one out, since
// the lock ended with the program, and the next one to save takes it over and removes it.
//
// On Windows an open file cannot be removed; there the file is removed after
// the lock was released, if no one else has opened it.
func lockFile(ctx context.Context, notebook string) (unlock func() error, err error) {
	path := lockPath(notebook)
	for {
		l := newLock(path)
		if ok, err := l.TryLockContext(ctx, lockPoll); err != nil || !ok {
			if ctx.Err() != nil {
				return nil, &Error{Kind: ErrLocked, Err: context.Cause(ctx)}
			}
			return nil, err
		}
		if current(l, path) {
			return func() error { return release(l, path) }, nil
		}
		if err := l.Unlock(); err != nil {
			return nil, err
		}
	}
}

// tryLock makes and removes the lock file of a notebook, as a save does, but waits for
// nobody: a lock that someone else holds shows that there can be one.
func tryLock(notebook string) error {
	path := lockPath(notebook)
	l := newLock(path)
	ok, err := l.TryLock()
	switch {
	case err != nil || !ok:
		return err
	case current(l, path):
		return release(l, path)
	default: // someone else has just removed it
		return l.Unlock()
	}
}

// newLock is a lock that nobody has taken. Others who may write the notebook must be able
// to open its file, which holds nothing.
func newLock(path string) *flock.Flock {
	return flock.New(path, flock.SetPermissions(0o644), flock.SetFlag(os.O_CREATE|os.O_RDONLY|file.NonBlock))
}

func lockPath(notebook string) string {
	return filepath.Join(filepath.Dir(notebook), "."+filepath.Base(notebook)+".lock")
}

// current reports whether the locked file is the one at the path.
func current(l *flock.Flock, path string) bool {
	mine, err := l.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(mine, there)
}

func release(l *flock.Flock, path string) error {
	removed := os.Remove(path) == nil
	err := l.Unlock()
	if !removed {
		// Another process may have it open; then it removes the file.
		_ = os.Remove(path)
	}
	return err
}
