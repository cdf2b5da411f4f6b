//go:build unix

package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// FindLoose looks through a folder for what others have rights of mask on (0o077:
// any, 0o022: to change it) and for what is not ours, at most most of them. Folders
// named in skip, relative to dir, are passed over; one with a slash behind its name is
// looked at itself, and what is in it is not. A folder that does not exist holds nothing.
func FindLoose(dir string, skip []string, mask os.FileMode, most int) ([]Loose, error) {
	var found []Loose
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // gone by now, or never there
		}
		if err != nil {
			found = append(found, Loose{Path: path, Why: "cannot be read"})
			return skipDir(d)
		}
		rel, err := filepath.Rel(dir, path)
		if err == nil && slices.Contains(skip, rel) {
			return skipDir(d)
		}
		info, err := os.Lstat(path)
		if err != nil || info.Mode()&fs.ModeSymlink != 0 {
			return nil
		}
		if why := loose(info, mask); why != "" {
			found = append(found, Loose{Path: path, Why: why})
		}
		if len(found) >= most {
			return fs.SkipAll
		}
		if slices.Contains(skip, rel+"/") {
			return skipDir(d)
		}
		return nil
	})
	if err != nil {
		return found, fmt.Errorf("look at the permissions in %s: %w", dir, err)
	}
	return found, nil
}

func skipDir(d fs.DirEntry) error {
	if d != nil && d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// loose says what is wrong with a file, or "".
func loose(info fs.FileInfo, mask os.FileMode) string {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Getuid() {
		return fmt.Sprintf("belongs to user %d", s.Uid)
	}
	if mode := info.Mode().Perm(); mode&mask != 0 {
		return fmt.Sprintf("is open to others (mode %#o)", mode)
	}
	return ""
}
