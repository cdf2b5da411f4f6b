//go:build linux

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/test/testpython"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestTheREADMEHasTheseLines: its quick start is the body of answer, but for what
// is returned at the end.
func TestTheREADMEHasTheseLines(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(readme), "Python in ten lines")
	require.True(t, ok, "the README has the quick start")
	_, block, _ := strings.Cut(section, "```go\n")
	block, _, _ = strings.Cut(block, "```")
	lines := strings.Split(strings.TrimSpace(block), "\n")
	require.Len(t, lines, 10)

	file, err := os.ReadFile("main.go")
	require.NoError(t, err)
	body := regexp.MustCompile(`(?ms)^func answer\(.*?\{\n(.*?)^\treturn [^\n]*\n\}`).FindStringSubmatch(string(file))
	require.Len(t, body, 2)
	require.Equal(t, strings.TrimPrefix(strings.ReplaceAll(body[1], "\n\t", "\n"), "\t"), strings.ReplaceAll(block, "return err\n", "return \"\", err\n"))
}

// TestAnswer runs them, with what a model may send.
func TestAnswer(t *testing.T) {
	t.Setenv("COPPICE_HOME", t.TempDir())
	t.Setenv("PATH", filepath.Dir(testpython.Path(t))+string(os.PathListSeparator)+os.Getenv("PATH"))
	text, err := answer(t.Context(), json.RawMessage(`{"cells": [{"code": "sum(n * n for n in range(10))"}]}`))
	require.NoError(t, err)
	require.Equal(t, "285", text)
}
