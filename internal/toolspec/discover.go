package toolspec

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coppice-run/coppice/internal/file"
)

// Entry is one folder of a folder of tools.
type Entry struct {
	// ID is the tool's id, or the folder's name when the tool is broken.
	ID string
	// Dir is the folder, absolute.
	Dir string
	// Tool is nil when the tool is broken; Err then says why.
	Tool *Tool
	Err  error
	// Stamp changes with the files that a process of the tool was made from.
	Stamp string
}

// Broken reports whether there is a tool.json that cannot be used. A folder without one may
// be anything, and lacks nothing.
func (e Entry) Broken() bool {
	if e.Err == nil {
		return false
	}
	_, err := os.Lstat(filepath.Join(e.Dir, FileName))
	return !errors.Is(err, fs.ErrNotExist)
}

// stamped are the files whose change makes a running process outdated.
var stamped = []string{FileName, "pyproject.toml", "requirements.txt", ".env"}

// Discover lists the tools in a folder, by the names of their folders. A folder
// that does not exist has none. Folders whose names begin with a dot or two
// underscores are passed over. The error is that of reading dir, or of ctx.
func Discover(ctx context.Context, dir string) ([]Entry, error) {
	names, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the tools in %s: %w", dir, err)
	}
	var entries []Entry
	owner := map[string]string{}
	for _, n := range names {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("list the tools in %s: %w", dir, context.Cause(ctx))
		}
		if strings.HasPrefix(n.Name(), ".") || strings.HasPrefix(n.Name(), "__") || !isDir(dir, n) {
			continue
		}
		e := Read(ctx, filepath.Join(dir, n.Name()))
		if e.Err == nil {
			if first, taken := owner[e.ID]; taken {
				e = Entry{ID: n.Name(), Dir: e.Dir, Stamp: e.Stamp, Err: &Error{File: filepath.Join(e.Dir, FileName), Problems: []Problem{{
					Path: "id", Text: fmt.Sprintf("%q is the id of the tool in %s too", e.ID, first),
				}}}}
			} else {
				owner[e.ID] = n.Name()
			}
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// isDir follows links: a tool may be one.
func isDir(dir string, n fs.DirEntry) bool {
	if n.Type()&fs.ModeSymlink == 0 {
		return n.IsDir()
	}
	info, err := os.Stat(filepath.Join(dir, n.Name()))
	return err == nil && info.IsDir()
}

// Read reads the tool in one folder.
func Read(ctx context.Context, dir string) Entry {
	e := Entry{ID: filepath.Base(dir), Dir: dir}
	if abs, err := filepath.Abs(dir); err == nil {
		e.Dir, e.ID = abs, filepath.Base(abs)
	}
	e.Stamp = stamp(e.Dir, "main.py")
	path := filepath.Join(e.Dir, FileName)
	data, err := file.Read(ctx, path, MaxFileBytes)
	if err != nil {
		if problem := unreadable(err); problem != "" {
			err = &Error{File: path, Problems: []Problem{{Text: problem}}}
		}
		e.Err = err
		return e
	}
	tool, err := Parse(data)
	if broken, ok := errors.AsType[*Error](err); ok {
		broken.File = path
		e.Err = broken
		return e
	}
	e.Tool, e.ID, e.Stamp = tool, tool.ID, stamp(e.Dir, tool.Entrypoint)
	return e
}

// unreadable says what is wrong with a tool.json that cannot be read, "" when only
// the system knows.
func unreadable(err error) string {
	inner, isPath := errors.AsType[*fs.PathError](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such file; coppice tool new makes one"
	case isPath && (file.IsNotRegular(err) || file.IsTooLarge(err)):
		return "it " + inner.Err.Error()
	default:
		return ""
	}
}

// ErrNotFound is matched by the error of [Find] when no folder has the id.
var ErrNotFound = errors.New("no such tool")

// Find returns the tool of an id. The folder of that name is looked at first.
// The error of a broken tool is the entry's Err; the error of Find is for an id
// that no tool has.
func Find(ctx context.Context, dir, id string) (Entry, error) {
	if IsID(id) {
		if e := Read(ctx, filepath.Join(dir, id)); e.Err == nil && e.ID == id {
			return e, nil
		}
	}
	entries, err := Discover(ctx, dir)
	if err != nil {
		return Entry{}, err
	}
	if i := slices.IndexFunc(entries, func(e Entry) bool { return e.ID == id && e.Err == nil }); i >= 0 {
		return entries[i], nil
	}
	if i := slices.IndexFunc(entries, func(e Entry) bool { return e.ID == id || filepath.Base(e.Dir) == id }); i >= 0 {
		return entries[i], nil
	}
	ids := make([]string, 0, len(entries))
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	if len(ids) == 0 {
		return Entry{}, fmt.Errorf("%w: %q; there is no tool in %s", ErrNotFound, id, dir)
	}
	return Entry{}, fmt.Errorf("%w: %q; the tools in %s are %s", ErrNotFound, id, dir, strings.Join(ids, ", "))
}

// stamp is a hash over the time and size of the files that make a tool.
func stamp(dir string, program string) string {
	h := sha256.New()
	for _, name := range append(slices.Clone(stamped), program) {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			_, _ = fmt.Fprintf(h, "%s -\n", name)
			continue
		}
		_, _ = fmt.Fprintf(h, "%s %d %d\n", name, info.ModTime().UnixNano(), info.Size())
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
