package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// sweep drops what has expired or was replaced, and what killed programs have left. The folder is the
// caller's alone.
func (f *Folder) sweep(now time.Time) error {
	f.swept = now
	places, err := f.places()
	if err != nil {
		return err
	}
	for _, place := range places {
		e, h, err := latest(f, place, func(e edition) (Header, error) { return f.header(context.Background(), e) }, func(h Header) time.Time { return h.Made })
		if err != nil {
			continue // it stays, and what it replaced
		}
		all, err := f.editions(place)
		if err != nil {
			return err
		}
		for _, one := range all {
			if one == e && !h.Expired(now) {
				continue
			}
			if open, err := f.isOpen(place); one == e && (open || err != nil) {
				continue // who restores it has begun in time; the next sweep drops it
			}
			if err := f.drop(one); err != nil {
				return err
			}
		}
	}
	return f.sweepBlobs()
}

// isOpen reports whether someone has the record of a place open, in any program.
func (f *Folder) isOpen(place string) (bool, error) {
	path := filepath.Join(f.o.Dir, openDir, place)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	lock := openLock(path) // of a program that was killed, perhaps
	locked, err := lock.TryLock()
	if err != nil || !locked {
		return !locked, err
	}
	_ = os.Remove(path) // where it is open it cannot be removed, and it is as good as not there
	return false, lock.Unlock()
}

// sweepBlobs drops the notes of records that are not there, and the buffers without any.
func (f *Folder) sweepBlobs() error {
	blobs, err := os.ReadDir(filepath.Join(f.o.Dir, blobsDir))
	if err != nil {
		return err
	}
	for _, blob := range blobs {
		if !validSum(blob.Name()) {
			continue
		}
		notes, err := os.ReadDir(f.blob(blob.Name()))
		if err != nil {
			return err
		}
		gone := "none"
		for _, n := range notes {
			p, e, ok := strings.Cut(n.Name(), "-")
			if !ok {
				continue
			}
			if _, err := os.Lstat(f.path(edition{p, e})); errors.Is(err, fs.ErrNotExist) {
				gone = n.Name()
				if err := f.unhold(blob.Name(), gone); err != nil {
					return err
				}
			}
		}
		if gone == "none" && len(notes) <= 1 {
			if err := f.unhold(blob.Name(), gone); err != nil {
				return err
			}
		}
	}
	return nil
}

// sweepScratch drops what programs were writing that were killed: nothing is written for
// a day.
func (f *Folder) sweepScratch(now time.Time) error {
	dir := filepath.Join(f.o.Dir, tmpDir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		const most = 24 * time.Hour
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > most {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
