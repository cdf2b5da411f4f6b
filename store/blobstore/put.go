package blobstore

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/coppice-run/coppice/store"
)

// Put keeps a record. When its context ends while the record itself is being written, it may
// be there all the same; the error says when that is not known.
func (s *Store) Put(ctx context.Context, h store.Header, image io.ReaderAt) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("keep %s: %w", h.Name, err)
		}
	}()
	if h.Name == "" {
		return errors.New("a record needs a name")
	}
	if h.Expires.IsZero() && s.o.MaxAge > 0 {
		h.Expires = h.Made.Add(s.o.MaxAge)
	}
	began := time.Now()
	s.sweepSometimes(ctx)
	b := store.Body{Header: h}
	from := make([]*io.SectionReader, 0, len(h.Sections))
	var at int64
	for _, size := range h.Sections {
		section := io.NewSectionReader(image, at, size)
		p, err := sum(ctx, section, size)
		if err != nil {
			return err
		}
		b.Parts, from, at = append(b.Parts, p), append(from, section), at+size
	}
	size, err := s.fits(ctx, b)
	if err != nil {
		return err
	}
	intent, err := s.intend(ctx, b.Parts)
	if err != nil {
		return err
	}
	if intent != "" {
		// One that stays behind is as one of a killed program: a sweep drops it.
		defer func() { _ = s.remove(context.WithoutCancel(ctx), intent) }()
	}
	copies := map[string]string{} // of sums that the record has more than once
	for i := range b.Parts {
		p := &b.Parts[i]
		if !p.Apart() {
			continue
		}
		if p.At = copies[p.Sum]; p.At != "" {
			continue
		}
		if p.At, err = s.hold(ctx, *p, from[i]); err != nil {
			return err
		}
		copies[p.Sum] = p.At
	}
	if err := errors.Join(context.Cause(ctx), s.late(began)); err != nil {
		return err
	}
	if err := s.commit(ctx, b); err != nil {
		return err
	}
	s.mu.Lock()
	s.usage.add(size, b.Parts)
	s.mu.Unlock()
	return nil
}

// commit makes a record the last one of its name.
func (s *Store) commit(ctx context.Context, b store.Body) error {
	at := place(b.Header.Name)
	c := s.records(at)
	n, err := c.last(ctx)
	if err != nil {
		return err
	}
	n, err = c.add(ctx, n, func(n uint64) ([]byte, error) {
		b.Place = c.key(n)
		return store.Seal(b, s.o.Key)
	})
	if err != nil {
		return err
	}
	c.clean(ctx, n)
	return nil
}

// sum reads one section of an image. A small one is in the record.
func sum(ctx context.Context, from *io.SectionReader, size int64) (store.Part, error) {
	p := store.Part{Size: size}
	if !p.Apart() {
		p.Data = make([]byte, size)
		if _, err := io.ReadFull(from, p.Data); err != nil {
			return p, fmt.Errorf("read the image: %w", err)
		}
		all := sha256.Sum256(p.Data)
		p.Sum = hex.EncodeToString(all[:])
		return p, nil
	}
	hash := sha256.New()
	if n, err := io.Copy(hash, reader{ctx, from}); err != nil || n != size {
		return p, fmt.Errorf("read the image: %d bytes of %d: %w", n, size, errors.Join(err, io.ErrUnexpectedEOF))
	}
	p.Sum = hex.EncodeToString(hash.Sum(nil))
	return p, nil
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

// What the names of copies and of intents begin with: fileblob's lists also show files that
// are being written, which are called something else.
const copyMark, intentMark = "c", "p"

func (s *Store) copiesDir() string { return "buffers/" + s.keyID + "/" }

func (s *Store) doomedDir() string { return "doomed/" + s.keyID + "/" }

func (s *Store) intentsDir() string { return "puts/" + s.keyID + "/" }

func (s *Store) copyKey(sum, at string) string { return s.copiesDir() + sum + "/" + at }

func (s *Store) doomKey(sum, at string) string { return s.doomedDir() + sum + "/" + at }

// intend says in the bucket on which sums a record is about to rely, before it is looked
// which there are. A sweep that sees it leaves them; one that does not has doomed a buffer
// before, which [Store.hold] sees. "" when there are none.
func (s *Store) intend(ctx context.Context, parts []store.Part) (string, error) {
	var sums []string
	for _, p := range parts {
		if p.Apart() {
			sums = append(sums, p.Sum)
		}
	}
	if len(sums) == 0 {
		return "", nil
	}
	text, err := json.Marshal(sums)
	if err != nil {
		return "", err
	}
	key := s.intentsDir() + intentMark + rand.Text()
	_, err = s.create(ctx, key, text)
	return key, err
}

// hold returns the copy of a buffer that a record may rely on: one that is there and whole,
// or one that is written now. One that is there and damaged is written again, since other
// records need it too.
func (s *Store) hold(ctx context.Context, p store.Part, from *io.SectionReader) (at string, err error) {
	copies, err := s.list(ctx, s.copyKey(p.Sum, ""))
	if err != nil {
		return "", err
	}
	for _, o := range copies {
		at := o.Key[strings.LastIndexByte(o.Key, '/')+1:]
		if !strings.HasPrefix(at, copyMark) {
			continue
		}
		doomed, err := s.bucket.Exists(ctx, s.doomKey(p.Sum, at))
		if err != nil {
			return "", err
		}
		if doomed {
			continue
		}
		err = s.copyTo(ctx, p, o.Key, io.Discard)
		if _, damaged := errors.AsType[*store.RefusedError](err); damaged {
			err = s.write(ctx, p, o.Key, from)
		}
		return at, err
	}
	at = copyMark + strings.ToLower(rand.Text()[:16])
	return at, s.write(ctx, p, s.copyKey(p.Sum, at), from)
}

// write writes a buffer, as a whole or not at all. What is written is what was summed up,
// also when the image changes meanwhile.
func (s *Store) write(ctx context.Context, p store.Part, key string, from *io.SectionReader) error {
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return err
	}
	err := s.upload(ctx, key, false, func(to io.Writer) error {
		again := sha256.New()
		_, err := io.Copy(io.MultiWriter(to, again), reader{ctx, from})
		if err == nil && hex.EncodeToString(again.Sum(nil)) != p.Sum {
			err = errors.New("the image changed while it was read")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("write a buffer: %w", err)
	}
	return nil
}

// copyTo writes a buffer to somewhere. The error is a [*store.RefusedError] when it is not
// what it was, which is known after its last byte.
func (s *Store) copyTo(ctx context.Context, p store.Part, key string, to io.Writer) error {
	from, err := s.bucket.NewReader(ctx, key, nil)
	if gone(err) {
		return &store.RefusedError{Reason: store.ReasonCut, Problem: "a part of it is gone: " + p.Sum}
	}
	if err != nil {
		return fmt.Errorf("read what is kept: %w", err)
	}
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, hash), io.LimitReader(from, p.Size+1))
	if err := errors.Join(err, from.Close()); err != nil {
		return fmt.Errorf("read what is kept: %w", err)
	}
	switch {
	case n < p.Size:
		return &store.RefusedError{Reason: store.ReasonCut, Problem: fmt.Sprintf("a part of it is cut off: %d bytes of %d are there", n, p.Size)}
	case n > p.Size || hex.EncodeToString(hash.Sum(nil)) != p.Sum:
		return &store.RefusedError{Reason: store.ReasonSeal, Problem: "a part of it was changed"}
	}
	return nil
}
