package notebook

import (
	"context"
	"errors"

	"github.com/coppice-run/coppice/notebook"
)

// merging writes what a run in place leaves into FILE also when someone saved that in the
// meantime: their edits stay, and what the cells showed is added to them, by the rules of
// notebook.Merge. It belongs to the goroutine of the run.
type merging struct {
	file *notebook.File
	// base is FILE as it was before the run.
	base *notebook.Document
	// merged says that FILE was changed, and conflicts how many things both changed.
	merged    bool
	conflicts int
}

func newMerging(f *notebook.File) *merging { return &merging{file: f, base: f.Clone()} }

// mergeTries is how often a notebook is merged that is saved again each time.
const mergeTries = 5

// save is that of the run. A file that is gone, or no notebook any more, is not written:
// the error is the one of notebook.File.Save.
func (m *merging) save(ctx context.Context) (written bool, err error) {
	if !m.merged {
		if written, err = m.file.Save(ctx); !errors.Is(err, notebook.ErrChanged) {
			return written, err
		}
	}
	changed := err
	for range mergeTries {
		written, err = m.merge(ctx)
		if !errors.Is(err, notebook.ErrChanged) {
			break
		}
	}
	if err != nil && changed != nil {
		return false, changed
	}
	return written, err
}

// merge makes one notebook of the run's and of what is in the file.
func (m *merging) merge(ctx context.Context) (written bool, err error) {
	theirs, err := notebook.Open(ctx, m.file.Path)
	if err != nil {
		return false, err
	}
	both, conflicts := notebook.Merge(m.base, m.file.Document, theirs.Document, nil)
	theirs.Replace(both)
	if written, err = theirs.Save(ctx); err != nil {
		return false, err
	}
	m.merged, m.conflicts = true, len(conflicts)
	return written, nil
}
