package toolproc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Usage is what a run has written.
type Usage struct {
	Bytes int64
	Files int
}

// RunDir is the folder for the files of a run that begins now; "" when there is
// none for any.
func (p *Process) RunDir(run string, now time.Time) string {
	if p.o.Artifacts == "" {
		return ""
	}
	return filepath.Join(p.o.Artifacts, p.o.Tool.ID, now.Format(time.DateOnly), run)
}

// makeRunDir makes the folder of a run, for its user alone.
func makeRunDir(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return fmt.Errorf("make a folder for the run: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("make a folder for the run: %w", err)
	}
	return nil
}

// Measure adds up what is in the folder of a run. Links are not followed, and
// what vanishes in the meantime does not count.
func Measure(dir string) Usage {
	var u Usage
	if dir == "" {
		return u
	}
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			u.Files++
			u.Bytes += info.Size()
		}
		return nil
	})
	return u
}

// maxListed is how many files an answer names.
const maxListed = 1000

// collect lists the files of a run, relative to its folder with forward
// slashes, and removes the folder when it is empty. What ends in .partial,
// and links, are not the run's results.
func collect(dir string) []string {
	if dir == "" {
		return nil
	}
	var files []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasSuffix(path, ".partial") || len(files) >= maxListed {
			return nil
		}
		if rel, err := filepath.Rel(dir, path); err == nil {
			files = append(files, filepath.ToSlash(rel))
		}
		return nil
	})
	slices.Sort(files)
	if len(files) == 0 {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil // it holds parts of files; it stays for whoever looks for them
		}
	}
	return files
}
