package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/internal/pause"
)

// Revision names one version of an entry. It is opaque: two are the same or not, and none
// is before another. "" is the revision of a key that has no entry.
type Revision string

// Entry is a key of a directory with what it holds.
type Entry struct {
	Key   string
	Value []byte
	// Rev is "" when the key has no entry.
	Rev Revision
}

// Answers is how many requests without an answer a lease has room for, one after the other.
const Answers = 6

// AnswerTime is how long an engine of a directory waits for one answer at most, where the leases
// of nodes last so long: one that is not renewed costs a node its sessions. It is never shorter
// than a quarter of a second: a machine with much to do is not taken for silent.
func AnswerTime(ttl time.Duration) time.Duration {
	return max(ttl/Answers, 250*time.Millisecond)
}

// Directory is where a fleet keeps its records. Any goroutine may call its methods. They
// return soon after their context has ended, and with an error that matches [ErrClosed]
// after Close. A key is as [ValidKey] wants it, a value has at most [MaxValue] bytes.
type Directory interface {
	// Get returns the entry of a key, with the revision "" when there is none. It may be
	// an older one than the latest, even one that this process has replaced itself.
	Get(ctx context.Context, key string) (Entry, error)
	// Swap sets a key to value if prev is the revision of its latest entry, and returns
	// the new revision, which no entry of the key has had before, one that was removed
	// neither. An error that matches [ErrConflict] says that prev was not, and that this
	// call has changed nothing and never will. After any other error nothing is known: it
	// may have happened, not have happened, or happen later.
	Swap(ctx context.Context, key string, value []byte, prev Revision) (Revision, error)
	// Remove takes the entry of a key away if prev is its revision. nil says that the key
	// has no entry of that revision, and never will: it has none, or a later one. After an
	// error it may have been removed, or be removed later.
	Remove(ctx context.Context, key string, prev Revision) error
	// Watch calls f with each entry whose key begins with prefix, which is "" or ends in
	// a dot, then once with an Entry without a key, then with each change, in the order
	// of each key's changes. Several changes of one key may come as the last of them, and
	// that an entry was removed is not told. f is called by one goroutine at a time, and not
	// after Watch has returned. Watch returns when ctx has ended, with its error, or when it
	// can watch no longer: whoever wants to go on calls it again.
	Watch(ctx context.Context, prefix string, f func(Entry)) error
	// Close ends what the directory holds in this process, and the watches that run. What
	// is kept elsewhere stays. A second call does nothing.
	Close() error
}

// Errors of a Directory.
var (
	// ErrConflict: the revision was not that of the latest entry; nothing was changed.
	ErrConflict = errors.New("the entry has changed")
	// ErrClosed: the directory was closed.
	ErrClosed = errors.New("the directory is closed")
)

// Bounds of what a directory holds.
const (
	// MaxKey is the length of a key in bytes.
	MaxKey = 200
	// MaxValue is the length of a value in bytes.
	MaxValue = 64 << 10
)

// ValidKey returns an error that says why a directory cannot have the key: one has 1 to
// [MaxKey] letters, digits, '-', '_' and '=' of ASCII, in parts that dots stand between.
func ValidKey(key string) error {
	if key == "" || len(key) > MaxKey {
		return fmt.Errorf("a key has 1 to %d bytes, not %d", MaxKey, len(key))
	}
	part := 0
	for i := range len(key) {
		switch c := key[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '=':
			part++
		case c == '.' && part > 0 && i+1 < len(key):
			part = 0
		default:
			return fmt.Errorf("the key %q has %q at byte %d, which a key cannot have there", key, c, i)
		}
	}
	return nil
}

// ValidEntry returns an error that says why a directory cannot take a key with a value.
func ValidEntry(key string, value []byte) error {
	if len(value) > MaxValue {
		return fmt.Errorf("the value of %s has %d bytes: at most %d", key, len(value), MaxValue)
	}
	return ValidKey(key)
}

// settle swaps until it is known whether it happened. It returns the entry that holds
// value; or the one that was in its place, with ErrConflict; or what kept it from knowing,
// when ctx ended first. Values have to differ from all that the key has held. stale
// reports whether an entry is older than the one of prev.
func settle(ctx context.Context, d Directory, e Entry, value []byte, stale func(Entry) bool) (Entry, error) {
	for wait := firstPause; ; {
		rev, err := d.Swap(ctx, e.Key, value, e.Rev)
		if err == nil {
			return Entry{Key: e.Key, Value: value, Rev: rev}, nil
		}
		if errors.Is(err, ErrConflict) {
			now, err := later(ctx, d, e, stale)
			if err != nil || bytes.Equal(now.Value, value) {
				return now, err
			}
			return now, ErrConflict
		}
		if errors.Is(err, ErrClosed) || !pause.Wait(ctx, &wait) {
			return Entry{}, fmt.Errorf("swap %s: %w", e.Key, unknown(ctx, err))
		}
	}
}

// later reads a key until its entry is another one than e, and not an older one. It is
// for who knows that there is one.
func later(ctx context.Context, d Directory, e Entry, stale func(Entry) bool) (Entry, error) {
	for wait := firstPause; ; {
		now, err := d.Get(ctx, e.Key)
		if err == nil && now.Rev != e.Rev && !stale(now) {
			return now, nil
		}
		if err == nil {
			err = errors.New("the directory still has an older entry")
		}
		if errors.Is(err, ErrClosed) || !pause.Wait(ctx, &wait) {
			return Entry{}, fmt.Errorf("read %s: %w", e.Key, unknown(ctx, err))
		}
	}
}

// unknown is the error of who gives up after err.
func unknown(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
		return fmt.Errorf("%w: %w: %w", ErrUnknown, ended, err)
	}
	return fmt.Errorf("%w: %w", ErrUnknown, err)
}

// firstPause is the first between two attempts.
const firstPause = 5 * time.Millisecond
