package blobstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/coppice-run/coppice/store"
)

// Get opens the record of a name. It is the caller's until it is closed, as long as the
// bucket can be reached: see [Options.Lease].
func (s *Store) Get(ctx context.Context, name string, c store.Claim) (store.Record, error) {
	if _, _, err := s.find(ctx, name, c); err != nil {
		return nil, err
	}
	r, err := s.acquire(ctx, place(name))
	if err != nil {
		return nil, err
	}
	// Whoever had it open until now may have dropped it, or another one may be there.
	if _, r.body, err = s.find(ctx, name, c); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// find reads the record of a name, for who says c of themselves. When the last one cannot be
// read no other one is returned: what it replaced is older than what the session did last.
func (s *Store) find(ctx context.Context, name string, claim store.Claim) (uint64, store.Body, error) {
	var b store.Body
	c := s.records(place(name))
	n, data, err := c.newest(ctx)
	if err != nil {
		return 0, b, fmt.Errorf("open what is kept of %s: %w", name, err)
	}
	if n == 0 || string(data) == string(none) {
		return 0, b, store.ErrNone
	}
	b, err = s.unseal(c.key(n), data)
	if refused, ok := errors.AsType[*store.RefusedError](err); ok {
		older, err := s.bucket.Exists(ctx, c.key(max(n, 2)-1))
		if err == nil && older && n > 1 {
			refused = &store.RefusedError{Reason: refused.Reason, Problem: refused.Problem + "; an older one of the same name is there, which is not what was kept last"}
		}
		return n, b, refused
	}
	if err == nil {
		err = b.Header.Admit(name, claim)
	}
	if err == nil && b.Header.Expired(time.Now()) {
		err = &store.ExpiredError{At: b.Header.Expires}
	}
	return n, b, err
}

// Header returns what the record says of itself.
func (r *opened) Header() store.Header { return r.body.Header }

// Image writes what it holds. Each part is summed up while it is written; the last one
// decides whether any may be used. The error matches [store.ErrBusy] when the record was
// lost to someone else meanwhile.
func (r *opened) Image(ctx context.Context, to io.Writer) error {
	for _, p := range r.body.Parts {
		if err := r.section(ctx, p, to); err != nil {
			return err
		}
	}
	return r.held()
}

func (r *opened) section(ctx context.Context, p store.Part, to io.Writer) error {
	if p.Apart() {
		return r.s.copyTo(ctx, p, r.s.copyKey(p.Sum, p.At), to)
	}
	if all := sha256.Sum256(p.Data); hex.EncodeToString(all[:]) != p.Sum {
		return &store.RefusedError{Reason: store.ReasonSeal, Problem: "a part of its record was changed"}
	}
	_, err := to.Write(p.Data)
	return err
}
