package files

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/coppice-run/coppice/internal/file"
)

// Options say what a folder may hold. The zero value of each field is its default.
type Options struct {
	// Quota is how many bytes the regular files of the folder may have together, those
	// included that others than this package have put there; a write that goes beyond
	// fails with ErrQuota. What others write is looked at again before a write when the last
	// look is older than a second and no other write goes on; it is not kept from growing. 0: no limit.
	Quota int64
}

// Folder is an open folder. Make it with Open.
type Folder struct {
	o    Options
	dir  string
	root *os.Root
	used usage

	mu      sync.Mutex
	ended   chan struct{}  // closed by Close
	closed  bool           // guarded by mu
	watches sync.WaitGroup // of Watch; Close waits
}

// Open opens the folder at dir, which has to be there. The error is that of the system,
// or says that there is no directory.
func Open(dir string, o Options) (*Folder, error) {
	root, err := file.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the folder of files: %w", err)
	}
	return &Folder{o: o, dir: dir, root: root, ended: make(chan struct{})}, nil
}

// Dir returns where the folder is on this machine.
func (f *Folder) Dir() string { return f.dir }

// Quota returns how many bytes the folder may hold; 0: no limit.
func (f *Folder) Quota() int64 { return f.o.Quota }

// Close ends the folder's watches and lets go of it. Files that are open stay so until
// they are closed. Calls after the first do nothing.
func (f *Folder) Close() error {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil
	}
	f.closed = true
	close(f.ended)
	f.mu.Unlock()
	f.watches.Wait()
	if err := f.root.Close(); err != nil {
		return fmt.Errorf("close the folder of files: %w", err)
	}
	return nil
}

// dirOf opens the directory at a clean path. It does not wait for the other end of a
// FIFO that stands there: what ends in a slash is a directory or cannot be opened.
func (f *Folder) dirOf(at string) (*os.Root, error) {
	if at == "." {
		return f.root.OpenRoot(".")
	}
	return f.root.OpenRoot(at + "/")
}

// drop closes what was opened for one operation; nothing depends on it any more.
func drop(c interface{ Close() error }, err *error) {
	if closed := c.Close(); closed != nil && *err == nil && !errors.Is(closed, os.ErrClosed) {
		*err = closed
	}
}
