package artifact

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"
)

// DefaultMaxBytes is the cap of one artifact.
const DefaultMaxBytes = 4 << 30

// sweepEvery is how often a store that artifacts are added to looks for old
// ones by itself.
const sweepEvery = 10 * time.Minute

// Options say where artifacts are kept and for how long.
type Options struct {
	// Dir is the directory. Empty: nothing can be kept, and every method
	// returns [ErrNoStore].
	Dir string
	// Tool is the middle of a file's name. Empty: "python".
	Tool string
	// First is the number of the first artifact: those of several stores that are read as one
	// are told apart by it.
	First int
	// MaxBytes is how much of one output is kept. 0: 4 GiB; negative: all.
	MaxBytes int64
	// MaxAge is how long an artifact is kept after it was last written. 0: for
	// ever.
	MaxAge time.Duration
	// MaxTotal is how many bytes all artifacts may take together. 0: no limit.
	MaxTotal int64
	// Now is the clock of the retention. nil: time.Now.
	Now func() time.Time
}

// Store is a directory of artifacts. Any goroutine may use it.
type Store struct {
	o Options

	mu    sync.Mutex
	next  int          // no number below it is given any more
	open  map[int]bool // being written
	swept time.Time
}

// New returns a store. It touches nothing yet.
func New(o Options) *Store {
	if o.Tool == "" {
		o.Tool = "python"
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Store{o: o, open: make(map[int]bool)}
}

// Dir returns the directory, empty if there is none.
func (s *Store) Dir() string {
	if s == nil {
		return ""
	}
	return s.o.Dir
}

// Info describes one artifact.
type Info struct {
	ID       int
	Path     string
	Bytes    int64
	Modified time.Time
}

// URI is the artifact's name.
func (i Info) URI() string { return URI(i.ID) }

var fileName = regexp.MustCompile(`^(0|[1-9][0-9]{0,14})\.[A-Za-z0-9_-]+\.(?:log|svg|json|bin)$`)

// number returns the number in the name of an artifact's file.
func number(name string) (int, bool) {
	m := fileName.FindStringSubmatch(name)
	if m == nil {
		return 0, false
	}
	id, err := strconv.Atoi(m[1])
	return id, err == nil
}

// List returns the artifacts, lowest number first. Without a directory that is
// [ErrNoDirectory].
func (s *Store) List() ([]Info, error) {
	if s.Dir() == "" {
		return nil, ErrNoStore
	}
	entries, err := os.ReadDir(s.o.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoDirectory
	}
	if err != nil {
		return nil, fmt.Errorf("list artifacts: %w", err)
	}
	var list []Info
	for _, e := range entries {
		id, ok := number(e.Name())
		if !ok || !e.Type().IsRegular() {
			continue
		}
		st, err := e.Info()
		if err != nil {
			continue // removed in the meantime
		}
		list = append(list, Info{ID: id, Path: filepath.Join(s.o.Dir, e.Name()), Bytes: st.Size(), Modified: st.ModTime()})
	}
	slices.SortFunc(list, func(a, b Info) int { return a.ID - b.ID })
	return list, nil
}

// Resolve returns the artifact that uri names.
func (s *Store) Resolve(uri string) (Info, error) {
	if s.Dir() == "" {
		return Info{}, ErrNoStore
	}
	id, err := ParseURI(uri)
	if err != nil {
		return Info{}, err
	}
	list, err := s.List()
	if err != nil {
		return Info{}, err
	}
	missing := &NotFoundError{ID: id}
	for _, i := range list {
		if i.ID == id {
			return i, nil
		}
		missing.Available = append(missing.Available, i.ID)
	}
	return Info{}, missing
}

// Create makes the next artifact. Whoever gets the writer closes it.
func (s *Store) Create() (*Writer, error) { return s.create(s.tool(), "log") }

func (s *Store) tool() string {
	if s == nil {
		return ""
	}
	return s.o.Tool
}

// Keep makes an artifact of data that is all there: a drawing, a document. kind
// is the middle of the file's name, extension its end: log, svg, json or bin.
func (s *Store) Keep(kind, extension string, data []byte) (Info, error) {
	w, err := s.create(kind, extension)
	if err != nil {
		return Info{}, err
	}
	_, err = w.Write(data)
	if end := w.Close(); err == nil {
		err = end
	}
	if err != nil {
		_ = os.Remove(w.Path()) // half of it is of no use
		return Info{}, err
	}
	return Info{ID: w.ID(), Path: w.Path(), Bytes: int64(len(data)), Modified: s.o.Now()}, nil
}

func (s *Store) create(kind, extension string) (*Writer, error) {
	if s.Dir() == "" {
		return nil, ErrNoStore
	}
	if err := os.MkdirAll(s.o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make artifacts directory: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		// Another process may count in the same directory, so the highest number
		// is looked up every time, and the file system decides who gets it.
		id, err := s.highest()
		if err != nil {
			return nil, err
		}
		s.next = max(s.next, id+1, s.o.First)
		id = s.next
		path := filepath.Join(s.o.Dir, fmt.Sprintf("%d.%s.%s", id, kind, extension))
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("create artifact: %w", err)
		}
		s.next++
		s.open[id] = true
		return newWriter(s, id, f), nil
	}
}

// highest returns the highest number in the directory, -1 if there is none.
func (s *Store) highest() (int, error) {
	entries, err := os.ReadDir(s.o.Dir)
	if err != nil {
		return 0, fmt.Errorf("list artifacts: %w", err)
	}
	highest := -1
	for _, e := range entries {
		if id, ok := number(e.Name()); ok {
			highest = max(highest, id)
		}
	}
	return highest, nil
}

// closed is called by a writer that is done.
func (s *Store) closed(id int) {
	now := s.o.Now()
	s.mu.Lock()
	delete(s.open, id)
	due := (s.o.MaxAge > 0 || s.o.MaxTotal > 0) && now.Sub(s.swept) >= sweepEvery
	if due {
		s.swept = now
	}
	s.mu.Unlock()
	if due {
		_, _ = s.Sweep() // what cannot be removed now is tried again later
	}
}

// Sweep removes what Options no longer allow to be kept, and returns it.
func (s *Store) Sweep() ([]Info, error) {
	list, err := s.List()
	if errors.Is(err, ErrNoDirectory) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var total int64
	for _, i := range list {
		total += i.Bytes
	}
	slices.SortFunc(list, func(a, b Info) int {
		if c := a.Modified.Compare(b.Modified); c != 0 {
			return c
		}
		return a.ID - b.ID
	})
	newest := -1
	for _, i := range list {
		newest = max(newest, i.ID)
	}
	var removed []Info
	var failed []error
	for _, i := range list {
		old := s.o.MaxAge > 0 && s.o.Now().Sub(i.Modified) > s.o.MaxAge
		large := s.o.MaxTotal > 0 && total > s.o.MaxTotal
		if !old && !large || i.ID == newest || s.open[i.ID] {
			continue
		}
		if err := os.Remove(i.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, fmt.Errorf("remove artifact %d: %w", i.ID, err))
			continue
		}
		total -= i.Bytes
		removed = append(removed, i)
	}
	return removed, errors.Join(failed...)
}
