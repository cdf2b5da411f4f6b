package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-run/coppice/internal/file"
)

// edition is one record on the disk. Of those of one name the one counts that was written
// last, which its own name says: so it is known of one that cannot be read, too.
type edition struct {
	place, edition string
}

func (e edition) String() string { return e.place + "-" + e.edition }

// digits is how long the number in the name of an edition is, in hexadecimal; mark is what
// it begins with.
const (
	mark   = "n"
	digits = 8
)

// next names the edition that is written after this one, the zero value for none.
func (e edition) next(place string) edition {
	return edition{place, fmt.Sprintf("%s%0*x-%s", mark, digits, e.nth()+1, rand.Text()[:16])}
}

// nth says which of its name's records it is, from 1; 0 where its name does not say.
func (e edition) nth() uint64 {
	number, _, _ := strings.Cut(e.edition, "-")
	number, ok := strings.CutPrefix(number, mark)
	n, err := strconv.ParseUint(number, 16, 63)
	if !ok || err != nil || len(number) < digits {
		return 0
	}
	return n
}

func (f *Folder) path(e edition) string {
	return filepath.Join(f.o.Dir, recordsDir, e.place, e.edition+recordExt)
}

// editions returns the records of a place, the one that counts last: a program that was
// killed while it replaced one has left two.
func (f *Folder) editions(place string) ([]edition, error) {
	entries, err := os.ReadDir(filepath.Join(f.o.Dir, recordsDir, place))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []edition
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), recordExt); ok {
			all = append(all, edition{place, name})
		}
	}
	slices.SortStableFunc(all, func(a, b edition) int {
		switch x, y := a.nth(), b.nth(); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	return all, nil
}

// places returns all places in which records may be.
func (f *Folder) places() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(f.o.Dir, recordsDir))
	if err != nil {
		return nil, err
	}
	all := make([]string, 0, len(entries))
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all, nil
}

// read reads one record.
func (f *Folder) read(ctx context.Context, e edition) (Body, error) {
	const most = MaxRecord + 1<<10
	f.known.reads.Add(1)
	data, err := file.Read(ctx, f.path(e), most)
	if err != nil {
		return Body{}, err
	}
	return Unseal(data, f.key)
}

// newest returns the record of a place that counts. The error matches [ErrNone]. When that
// record cannot be read no other one is returned: what it replaced is older than what the
// session did last.
func (f *Folder) newest(ctx context.Context, place string) (edition, Body, error) {
	return latest(f, place, func(e edition) (Body, error) { return f.read(ctx, e) }, func(b Body) time.Time { return b.Header.Made })
}

// latest reads the record of a place that counts, in one way or another.
func latest[T any](f *Folder, place string, read func(edition) (T, error), made func(T) time.Time) (found edition, newest T, err error) {
	all, err := f.editions(place)
	if err != nil {
		return found, newest, err
	}
	if len(all) == 0 {
		return found, newest, ErrNone
	}
	for i, e := range slices.Backward(all) {
		if i < len(all)-1 && e.nth() < found.nth() {
			break
		}
		one, err := read(e)
		if refused, ok := errors.AsType[*RefusedError](err); ok && len(all) > 1 {
			err = refuse(refused.Reason, "%s; an older one of the same name is there, which is not what was kept last", refused.Problem)
		}
		if err != nil {
			return e, one, err
		}
		if i == len(all)-1 || made(one).After(made(newest)) { // else they have no numbers
			found, newest = e, one
		}
	}
	return found, newest, nil
}

// known are the headers of records, as far as they were read for lists. A record is never
// changed once it is there: one whose file is as it was says what it said. Any goroutine may
// call its methods.
type known struct {
	mu    sync.Mutex
	all   map[edition]*remembered // guarded by mu
	bytes int64                   // of their headers; guarded by mu
	// reads counts the records that were read.
	reads atomic.Int64
}

// remembered is what is known of one record.
type remembered struct {
	size int64
	made time.Time // when its file was written
	// header is what it says, refused why it may not be had.
	header  Header
	refused *RefusedError
}

// knownMost is how many bytes of headers are remembered, about; others are read each time.
const knownMost = 16 << 20

// weight is about what a header takes in memory.
func (r *remembered) weight() int64 {
	const least = 512
	return least + int64(len(r.header.Manifest)) + 8*int64(len(r.header.Sections))
}

// clone returns the header for someone who may change it.
func (r *remembered) clone() Header {
	h := r.header
	h.Owners, h.Manifest, h.Sections = slices.Clone(h.Owners), slices.Clone(h.Manifest), slices.Clone(h.Sections)
	return h
}

// get returns what is known of a record whose file is as it was; nil for nothing.
func (k *known) get(e edition, info fs.FileInfo) *remembered {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r := k.all[e]; r != nil && r.size == info.Size() && r.made.Equal(info.ModTime()) {
		return r
	}
	return nil
}

// put remembers what was read of a record.
func (k *known) put(e edition, r *remembered) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if old := k.all[e]; old != nil {
		k.bytes -= old.weight()
		delete(k.all, e)
	}
	if k.bytes+r.weight() > knownMost {
		return
	}
	if k.all == nil {
		k.all = map[edition]*remembered{}
	}
	k.all[e] = r
	k.bytes += r.weight()
}

// keep forgets all records but some.
func (k *known) keep(some map[edition]bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for e, r := range k.all {
		if !some[e] {
			k.bytes -= r.weight()
			delete(k.all, e)
		}
	}
}

// header returns the header of a record, which is read when that was not done before.
func (f *Folder) header(ctx context.Context, e edition) (Header, error) {
	info, err := os.Lstat(f.path(e))
	if err != nil {
		return Header{}, err
	}
	r := f.known.get(e, info)
	if r == nil {
		b, err := f.read(ctx, e)
		r = &remembered{size: info.Size(), made: info.ModTime(), header: b.Header}
		if err != nil && !errors.As(err, &r.refused) {
			return Header{}, err
		}
		f.known.put(e, r)
	}
	if r.refused != nil {
		return Header{}, r.refused
	}
	return r.clone(), nil
}

// List returns the headers of all records.
func (f *Folder) List(ctx context.Context) ([]Header, error) {
	places, err := f.places()
	if err != nil {
		return nil, fmt.Errorf("list what is kept: %w", err)
	}
	now, there := time.Now(), make(map[edition]bool, len(places))
	list := make([]Header, 0, len(places))
	for _, place := range places {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("list what is kept: %w", context.Cause(ctx))
		}
		read := func(e edition) (Header, error) {
			there[e] = true
			return f.header(ctx, e)
		}
		var h Header
		const tries = 3 // it may be replaced while it is read
		for range tries {
			_, h, err = latest(f, place, read, func(h Header) time.Time { return h.Made })
			if !errors.Is(err, fs.ErrNotExist) {
				break
			}
		}
		if err == nil && !h.Expired(now) {
			list = append(list, h)
		}
	}
	f.known.keep(there)
	slices.SortFunc(list, func(a, b Header) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}
