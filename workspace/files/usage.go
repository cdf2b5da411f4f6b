package files

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// looked is for how long what the folder was seen to hold is believed, apart from what
// this package itself has changed since.
const looked = time.Second

// usage is what the folder holds.
type usage struct {
	mu    sync.Mutex
	bytes int64     // as of at, with what was written since; guarded by mu
	held  int64     // for writes that go on; guarded by mu
	at    time.Time // guarded by mu
}

// Usage returns how many bytes the regular files of the folder have together, as they
// are now.
func (f *Folder) Usage(ctx context.Context) (int64, error) {
	n, err := f.measure(ctx)
	return n, fail("stat", ".", err)
}

func (f *Folder) measure(ctx context.Context) (n int64, err error) {
	err = f.walk(ctx, ".", -1, func(i Info) error {
		n += i.Size
		return nil
	})
	return n, err
}

// storing is the account of one write.
type storing struct {
	f        *Folder
	replaces int64 // how many bytes go when the write is done
	taken    int64
}

// store opens the account of a write that replaces so many bytes.
func (f *Folder) store(ctx context.Context, replaces int64) (*storing, error) {
	s := &storing{f: f, replaces: replaces}
	if f.o.Quota <= 0 {
		return s, nil
	}
	f.used.mu.Lock()
	defer f.used.mu.Unlock()
	// While others write, their temporary files would be counted twice.
	if f.used.held == 0 && time.Since(f.used.at) > looked {
		bytes, err := f.measure(ctx)
		if err != nil {
			return nil, err
		}
		f.used.bytes, f.used.at = bytes, time.Now()
	}
	return s, nil
}

// take asks for room for n bytes more.
func (s *storing) take(n int64) error {
	if s.f.o.Quota <= 0 {
		return nil
	}
	u := &s.f.used
	u.mu.Lock()
	defer u.mu.Unlock()
	if left := s.f.o.Quota - u.bytes - u.held + s.replaces; n > left {
		return fmt.Errorf("%w: of %d bytes %d were left for the file", ErrQuota, s.f.o.Quota, max(left, 0)+s.taken)
	}
	u.held += n
	s.taken += n
	return nil
}

// done closes the account; stored: the file is in its place.
func (s *storing) done(stored bool) {
	u := &s.f.used
	u.mu.Lock()
	defer u.mu.Unlock()
	u.held -= s.taken
	if stored {
		u.bytes += s.taken - s.replaces
	}
}

// forget lets the next write look again.
func (u *usage) forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.at = time.Time{}
}
