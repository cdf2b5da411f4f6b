package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/coppice-run/coppice/internal/file"
)

// Get opens the record of a name.
func (f *Folder) Get(ctx context.Context, name string, c Claim) (Record, error) {
	at := place(name)
	// The lock of a record is made and removed while the folder is this program's alone.
	done, err := f.change(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	_, b, err := f.newest(ctx, at)
	if err == nil {
		err = b.Header.Admit(name, c)
	}
	if err == nil && b.Header.Expired(time.Now()) {
		err = &ExpiredError{b.Header.Expires}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNone
	}
	if err != nil {
		return nil, err
	}
	path := filepath.Join(f.o.Dir, openDir, at)
	lock := openLock(path)
	locked, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("open what is kept of %s: %w", name, err)
	}
	if !locked {
		return nil, ErrBusy
	}
	return &opened{f: f, body: b, lock: lock, path: path}, nil
}

// openLock is what is held of a record that is open, at a path below open.
func openLock(path string) *flock.Flock {
	return flock.New(path, flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDWR|file.NonBlock))
}

// opened is a record that is open.
type opened struct {
	f    *Folder
	body Body
	lock *flock.Flock // nil once it is closed
	path string
}

// Header returns what the record says of itself.
func (r *opened) Header() Header { return r.body.Header }

// Image writes what it holds. Each part is summed up while it is written; the last one
// decides whether any may be used.
func (r *opened) Image(ctx context.Context, to io.Writer) error {
	for _, p := range r.body.Parts {
		if err := r.section(ctx, p, to); err != nil {
			return err
		}
	}
	return nil
}

func (r *opened) section(ctx context.Context, p Part, to io.Writer) error {
	hash := sha256.New()
	if !p.Apart() {
		hash.Write(p.Data)
		if hex.EncodeToString(hash.Sum(nil)) != p.Sum {
			return refuse(ReasonSeal, "a part of its record was changed")
		}
		_, err := to.Write(p.Data)
		return err
	}
	from, err := file.Open(filepath.Join(r.f.blob(p.Sum), blobData))
	if errors.Is(err, fs.ErrNotExist) {
		return refuse(ReasonCut, "a part of it is gone: %s", p.Sum)
	}
	if err != nil {
		return err
	}
	n, err := io.Copy(io.MultiWriter(to, hash), reader{ctx, io.LimitReader(from, p.Size+1)})
	if err := errors.Join(err, from.Close()); err != nil {
		return fmt.Errorf("read what is kept: %w", err)
	}
	switch {
	case n < p.Size:
		return refuse(ReasonCut, "a part of it is cut off: %d bytes of %d are there", n, p.Size)
	case n > p.Size || hex.EncodeToString(hash.Sum(nil)) != p.Sum:
		return refuse(ReasonSeal, "a part of it was changed")
	}
	return nil
}

// Close lets others open the record.
func (r *opened) Close() error {
	if r.lock == nil {
		return nil
	}
	lock := r.lock
	r.lock = nil
	done, err := r.f.change(context.Background())
	if err != nil {
		return errors.Join(err, lock.Unlock())
	}
	defer done()
	return errors.Join(os.Remove(r.path), lock.Unlock())
}
