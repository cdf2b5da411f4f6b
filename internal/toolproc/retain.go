package toolproc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/internal/toolspec"
)

// runningSuffix ends the name of a file beside the folder of a run that goes on,
// so that no other host of the same folder takes it for an old one.
const runningSuffix = ".running"

// staleRun is the age from which the mark of a run is that of a host that was
// killed: no run is allowed to last that long.
const staleRun = 25 * time.Hour

// OpenRunFile opens a file that a run left in its folder under artifacts. What
// lies outside of the folder, by name or by a link, cannot be opened. The error
// matches fs.ErrNotExist when there is no such file, and is a *file.NotRegularError
// when code of the tool has made a FIFO, a device or a socket there.
func OpenRunFile(artifacts, tool, run, name string) (*os.File, error) {
	notThere := &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	if artifacts == "" || !toolspec.IsID(tool) || !toolspec.IsID(run) || strings.HasSuffix(run, runningSuffix) {
		return nil, notThere
	}
	days, err := filepath.Glob(filepath.Join(escapeGlob(filepath.Join(artifacts, tool)), "*", run))
	// What a tool puts there in place of a folder is not one of its runs.
	days = slices.DeleteFunc(days, func(day string) bool {
		info, err := os.Stat(day)
		return err != nil || !info.IsDir()
	})
	if err != nil || len(days) == 0 {
		return nil, notThere
	}
	root, err := file.OpenRoot(days[len(days)-1])
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	f, err := file.OpenIn(root, filepath.FromSlash(name))
	if other, is := errors.AsType[*file.NotRegularError](err); is && other.Kind != file.Directory {
		return nil, err
	}
	if err != nil {
		return nil, notThere // the caller need not learn that a name leads elsewhere
	}
	return f, nil
}

// escapeGlob makes a path one that matches itself alone.
func escapeGlob(path string) string {
	return strings.NewReplacer("[", "[[]", "*", "[*]", "?", "[?]").Replace(path)
}

// mark says that a run goes on; the function takes that back.
func mark(dir string) (unmark func()) {
	path := dir + runningSuffix
	if err := file.Write(path, nil, file.WriteOptions{}); err != nil {
		return func() {} // then it is the newest folder all the same
	}
	return func() { _ = os.Remove(path) }
}

// retain removes the folders of a tool's runs that have ended first, until keep
// are left. Runs that go on are not counted. dir is the folder of the one that
// has just ended.
func retain(dir string, keep int) {
	now := time.Now()
	_ = os.Chtimes(dir, now, now) // a long one would be taken for an old one
	root := filepath.Dir(filepath.Dir(dir))
	type old struct {
		path string
		at   time.Time
	}
	var runs []old
	days, err := os.ReadDir(root)
	if err != nil {
		return
	}
	for _, day := range days {
		at := filepath.Join(root, day.Name())
		if _, err := time.Parse(time.DateOnly, day.Name()); err != nil || !day.IsDir() {
			continue // not made here
		}
		entries, err := os.ReadDir(at)
		if err != nil {
			continue
		}
		for _, e := range entries {
			path := filepath.Join(at, e.Name())
			info, err := e.Info()
			if err != nil || !e.IsDir() || goesOn(path) {
				continue
			}
			runs = append(runs, old{path, info.ModTime()})
		}
	}
	slices.SortFunc(runs, func(a, b old) int { return a.at.Compare(b.at) })
	for _, r := range runs[:max(0, len(runs)-keep)] {
		// What cannot be removed now is tried again after the next run.
		if os.RemoveAll(r.path) == nil {
			if day := filepath.Dir(r.path); day != filepath.Dir(dir) { // a run may be about to begin in today's
				_ = os.Remove(day) // when it was the last one
			}
		}
	}
}

func goesOn(dir string) bool {
	info, err := os.Stat(dir + runningSuffix)
	return err == nil && time.Since(info.ModTime()) < staleRun
}
