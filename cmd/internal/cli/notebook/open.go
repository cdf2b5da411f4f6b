package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/cmd/internal/term"
	"github.com/coppice-run/coppice/notebook"
)

// lockPatience is how long a notebook's lock is waited for.
const lockPatience = 10 * time.Second

func (a *app) notebookCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "notebook",
		Aliases: []string{"nb"},
		Short:   "Show, edit, run and compare notebooks",
		Long: `Work with .ipynb files. A notebook is shown as text with a marker line before
each cell, and edited text is applied to it; what an edit does not touch stays
byte for byte. CELL is an index, counted from 0 as in the markers, or the id of
a cell (id:5 for an id that looks like a number). Behind --, -1 is the last cell.

  # %% [markdown] cell:0
  # Prices
  # %% [code] cell:1
  import pandas as pd

A file that changed between reading and writing is never overwritten.
The exit code is 0 when all is well, 1 when something is wrong with the
notebook, and 2 when the command line is wrong; that of run is like that of
coppice run.

Git can use these as a text conversion, a filter and a merge driver:

  git config diff.ipynb.textconv "coppice notebook show"
  git config filter.ipynb.clean "coppice notebook strip -"
  git config merge.ipynb.driver "coppice notebook merge --output %A %O %A %B"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return failure(cmd.Help()) },
	}
	cmd.AddGroup(
		&cobra.Group{ID: "read", Title: "Read:"},
		&cobra.Group{ID: "text", Title: "Edit as text, and run:"},
		&cobra.Group{ID: "cells", Title: "Edit cells:"},
		&cobra.Group{ID: "files", Title: "Whole files:"},
	)
	for group, commands := range map[string][]*cobra.Command{
		"read":  {a.nbShowCommand(), a.nbCellsCommand(), a.nbSearchCommand(), a.nbValidateCommand(), a.nbDiffCommand()},
		"text":  {a.nbEditCommand(), a.nbApplyCommand(), a.nbRunCommand()},
		"cells": {a.nbInsertCommand(), a.nbReplaceCommand(), a.nbDeleteCommand(), a.nbMoveCommand(), a.nbSplitCommand(), a.nbJoinCommand(), a.nbTagCommand(), a.nbMetaCommand(), a.nbSubCommand()},
		"files": {a.nbNewCommand(), a.nbStripCommand(), a.nbMergeCommand()},
	} {
		for _, c := range commands {
			c.GroupID = group
			cmd.AddCommand(c)
		}
	}
	return cmd
}

// nbCommand makes a command whose arguments are counted.
func nbCommand(use, short, long, example string, least, most int, run func(ctx context.Context, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long, Example: example,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < least || most >= 0 && len(args) > most {
				return usagef("use it as: %s", cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return nbFailure(run(cmd.Context(), args)) },
	}
}

// nbFailure sorts what went wrong: an argument is the command line's, the rest
// is the notebook's.
func nbFailure(err error) error {
	_, coded := errors.AsType[*codeError](err)
	_, usage := errors.AsType[usageError](err)
	switch {
	case err == nil || coded || usage:
		return err
	case errors.Is(err, notebook.ErrArgument), errors.Is(err, notebook.ErrNoCell), errors.Is(err, notebook.ErrSelector):
		return usageError{err}
	case errors.Is(err, notebook.ErrChanged):
		return failure(fmt.Errorf("%w; nothing was written: look at the file and try again", err))
	default:
		return failure(err)
	}
}

// readNotebook reads a notebook that is not to be written; - is standard input.
func (a *app) readNotebook(ctx context.Context, path string) (*notebook.Document, error) {
	if path == "-" {
		data, err := io.ReadAll(io.LimitReader(a.in, notebook.MaxFile+1))
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
	a.out.lines(said)
	return nil
}

// cellText is the text on standard input.
func (a *app) cellText() (string, error) {
	if term.IsTerminal(a.in) {
		a.err.lines("coppice: reading from standard input; end it with Ctrl-D")
	}
	text, err := readAll(a.in)
	if err != nil {
		return "", fmt.Errorf("read standard input: %w", err)
	}
	return text, nil
}
