// Package shelf keeps snapshots of sandboxes on the disk of one user: what each is, and a
// folder with its files. What its sessions had in memory is in records of the host (package
// hibernate), whose names begin with that of the snapshot.
//
// # Guarantees
//
//   - A snapshot is there as a whole or not at all, whatever ends the server: what is written
//     of it comes last, and goes first. The rest of one that is not whole is removed by the next
//     server that reads the shelf.
//
//   - It is not removed while something is made of it.
//
//   - Folders are 0700 and files of the shelf 0600: they hold the variables of sandboxes.
//
//     none ──Begin──▶ begun ──Add──▶ kept ──Remove, Add of another one of its ID──▶ none
//     └──Discard──▶ none
//
// The package starts no goroutine. Any goroutine may call a [Shelf].
package shelf

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice/cmd/internal/e2b/interpreter"
	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/workspace"
)

// What a snapshot has on the disk, in a folder of its own.
const (
	aboutFile   = "snapshot.json"
	filesFolder = "files"
	// maxAbout bounds the first, in bytes.
	maxAbout = 8 << 20
	// UsualTag is the tag of a name that has none.
	UsualTag = "default"
)

// Snapshot is a sandbox as it was at one moment: its folder, and what its sessions had in
// memory, which the host keeps in records below the name of the snapshot.
type Snapshot struct {
	About
	dir string
	// use is held for reading while a sandbox is made of it, and for writing when it is
	// removed.
	use sync.RWMutex
}

// About is what is written of a snapshot.
type About struct {
	// ID is what clients know it by, with its tag, and Records begins the names of its
	// records.
	ID      string    `json:"id"`
	Named   bool      `json:"named"`
	Records string    `json:"records"`
	Made    time.Time `json:"made"`
	// Sandbox is the one that it was made of, Template what that was made of, and Folder
	// where its folder was.
	Sandbox  string `json:"sandbox"`
	Template string `json:"template"`
	Folder   string `json:"folder"`
	// Options are those of the workspace.
	Options  workspace.Options     `json:"options"`
	Contexts []interpreter.Context `json:"contexts"`
	Sessions []Saved               `json:"sessions"`
}

// Saved is a session whose memory is in a record.
type Saved struct {
	Record  string `json:"record"`
	Session string `json:"session"`
	Cwd     string `json:"cwd"`
}

// ErrRecords says that a snapshot has records, which this host cannot drop: it keeps none.
var ErrRecords = errors.New("the memory of its sessions is kept by a server that keeps sessions on disk: use one")

// Shelf has the snapshots of one user, on the disk: those of earlier servers too. Make it
// with New.
type Shelf struct {
	dir string
	// drop drops records; nil: the host keeps none, and so cannot drop those of other hosts.
	drop func(ctx context.Context, records string) error

	mu     sync.Mutex
	loaded bool                 // guarded by mu
	all    map[string]*Snapshot // by ID; guarded by mu
}

// New returns the shelf in a folder, which is made with the first snapshot. drop drops the
// records whose names begin with a prefix; nil: the host keeps none.
func New(dir string, drop func(ctx context.Context, records string) error) *Shelf {
	return &Shelf{dir: dir, drop: drop}
}

// load reads what is there. mu is held.
func (s *Shelf) load() error {
	if s.loaded {
		return nil
	}
	s.all = map[string]*Snapshot{}
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the snapshots: %w", err)
	}
	for _, e := range entries {
		one := &Snapshot{dir: filepath.Join(s.dir, e.Name())}
		data, err := file.Read(context.Background(), filepath.Join(one.dir, aboutFile), maxAbout)
		if err == nil {
			err = json.Unmarshal(data, &one.About)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue // it cannot be read now, and is left as it is
		}
		if other := s.all[one.ID]; err == nil && (other == nil || other.Made.Before(one.Made)) {
			one, s.all[one.ID] = other, one // the newer one of a name counts
		}
		if one == nil {
			continue
		}
		// A server was killed while it made it, removed it, or put another one in its place.
		if err := s.Discard(context.Background(), one); err != nil && !errors.Is(err, ErrRecords) {
			return err
		}
	}
	s.loaded = true
	return nil
}

// Begin makes the folder of a new snapshot. Until Add, it is none.
func (s *Shelf) Begin(name string) (*Snapshot, error) {
	s.mu.Lock()
	err := s.load() // it would take this one for one that was left behind
	s.mu.Unlock()
	one := &Snapshot{dir: filepath.Join(s.dir, name)}
	one.ID, one.Records = name, recordsOf(one.dir)
	if err = cmp.Or(err, os.MkdirAll(s.dir, 0o700)); err == nil {
		err = os.Mkdir(one.dir, 0o700)
	}
	if err == nil {
		err = os.Mkdir(one.Files(), 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("make a snapshot: %w", err)
	}
	return one, nil
}

// recordsOf begins the names of the records of the snapshot in a folder.
func recordsOf(dir string) string { return "e2b-snapshot/" + filepath.Base(dir) + "/" }

// Hold keeps a snapshot from being removed until release is called. False: it is removed
// already.
func (s *Snapshot) Hold() (release func(), ok bool) {
	s.use.RLock()
	if _, err := os.Stat(s.Files()); err != nil {
		s.use.RUnlock()
		return nil, false
	}
	return sync.OnceFunc(s.use.RUnlock), true
}

// Files is where its files are.
func (s *Snapshot) Files() string { return filepath.Join(s.dir, filesFolder) }

// Add puts a snapshot on the shelf, in place of one of its name.
func (s *Shelf) Add(ctx context.Context, one *Snapshot) error {
	data, err := json.Marshal(one.About)
	if err == nil {
		err = file.Write(filepath.Join(one.dir, aboutFile), data, file.WriteOptions{Mode: 0o600})
	}
	if err != nil {
		return fmt.Errorf("keep a snapshot: %w", err)
	}
	s.mu.Lock()
	before := s.all[one.ID]
	s.all[one.ID] = one
	s.mu.Unlock()
	if before == nil {
		return nil
	}
	if err := s.Discard(ctx, before); !errors.Is(err, ErrRecords) {
		return err
	}
	return nil // it is an older one of its name, which a host that can removes
}

// Remove takes a snapshot off the shelf. False: there is none of that ID.
func (s *Shelf) Remove(ctx context.Context, id string) (bool, error) {
	one, err := s.Find(id)
	if err != nil || one == nil {
		return false, err
	}
	if s.drop == nil && len(one.Sessions) > 0 {
		return false, ErrRecords
	}
	s.mu.Lock()
	there := s.all[one.ID] == one
	if there {
		delete(s.all, one.ID)
	}
	s.mu.Unlock()
	if !there {
		return false, nil // someone else has
	}
	return true, s.Discard(ctx, one)
}

// Discard removes what a snapshot has, when no sandbox is being made of it. The error is
// ErrRecords when there may be records of it, which this host cannot drop.
func (s *Shelf) Discard(ctx context.Context, one *Snapshot) error {
	one.use.Lock()
	defer one.use.Unlock()
	if s.drop == nil && (len(one.Sessions) > 0 || one.ID == "") {
		return ErrRecords
	}
	// What it is goes first: a server that is killed here removes the rest later.
	err := os.Remove(filepath.Join(one.dir, aboutFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if s.drop != nil {
		err = errors.Join(err, s.drop(ctx, recordsOf(one.dir)))
	}
	if err = errors.Join(err, removeAll(one.dir)); err != nil {
		return fmt.Errorf("remove a snapshot: %w", err)
	}
	return nil
}

// removeAll removes a folder, also where its own permissions stand against that.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(dir, func(at string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(at, 0o700) // it is looked into next
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// Find returns a snapshot, by its ID or by its name without the usual tag; nil: there is none.
func (s *Shelf) Find(id string) (*Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(); err != nil {
		return nil, err
	}
	if one := s.all[id]; one != nil {
		return one, nil
	}
	return s.all[id+":"+UsualTag], nil
}

// List returns the snapshots that match, the newest first: of a sandbox, and of a name, with
// its tag or with any. "": of all.
func (s *Shelf) List(sandbox, name string) ([]*Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(); err != nil {
		return nil, err
	}
	var list []*Snapshot
	for _, one := range s.all {
		if (sandbox == "" || one.Sandbox == sandbox) && (name == "" || name == one.ID || name == Base(one.ID)) {
			list = append(list, one)
		}
	}
	slices.SortFunc(list, func(x, y *Snapshot) int { return strings.Compare(y.Place(), x.Place()) })
	return list, nil
}

// Place is where it stands in a list: by its time, then by its ID.
func (s *Snapshot) Place() string { return fmt.Sprintf("%020d %s", s.Made.UnixNano(), s.ID) }

// names are what a snapshot may be called, with a tag or without.
var names = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}(:[A-Za-z0-9][A-Za-z0-9_.-]{0,63})?$`)
})

// ErrName is matched by the error for a name that no snapshot can have.
var ErrName = errors.New("the name cannot be used")

// Called is the ID of a snapshot that is given a name: with the usual tag, if it has none. The
// error matches ErrName.
func Called(name string) (string, error) {
	if !names().MatchString(name) {
		return "", fmt.Errorf("%w: a snapshot cannot be called %.80q: use letters, digits, -, _ and ., and after a colon a tag", ErrName, name)
	}
	if !strings.Contains(name, ":") {
		name += ":" + UsualTag
	}
	return name, nil
}

// Base is an ID without its tag.
func Base(id string) string {
	base, _, _ := strings.Cut(id, ":")
	return base
}
