package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// guarded are folders of the system in which some files are for their owner alone. A process
// of root without its capabilities is still that owner: what is closed to others there is
// kept from it by rules.
var guarded = []string{"/etc", "/opt"}

// What others may do, of the permissions.
const (
	othersRead = 0o004
	othersPass = 0o001
)

// survey is what others than the owner may read of a folder.
type survey struct {
	// open are files, and folders in which everything may be read.
	open []string
	// listed are folders that are not, but of which no folder is closed: their names may be
	// read.
	listed []string
	// closed are the files and folders that may not be read.
	closed []string
}

// look surveys a folder.
func (s *survey) look(dir string, mode fs.FileMode) (whole, listed bool) {
	entries, err := os.ReadDir(dir)
	if err != nil || mode&othersPass == 0 {
		s.closed = append(s.closed, dir)
		return false, false
	}
	opened, names := len(s.open), len(s.listed)
	whole = mode&othersRead != 0
	listed = whole
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := e.Info()
		switch {
		case err != nil: // it is gone
		case e.Type()&fs.ModeSymlink != 0: // what it leads to is judged where it is
		case e.IsDir():
			w, l := s.look(path, info.Mode())
			whole, listed = whole && w, listed && l
		case info.Mode()&othersRead == 0:
			s.closed = append(s.closed, path)
			whole = false
		default:
			s.open = append(s.open, path)
		}
	}
	switch {
	case whole:
		s.open = append(s.open[:opened], dir)
	case listed:
		s.listed = append(s.listed[:names], dir)
	}
	return whole, listed
}

// How long a survey is good: a second, and longer where it takes long.
const (
	surveyGood  = time.Second
	surveyShare = 50
)

// surveys are those of this process.
type surveys struct {
	mu  sync.Mutex
	all map[string]dated // guarded by mu
}

type dated struct {
	survey
	until time.Time
}

// of returns the survey of a folder, which is at most about a second old.
func (s *surveys) of(dir string) survey {
	s.mu.Lock()
	defer s.mu.Unlock()
	begin := time.Now()
	if d, there := s.all[dir]; there && begin.Before(d.until) {
		return d.survey
	}
	var d dated
	if info, err := os.Stat(dir); err == nil {
		d.look(dir, info.Mode())
	}
	d.until = time.Now().Add(max(surveyGood, surveyShare*time.Since(begin)))
	if s.all == nil {
		s.all = map[string]dated{}
	}
	s.all[dir] = d
	return d.survey
}

// surveyed is shared by all rules: the folders are the machine's.
var surveyed surveys

// guards returns the folders of the system that are opened in parts. From other users than
// root the system itself keeps what is closed to them, and what rules name is open as a whole.
func (r Rules) guards() []string {
	if os.Geteuid() != 0 {
		return nil
	}
	var all []string
	for _, dir := range guarded {
		named := func(p string) bool { return filepath.Clean(p) == dir }
		if !slices.ContainsFunc(r.Read, named) && !slices.ContainsFunc(r.Write, named) {
			all = append(all, dir)
		}
	}
	return all
}
