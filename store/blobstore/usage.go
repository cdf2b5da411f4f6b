package blobstore

import (
	"context"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/store"
)

// usage is what records take: they, and each buffer once.
type usage struct {
	bytes int64
	has   map[string]bool // copies of buffers, and sums
}

func (u *usage) add(record int64, parts []store.Part) {
	if u.has == nil {
		u.has = map[string]bool{}
	}
	u.bytes += record
	for _, p := range parts {
		if at := p.Sum + "/" + p.At; p.Apart() && !u.has[at] {
			u.has[at], u.has[p.Sum] = true, true
			u.bytes += p.Size
		}
	}
}

// more is how much a record would take besides.
func (u *usage) more(record int64, parts []store.Part) int64 {
	counted := map[string]bool{}
	for _, p := range parts {
		if p.Apart() && !u.has[p.Sum] && !counted[p.Sum] {
			counted[p.Sum] = true
			record += p.Size
		}
	}
	return record
}

// fits refuses a record that there is no room for, and returns the size of its own object,
// about.
func (s *Store) fits(ctx context.Context, b store.Body) (size int64, err error) {
	sealed, err := store.Seal(b, s.o.Key)
	if err != nil {
		return 0, err
	}
	size = int64(len(sealed))
	if s.o.MaxBytes < 0 {
		return size, nil
	}
	room := func() (used, more int64) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.usage.bytes, s.usage.more(size, b.Parts)
	}
	s.mu.Lock()
	old := time.Since(s.counted) > recount
	s.mu.Unlock()
	if old {
		if err := s.count(ctx); err != nil {
			return 0, err
		}
	}
	used, more := room()
	if used+more > s.o.MaxBytes { // what has expired makes room, and what others have dropped
		if err := s.sweep(ctx); err != nil {
			return 0, err
		}
		if err := s.count(ctx); err != nil {
			return 0, err
		}
		used, more = room()
	}
	if used+more > s.o.MaxBytes {
		return 0, fmt.Errorf("%w: %d MiB of %d MiB are used and %d MiB more are needed; drop sessions that are kept, or raise the quota", store.ErrQuota, used>>20, s.o.MaxBytes>>20, max(more>>20, 1))
	}
	return size, nil
}

// count finds out how much the records take. Of records that cannot be read only they count.
func (s *Store) count(ctx context.Context) error {
	all, err := s.survey(ctx)
	if err != nil {
		return err
	}
	var u usage
	for _, st := range all {
		for _, o := range st.objects {
			u.add(o.Size, nil)
		}
		u.add(0, st.newest.parts)
	}
	s.mu.Lock()
	s.usage, s.counted = u, time.Now()
	s.mu.Unlock()
	return nil
}
