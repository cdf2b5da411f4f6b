package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/coppice-run/coppice/internal/file"
)

// FolderOptions make a [Folder]. The zero value of each field is its default.
type FolderOptions struct {
	// Dir is where the records are; it is made when it is not there. Required.
	Dir string
	// KeyFile holds the key that records are sealed with; it is made, with a key of
	// its own, when it is not there. It should not be in Dir: who copies the records
	// should not have the key with them. Required.
	KeyFile string
	// MaxBytes is how much all records may take, as far as their contents go. 0: 16 GiB.
	MaxBytes int64
	// MaxAge is how long a record is kept whose header does not say. 0: 30 days;
	// negative: for ever.
	MaxAge time.Duration
}

// What a folder allows that was not told.
const (
	usualBytes = 16 << 30
	usualAge   = 30 * 24 * time.Hour
)

// Folder is a [Store] in a folder of this machine, which several programs of one user may
// use at once. Below it are records/NAME/EDITION.rec, with the name's sum and a number; blobs/SUM,
// folders that hold a buffer and a file for each record that has it; tmp, with what is
// being written; and open, with the locks of records that are open.
type Folder struct {
	o    FolderOptions
	key  []byte
	lock *flock.Flock // held where the folder is changed
	// changing is held with it: the lock is the program's, not a goroutine's.
	changing sync.Mutex
	// used is about how much the records take, and counted when that was looked at;
	// both belong to whoever changes the folder.
	used    int64
	counted time.Time
	// swept is when what has expired was dropped; it belongs to whoever changes the folder.
	swept time.Time
	// known are the headers of records that were read for lists.
	known known
	// careless leaves out the waits for the disk, in tests that end no program.
	careless bool
}

// The folders.
const (
	recordsDir = "records"
	blobsDir   = "blobs"
	tmpDir     = "tmp"
	openDir    = "open"
	blobData   = "data"
	recordExt  = ".rec"
)

// OpenFolder opens a folder of records, or makes one. It drops what programs have left
// there that were killed, and records that have expired.
func OpenFolder(ctx context.Context, o FolderOptions) (*Folder, error) {
	if o.Dir == "" || o.KeyFile == "" {
		return nil, errors.New("open a store: it needs a folder and a file for its key")
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = usualBytes
	}
	if o.MaxAge == 0 {
		o.MaxAge = usualAge
	}
	for _, dir := range []string{filepath.Dir(o.KeyFile), o.Dir, filepath.Join(o.Dir, recordsDir), filepath.Join(o.Dir, blobsDir), filepath.Join(o.Dir, tmpDir), filepath.Join(o.Dir, openDir)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("open a store: %w", err)
		}
	}
	key, err := LoadKey(ctx, o.KeyFile)
	if err != nil {
		return nil, err
	}
	f := &Folder{o: o, key: key, lock: flock.New(filepath.Join(o.Dir, "lock"), flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDWR|file.NonBlock))}
	done, err := f.change(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := errors.Join(f.sweep(time.Now()), f.sweepScratch(time.Now())); err != nil {
		return nil, fmt.Errorf("open a store: %w", err)
	}
	return f, nil
}

// LoadKey reads the key that records are sealed with from a file, or makes one. Of several
// programs that make one at a time, all get the same.
func LoadKey(ctx context.Context, path string) ([]byte, error) {
	data, err := file.Read(ctx, path, KeySize+1)
	if errors.Is(err, fs.ErrNotExist) {
		made := make([]byte, KeySize)
		_, _ = rand.Read(made) // it never fails
		tmp := fmt.Sprintf("%s.%s", path, rand.Text())
		if err := (&Folder{}).writeSynced(tmp, made); err != nil {
			return nil, fmt.Errorf("make the key of a store: %w", err)
		}
		linked := os.Link(tmp, path) // not over one that someone has made meanwhile
		if err := os.Remove(tmp); err != nil {
			return nil, fmt.Errorf("make the key of a store: %w", err)
		}
		if linked != nil && !errors.Is(linked, fs.ErrExist) {
			return nil, fmt.Errorf("make the key of a store: %w", linked)
		}
		data, err = file.Read(ctx, path, KeySize+1)
	}
	if err != nil {
		return nil, fmt.Errorf("read the key of a store: %w", err)
	}
	if len(data) != KeySize {
		return nil, fmt.Errorf("read the key of a store: %s holds %d bytes, not %d; without its key what is kept cannot be had any more: remove the file for a new one", path, len(data), KeySize)
	}
	return data, nil
}

// change waits until no one else changes the folder. done ends the change.
func (f *Folder) change(ctx context.Context) (done func(), err error) {
	f.changing.Lock()
	const again = 5 * time.Millisecond
	if _, err := f.lock.TryLockContext(ctx, again); err != nil {
		f.changing.Unlock()
		return nil, fmt.Errorf("wait for the store in %s: %w", f.o.Dir, err)
	}
	return func() {
		_ = f.lock.Unlock() // it ends with the descriptor at the latest
		f.changing.Unlock()
	}, nil
}

// place is the beginning of the names of a record's files.
func place(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}

// Delete drops the record of a name.
func (f *Folder) Delete(ctx context.Context, name string) error {
	done, err := f.change(ctx)
	if err != nil {
		return err
	}
	defer done()
	all, err := f.editions(place(name))
	if err != nil {
		return fmt.Errorf("drop what is kept of %s: %w", name, err)
	}
	for _, e := range all {
		if err := f.drop(e); err != nil {
			return fmt.Errorf("drop what is kept of %s: %w", name, err)
		}
	}
	return nil
}

var _ Store = (*Folder)(nil)
