package notebook_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/notebook"
	"github.com/coppice-run/coppice/test/notfile"
)

// TestNoFile: a path that is no regular file is refused at once by whatever reads a
// notebook, and by Save when it became one.
func TestNoFile(t *testing.T) {
	dir := t.TempDir()
	for _, kind := range notfile.Kinds {
		path := filepath.Join(dir, "nb.ipynb")
		notfile.Make(t, kind, path)
		for name, open := range map[string]func() error{
			"Open":        func() error { _, err := notebook.Open(t.Context(), path); return err },
			"OpenOrNew":   func() error { _, err := notebook.OpenOrNew(t.Context(), path); return err },
			"OpenOutline": func() error { _, err := notebook.OpenOutline(t.Context(), path); return err },
			"NewFile":     func() error { _, err := notebook.NewFile(t.Context(), path, notebook.New()); return err },
		} {
			notfile.AtOnce(t, func() {
				err := open()
				var told *notebook.Error
				if !errors.Is(err, notebook.ErrNotFile) || !errors.As(err, &told) || told.Path != path {
					t.Errorf("%s of %s: %v", name, kind, err)
				}
			})
		}
		_, err := notebook.Open(t.Context(), path)
		require.ErrorContains(t, err, "notebook is no file: "+path+": is "+string(kind)+", not a regular file; ")

		require.NoError(t, os.RemoveAll(path))
		writeFile(t, path, string(corpus(t)["nbformat-4.5"]))
		f, err := notebook.Open(t.Context(), path)
		require.NoError(t, err)
		edit(t, f, "x")
		notfile.Make(t, kind, path)
		notfile.AtOnce(t, func() {
			if _, err := f.Save(t.Context()); !errors.Is(err, notebook.ErrNotFile) {
				t.Errorf("Save onto %s: %v", kind, err)
			}
		})
		require.NoError(t, os.RemoveAll(path))
	}
}

// TestLockIsNoFile: what code has put where the lock belongs does not keep a notebook
// from being saved, nor its saver.
func TestLockIsNoFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // it has only directories, which are an error of the system
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "nb.ipynb")
	f, err := notebook.OpenOrNew(t.Context(), path)
	require.NoError(t, err)
	for _, kind := range []notfile.Kind{notfile.FIFO, notfile.Device} {
		notfile.Make(t, kind, f.LockPath())
		edit(t, f, "x")
		notfile.AtOnce(t, func() {
			if _, err := f.Save(t.Context()); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		})
		onlyFile(t, dir, "nb.ipynb")
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "nb.ipynb")
	writeFile(t, path, `{"cells": []`)
	require.NoError(t, os.Truncate(path, notebook.MaxFile+1)) // it takes no room on the disk
	_, err := notebook.Open(t.Context(), path)
	require.ErrorIs(t, err, notebook.ErrTooLarge)
	require.ErrorContains(t, err, "notebook is too large: "+path+": holds 536870913 bytes, and at most 512 MiB are read; ")
	_, err = notebook.NewFile(t.Context(), path, notebook.New())
	require.ErrorIs(t, err, notebook.ErrTooLarge)
}

func TestOpenEndsWithItsContext(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "nb.ipynb")
	writeFile(t, path, string(corpus(t)["nbformat-4.5"]))
	why := errors.New("the client has left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	_, err := notebook.Open(ctx, path)
	require.ErrorIs(t, err, why)
	_, err = notebook.OpenOutline(ctx, path)
	require.ErrorIs(t, err, why)
	_, err = notebook.NewFile(ctx, path, notebook.New())
	require.ErrorIs(t, err, why)
}
