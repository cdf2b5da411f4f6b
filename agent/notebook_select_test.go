package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
)

// TestNotebookReadTakesLines behind the path, as the command line does.
func TestNotebookReadTakesLines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const book = `{
 "cells": [{"cell_type":"code","metadata":{},"source":["a = 1\n","b = 2\n","c = 3"],"outputs":[],"execution_count":null}],
 "metadata": {},
 "nbformat": 4,
 "nbformat_minor": 4
}`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "s.ipynb"), []byte(book), 0o600))
	long := strings.Replace(book, `"c = 3"`, `"`+strings.Repeat("x", readCut)+`\n","last"`, 1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "long.ipynb"), []byte(long), 0o600))
	read := func(args string) (string, error) {
		r, err := callNotebookRead(t.Context(), Call{Arguments: json.RawMessage(args), Session: messages.SessionKey{Cwd: dir}})
		return r.Text, err
	}
	for args, want := range map[string]string{
		`{"path":"s.ipynb:2-3"}`:                             "a = 1\nb = 2",
		`{"path":"s.ipynb:1,4"}`:                             "# %% [code] cell:0\nc = 3",
		`{"path":"s.IPYNB:3+1"}`:                             "",
		`{"path":"s.ipynb:raw:3-4"}`:                         " \"metadata\": {},\n \"nbformat\": 4,",
		`{"path":"s.ipynb:"}`:                                "# %% [code] cell:0\na = 1\nb = 2\nc = 3",
		`{"path":"s.ipynb:90-"}`:                             "The notebook has no such lines.",
		`{"path":"` + filepath.Join(dir, "s.ipynb:2") + `"}`: "a = 1",
	} {
		text, err := read(args)
		if want == "" {
			require.Error(t, err, args) // there is no such file
			continue
		}
		require.NoError(t, err, args)
		require.Equal(t, want, text, args)
	}
	text, err := read(`{"path":"long.ipynb:1-"}`)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(text, "[cut before line 4: the selector 4- reads on]"), text)
	for args, want := range map[string]string{
		`{"path":"s.ipynb:x"}`:                  "lines are numbered from 1",
		`{"path":"s.ipynb:1-2","cells":"0"}`:    "do not go with lines",
		`{"path":"s.ipynb:1-2","outputs":true}`: "do not go with lines",
		`{"path":"s.txt:1-2"}`:                  "must end in .ipynb",
	} {
		_, err := read(args)
		require.ErrorContains(t, err, want, args)
	}
}
