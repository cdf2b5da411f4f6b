package toolbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/coppice-run/coppice/internal/file"
)

// lockFile is held by whoever changes the notes in a folder of tools. It stays when
// nothing does: a lock on a file that comes and goes keeps nothing apart.
const lockFile = ".coppice-tools.lock"

// lockPoll is how often a lock in other hands is tried again.
const lockPoll = 5 * time.Millisecond

// change calls f while nothing else changes the notes of the folder, here or in
// another process; f reads what it changes. It waits for its turn until ctx ends.
func (b *Box) change(ctx context.Context, f func() error) error {
	lock := flock.New(filepath.Join(b.o.Dir, lockFile), flock.SetFlag(os.O_CREATE|os.O_RDONLY|file.NonBlock))
	_, err := lock.TryLockContext(ctx, lockPoll)
	if _, cannot := errors.AsType[*fs.PathError](err); cannot && ctx.Err() == nil {
		// The folder is not there, or nothing can be written to it. Then there may be
		// nothing to write either, and if there is, f says what is wrong.
		return f()
	}
	if err != nil {
		return fmt.Errorf("wait for another change of the notes in %s: %w", b.o.Dir, err)
	}
	defer func() { _ = lock.Close() }()
	return f()
}
