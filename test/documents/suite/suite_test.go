//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/test/documents"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// here is a place whose command is a script.
func here(t *testing.T) *place {
	t.Helper()
	t.Chdir(filepath.Join("..", "..", ".."))
	dir := t.TempDir()
	coppice := filepath.Join(dir, "coppice")
	require.NoError(t, os.WriteFile(coppice, []byte(`#!/bin/sh
case $1 in
serve) touch "$HOME/up"; echo serving >&2; trap 'rm "$HOME/up"; exit 143' TERM; while :; do sleep 0.05; done ;;
health) [ -e "$HOME/up" ] ;;
fail) echo oh no; exit 3 ;;
*) echo "$*" ;;
esac
`), 0o700))
	p := &place{coppice: coppice, python: "python3", keep: filepath.Join(dir, "kept here")}
	require.NoError(t, p.settle())
	return p
}

func sh(run, want string) documents.Step {
	return documents.Step{Language: "sh", Shown: run, Run: run, Want: want}
}

// A story goes on in one shell, and each of its steps is told for itself.
func TestTell(t *testing.T) {
	p := here(t)
	story := documents.Story{Doc: "docs/x.md", Steps: []documents.Step{
		sh("coppice serve &   # for the rest", "serving"),
		sh("x=40", ""),
		sh("coppice $((x + 2)) \\\n  and more", "42 and more"),
		{Language: "python", Shown: "import coppice …", Run: "import coppice\nprint('from', coppice.__name__)\n", Want: "from coppice\n"},
		{Language: "sh", Shown: "coppice fail", Run: "coppice fail", Want: "oh no", Fails: true},
		{Language: "sh", Shown: "coppice top", Not: "it needs a terminal"},
		{Language: "ts", Shown: "x", Run: "x"},
		sh("coppice fail", ""),
		sh("coppice 1", "2"),
		{Language: "sh", Shown: "coppice 1", Run: "coppice 1", Fails: true},
		{Language: "sh", Shown: "kill %1", Run: "kill %1; wait %1; ls ~", Any: true},
	}}
	var out strings.Builder
	sum, err := p.tell(t.Context(), story, &out)
	require.NoError(t, err, out.String())
	require.Equal(t, count{good: 6, wrong: 3, not: 2}, sum, out.String())
	for _, says := range []string{"it needs a terminal", "was not built", "it ended with 3", `did not print "2"`, "which it should not"} {
		require.Contains(t, out.String(), says)
	}
	require.NoFileExists(t, filepath.Join(p.keep, "docs-x-md", "home", "up"), "the server was ended")
}

// A shell that ends before its time has not done the rest.
func TestTellOfAnEnd(t *testing.T) {
	p := here(t)
	var out strings.Builder
	sum, err := p.tell(t.Context(), documents.Story{Doc: "y", Steps: []documents.Step{sh("coppice 1", "1"), sh("exit 7", ""), sh("coppice 2", "")}}, &out)
	require.NoError(t, err)
	require.Equal(t, count{good: 1, wrong: 2}, sum, out.String())
	require.Contains(t, out.String(), "did not come to its end")
}

func TestMarker(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{"\0363 1\n": true, "3 1\n": false, "\036x 1\n": false, "\0363\n": false, "": false} {
		_, _, ok := marker(line)
		require.Equal(t, want, ok, "%q", line)
	}
	ends := listen(strings.NewReader("a\n\n\0360 0\nb\n\n\0361 2\nc"), 2)
	require.Equal(t, "a\n\n", ends[0].said)
	require.Equal(t, "b\n\nc", ends[1].said)
	require.Equal(t, 2, ends[1].status)
	require.Less(t, ends[1].took, time.Hour)
}
