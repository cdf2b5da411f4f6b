package blobstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/coppice-run/coppice/store"
)

// verify is for how long a write is looked for whose answer was lost, or whose caller has
// gone.
const verify = 10 * time.Second

// plain keeps the library from guessing what the bytes are.
const plain = "application/octet-stream"

// gone reports whether an error says that there is no such object.
func gone(err error) bool { return gcerrors.Code(err) == gcerrors.NotFound }

// create writes an object whose key has none, and reports whether it did: when there is
// one, it wasn't. An error may have come after the write, and libraries repeat a write of which
// they have no answer: so it is what is there then that says.
func (s *Store) create(ctx context.Context, key string, data []byte) (made bool, err error) {
	err = s.upload(ctx, key, true, func(to io.Writer) error {
		_, err := to.Write(data)
		return err
	})
	if err == nil {
		return true, nil
	}
	looking, stop := context.WithTimeout(context.WithoutCancel(ctx), verify)
	defer stop()
	there, failed := s.bucket.ReadAll(looking, key)
	switch {
	case failed == nil:
		return bytes.Equal(there, data), nil
	case gone(failed):
		return false, err
	}
	return false, fmt.Errorf("it is not known whether it was written: %w", errors.Join(err, failed))
}

// upload writes an object as a whole or not at all; fresh is for one that is not there.
func (s *Store) upload(ctx context.Context, key string, fresh bool, content func(to io.Writer) error) error {
	writing, abandon := context.WithCancel(ctx)
	defer abandon()
	to, err := s.bucket.NewWriter(writing, key, &blob.WriterOptions{ContentType: plain, IfNotExist: fresh})
	if err != nil {
		return err
	}
	if err = content(to); err != nil {
		abandon() // else what was written so far would be the object
	}
	return errors.Join(err, to.Close())
}

// remove deletes an object; it is no error that there is none.
func (s *Store) remove(ctx context.Context, key string) error {
	if err := s.bucket.Delete(ctx, key); err != nil && !gone(err) {
		return err
	}
	return nil
}

// list returns the objects below a prefix, by their keys.
func (s *Store) list(ctx context.Context, prefix string) ([]*blob.ListObject, error) {
	var all []*blob.ListObject
	for it := s.bucket.List(&blob.ListOptions{Prefix: prefix}); ; {
		o, err := it.Next(ctx)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", prefix, err)
		}
		all = append(all, o)
	}
}

// fetch reads an object that is no larger than a record.
func (s *Store) fetch(ctx context.Context, key string) ([]byte, error) {
	r, err := s.bucket.NewReader(ctx, key, nil)
	if err != nil {
		return nil, err
	}
	const most = store.MaxRecord + 1<<10
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	if len(data) > most {
		return nil, fmt.Errorf("read %s: it has more than %d bytes, which no record has", key, most)
	}
	return data, nil
}

// now is what time it is for the bucket, whose times say how old things are.
func (s *Store) now(ctx context.Context) (time.Time, error) {
	key := "clock/" + s.keyID
	err := s.upload(ctx, key, false, func(to io.Writer) error {
		_, err := io.WriteString(to, "now")
		return err
	})
	if err != nil {
		return time.Time{}, err
	}
	a, err := s.bucket.Attributes(ctx, key)
	if err != nil {
		return time.Time{}, err
	}
	return a.ModTime, nil
}
