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

	"github.com/coppice-run/coppice/internal/file"
)

// Put keeps a record.
func (f *Folder) Put(ctx context.Context, h Header, image io.ReaderAt) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("keep %s: %w", h.Name, err)
		}
	}()
	if h.Name == "" {
		return errors.New("a record needs a name")
	}
	if h.Expires.IsZero() && f.o.MaxAge > 0 {
		h.Expires = h.Made.Add(f.o.MaxAge)
	}
	scratch, err := os.MkdirTemp(filepath.Join(f.o.Dir, tmpDir), "put-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	b := Body{Header: h}
	var at int64
	for i, size := range h.Sections {
		p, err := f.section(ctx, io.NewSectionReader(image, at, size), size, filepath.Join(scratch, fmt.Sprint(i)))
		if err != nil {
			return err
		}
		b.Parts, at = append(b.Parts, p), at+size
	}
	record, err := Seal(b, f.key)
	if err != nil {
		return err
	}
	done, err := f.change(ctx)
	if err != nil {
		return err
	}
	defer done()
	return f.commit(ctx, b, record, scratch)
}

// section reads one section of an image. A large one that the store does not have is
// written to a file.
func (f *Folder) section(ctx context.Context, from *io.SectionReader, size int64, path string) (Part, error) {
	p := Part{Size: size}
	if !p.Apart() {
		p.Data = make([]byte, size)
		if _, err := io.ReadFull(from, p.Data); err != nil {
			return p, fmt.Errorf("read the image: %w", err)
		}
		sum := sha256.Sum256(p.Data)
		p.Sum = hex.EncodeToString(sum[:])
		return p, nil
	}
	hash := sha256.New()
	if n, err := io.Copy(hash, reader{ctx, from}); err != nil || n != size {
		return p, fmt.Errorf("read the image: %d bytes of %d: %w", n, size, errors.Join(err, io.ErrUnexpectedEOF))
	}
	p.Sum = hex.EncodeToString(hash.Sum(nil))
	if there, err := f.whole(ctx, p); there || err != nil {
		return p, err
	}
	to, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return p, err
	}
	// What is written is what was summed up, also when the image changes meanwhile.
	again := sha256.New()
	_, err = from.Seek(0, io.SeekStart)
	if err == nil {
		_, err = io.Copy(io.MultiWriter(to, again), reader{ctx, from})
	}
	if err == nil && !f.careless {
		err = to.Sync()
	}
	if err = errors.Join(err, to.Close()); err == nil && hex.EncodeToString(again.Sum(nil)) != p.Sum {
		err = errors.New("the image changed while it was read")
	}
	return p, err
}

// reader is an image whose reading ends with its context.
type reader struct {
	ctx  context.Context //nolint:containedctx // it lives as long as one call
	from io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.from.Read(p)
}

// commit makes a record that is on the disk the one of its name. The folder is the
// caller's alone.
func (f *Folder) commit(ctx context.Context, b Body, record []byte, scratch string) error {
	old, err := f.editions(place(b.Header.Name))
	if err != nil {
		return err
	}
	if err := f.fits(b, record); err != nil {
		return err
	}
	var last edition
	if len(old) > 0 {
		last = old[len(old)-1]
	}
	e := last.next(place(b.Header.Name))
	for i, p := range b.Parts {
		if !p.Apart() {
			continue
		}
		if err := f.hold(e, p, filepath.Join(scratch, fmt.Sprint(i))); err != nil {
			return errors.Join(err, f.release(e, b.Parts))
		}
	}
	tmp := filepath.Join(scratch, "record")
	if err := errors.Join(context.Cause(ctx), f.writeSynced(tmp, record)); err != nil {
		return errors.Join(err, f.release(e, b.Parts))
	}
	err = os.MkdirAll(filepath.Dir(f.path(e)), 0o700)
	if err == nil {
		err = f.syncDir(filepath.Join(f.o.Dir, recordsDir))
	}
	if err == nil {
		err = os.Rename(tmp, f.path(e))
	}
	if err != nil {
		return errors.Join(err, f.release(e, b.Parts))
	}
	if err := f.syncDir(filepath.Dir(f.path(e))); err != nil {
		return err
	}
	f.used += int64(len(record))
	for _, o := range old {
		if err := f.drop(o); err != nil {
			return err
		}
	}
	if now := time.Now(); now.Sub(f.swept) > sweepEvery {
		_ = f.sweep(now) // the record is there; what fails is tried again by the next one
	}
	return nil
}

// sweepEvery is how often a folder that is written to is swept.
const sweepEvery = time.Hour

// fits refuses a record that there is no room for.
func (f *Folder) fits(b Body, record []byte) error {
	if f.o.MaxBytes < 0 {
		return nil
	}
	more := int64(len(record))
	for _, p := range b.Parts {
		if p.Apart() && !f.has(p.Sum, p.Size) {
			more += p.Size
		}
	}
	now := time.Now()
	if f.used+more > f.o.MaxBytes { // what has expired makes room
		if err := f.sweep(now); err != nil {
			return err
		}
		f.counted = time.Time{}
	}
	if now.Sub(f.counted) > recount {
		used, err := f.count()
		if err != nil {
			return err
		}
		f.used, f.counted = used, now
	}
	if f.used+more > f.o.MaxBytes {
		return fmt.Errorf("%w: %d MiB of %d MiB are used and %d MiB more are needed; drop sessions that are kept, or raise the quota", ErrQuota, f.used>>20, f.o.MaxBytes>>20, max(more>>20, 1))
	}
	return nil
}

// recount is how long it is believed how much the records take: other programs write and
// drop some, too.
const recount = time.Minute

// count is how much the records take, as far as their contents go.
func (f *Folder) count() (int64, error) {
	var n int64
	for _, dir := range []string{recordsDir, blobsDir} {
		err := filepath.WalkDir(filepath.Join(f.o.Dir, dir), func(_ string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			info, err := d.Info()
			if err == nil {
				n += info.Size()
			}
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	return n, nil
}

// blob is the folder of a buffer.
func (f *Folder) blob(sum string) string { return filepath.Join(f.o.Dir, blobsDir, sum) }

// has reports whether a buffer is there, as far as its size tells.
func (f *Folder) has(sum string, size int64) bool {
	info, err := os.Lstat(filepath.Join(f.blob(sum), blobData))
	return err == nil && info.Mode().IsRegular() && info.Size() == size
}

// whole reports whether a buffer is there and is what it was. One that is not, or cannot be
// read, is written again: a record that relied on it would be lost with it.
func (f *Folder) whole(ctx context.Context, p Part) (bool, error) {
	if !f.has(p.Sum, p.Size) {
		return false, nil
	}
	from, err := file.Open(filepath.Join(f.blob(p.Sum), blobData))
	if err != nil {
		return false, nil //nolint:nilerr // it is as one that is not there
	}
	hash := sha256.New()
	n, err := io.Copy(hash, reader{ctx, io.LimitReader(from, p.Size+1)})
	_ = from.Close() // it was read
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	return err == nil && n == p.Size && hex.EncodeToString(hash.Sum(nil)) == p.Sum, nil
}

// hold puts a buffer into the store, if it was written for that, and notes that a record has
// it.
func (f *Folder) hold(e edition, p Part, from string) error {
	dir := f.blob(p.Sum)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	data := filepath.Join(dir, blobData)
	var before int64
	if info, err := os.Lstat(data); err == nil {
		before = info.Size()
	}
	switch err := os.Rename(from, data); {
	case err == nil:
		f.used += p.Size - before
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case before != p.Size: // it was not written, since it was there
		return fmt.Errorf("a buffer that the store had is gone; try again: %w", err)
	}
	err := f.writeSynced(filepath.Join(dir, e.String()), nil)
	if err != nil && !errors.Is(err, fs.ErrExist) { // the record has the buffer more than once
		return err
	}
	return errors.Join(f.syncDir(dir), f.syncDir(filepath.Dir(dir)))
}

// release takes the note of a record from its buffers, and drops those that no other has.
func (f *Folder) release(e edition, parts []Part) error {
	var all error
	for _, p := range parts {
		if p.Apart() {
			all = errors.Join(all, f.unhold(p.Sum, e.String()))
		}
	}
	return all
}

func (f *Folder) unhold(sum, note string) error {
	dir := f.blob(sum)
	if err := os.Remove(filepath.Join(dir, note)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || len(entries) > 1 || len(entries) == 1 && entries[0].Name() != blobData {
		return err
	}
	return os.RemoveAll(dir)
}

// drop removes a record, and the buffers that no other has. The folder is the caller's
// alone.
func (f *Folder) drop(e edition) error {
	b, unreadable := f.read(context.Background(), e)
	if err := os.Remove(f.path(e)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_ = os.Remove(filepath.Dir(f.path(e))) // the last of its name
	if unreadable != nil {                 // which buffers it had is not known
		return f.sweepBlobs()
	}
	return f.release(e, b.Parts)
}

// writeSynced writes a new file that is on the disk when it returns.
func (f *Folder) writeSynced(path string, data []byte) error {
	to, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = to.Write(data)
	if err == nil && !f.careless {
		err = to.Sync()
	}
	return errors.Join(err, to.Close())
}

// syncDir has the names in a folder on the disk when it returns.
func (f *Folder) syncDir(dir string) error {
	if f.careless {
		return nil
	}
	return syncDir(dir)
}
