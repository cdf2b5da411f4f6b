package notebook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/term"
	"github.com/coppice-run/coppice/notebook"
)

// lockPatience is how long a notebook's lock is waited for.
const lockPatience = 10 * time.Second

// readNotebook reads a notebook that is not to be written; - is standard input.
func (a *app) readNotebook(ctx context.Context, path string) (*notebook.Document, error) {
	if path == "-" {
		data, err := io.ReadAll(io.LimitReader(a.In, notebook.MaxFile+1))
		if err == nil && len(data) > notebook.MaxFile {
			err = fmt.Errorf("more than %d MiB", notebook.MaxFile>>20)
		}
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return notebook.Parse(data)
	}
	f, err := notebook.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	return f.Document, nil
}

// largeNotebook is from how many bytes on a notebook is not read as a whole when
// only its cells are shown.
const largeNotebook = 8 << 20

// lookAtCells reads a notebook whose outputs are not looked at.
func (a *app) lookAtCells(ctx context.Context, path string) (*notebook.Document, error) {
	if info, err := os.Stat(path); path == "-" || err != nil || !info.Mode().IsRegular() || info.Size() < largeNotebook {
		return a.readNotebook(ctx, path)
	}
	return notebook.OpenOutline(ctx, path)
}

// saveNotebook saves within lockPatience.
func saveNotebook(ctx context.Context, f *notebook.File) (written bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	return f.Save(ctx)
}

// staleFlags say what becomes of outputs whose source was edited.
type staleFlags struct {
	clear bool
	keep  bool
}

func (f *staleFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.clear, "clear-stale", false, "clear the outputs of cells whose source changed (default: keep them, marked as stale)")
	cmd.Flags().BoolVar(&f.keep, "no-mark", false, "keep the outputs of cells whose source changed, without a mark")
	cmd.MarkFlagsMutuallyExclusive("clear-stale", "no-mark")
}

func (f staleFlags) policy() notebook.StalePolicy {
	switch {
	case f.clear:
		return notebook.StaleClear
	case f.keep:
		return notebook.StaleKeep
	default:
		return notebook.StaleMark
	}
}

// editNotebook opens a notebook, changes it and saves it. What is said of the
// change goes to standard output once it is saved.
func (a *app) editNotebook(ctx context.Context, path string, stale staleFlags, change func(*notebook.File) (said string, err error)) error {
	f, err := notebook.Open(ctx, path)
	if err != nil {
		return err
	}
	f.Stale = stale.policy()
	said, err := change(f)
	if err != nil {
		return err
	}
	written, err := saveNotebook(ctx, f)
	if err != nil {
		return err
	}
	if !written {
		said = "nothing to change"
	}
	a.Out.Lines(said)
	return nil
}

// each does something with each of some files, and goes on after one that fails: who names
// many does not want the others left. The error is that of all, until ctx ended.
func each(ctx context.Context, paths []string, do func(path string) error) error {
	var failed []error
	for _, path := range paths {
		if ctx.Err() != nil {
			break
		}
		if err := failure(do(path)); err != nil {
			failed = append(failed, err)
		}
	}
	return console.Failure(errors.Join(append(failed, context.Cause(ctx))...))
}

// cellText is the text on standard input.
func (a *app) cellText() (string, error) {
	if term.IsTerminal(a.In) {
		a.Err.Lines("coppice: reading from standard input; end it with Ctrl-D")
	}
	text, err := a.ReadInput()
	if err != nil {
		return "", fmt.Errorf("read standard input: %w", err)
	}
	return text, nil
}
