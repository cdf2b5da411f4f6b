package own

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"github.com/coppice-run/coppice/internal/file"
)

// What a mark says of its folder.
const (
	saysOwn  = "own\n"  // it goes with its owner
	saysKept = "kept\n" // it stays
	// maxMark bounds what is read of one, in bytes.
	maxMark = 16
)

const (
	before, after = ".", ".mark" // of the name of a folder, in that of its mark
	// twin is between a name and a number, in the name of another folder for it.
	twin = "~"
)

// mark is a file that says whose the folder beside it is. It is locked by this process.
type mark struct {
	folder, path string
	lock         *flock.Flock
}

// take locks the mark of a folder, which it makes; nil: another one has it.
func take(dir, base string) (*mark, error) {
	m := &mark{folder: filepath.Join(dir, base), path: filepath.Join(dir, before+base+after)}
	for {
		m.lock = flock.New(m.path, flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDWR|file.NonBlock))
		got, err := m.lock.TryLock()
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", m.path, err)
		}
		if !got {
			return nil, nil //nolint:nilnil // it is another's
		}
		there, err := os.Stat(m.path)
		mine, failed := m.lock.Stat()
		if err == nil && failed == nil && os.SameFile(there, mine) {
			return m, nil
		}
		// Whoever had it has removed it meanwhile: the lock is on a file that has no name.
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = failed
		}
		if err = errors.Join(err, m.lock.Unlock()); err != nil {
			return nil, fmt.Errorf("look at %s: %w", m.path, err)
		}
	}
}

// folderOf is the name of the folder that a mark is of.
func folderOf(name string) (base string, ok bool) {
	base, is := strings.CutSuffix(name, after)
	base, begins := strings.CutPrefix(base, before)
	return base, is && begins && base != ""
}

// there says whether there is a folder, or anything in its place.
func (m *mark) there() (bool, error) {
	_, err := os.Lstat(m.folder)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look whether %s is there: %w", m.folder, err)
	}
	return true, nil
}

// says is what it says; "" when it was made just now, or whoever made it had no time to write.
func (m *mark) says() (string, error) {
	data, err := file.Read(context.Background(), m.path, maxMark)
	if err != nil {
		return "", fmt.Errorf("read whose %s is: %w", m.folder, err)
	}
	return string(data), nil
}

// say writes whose the folder is. The file stays the one that is locked.
func (m *mark) say(what string) error {
	if err := os.WriteFile(m.path, []byte(what), 0o600); err != nil {
		return fmt.Errorf("write whose %s is: %w", m.folder, err)
	}
	return nil
}

// leave lets go of the folder, with its mark where nothing is to be said of it.
func (m *mark) leave(remove bool) error {
	var err error
	if remove {
		err = os.Remove(m.path)
	}
	if err = errors.Join(err, m.lock.Unlock()); err != nil {
		return fmt.Errorf("let go of %s: %w", m.folder, err)
	}
	return nil
}
