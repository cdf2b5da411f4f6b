package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is explained is still there.
func TestWhatIsExplained(t *testing.T) {
	t.Parallel()
	for _, e := range explained {
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(e.file)))
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(text), e.code), "%s: %s", e.file, e.code)
		require.NotEmpty(t, e.why)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := explained[0]
	source, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(e.file)))
	require.NoError(t, err)
	line, column := 0, 0
	for i, text := range strings.Split(string(source), "\n") {
		if at := strings.Index(text, e.code); at >= 0 {
			line, column = i+1, at+1+strings.Index(e.code, "<")
		}
	}
	report := func(mutations ...mutation) string {
		text, err := json.Marshal(map[string]any{"files": []map[string]any{{"file_name": filepath.Base(e.file), "mutations": mutations}}})
		require.NoError(t, err)
		name := filepath.Join(dir, "report.json")
		require.NoError(t, os.WriteFile(name, text, 0o600))
		return name
	}
	read := func(mutations ...mutation) (string, error) {
		var out strings.Builder
		err := run([]string{"-top", filepath.Join("..", ".."), "-package", "supervisor/strategy", report(mutations...)}, &out)
		return out.String(), err
	}
	killed := mutation{Type: "INVERT_LOGICAL", Status: "KILLED", Line: 1, Column: 1}

	out, err := read(killed, mutation{Type: e.kind, Status: "LIVED", Line: line, Column: column}, mutation{Status: "NOT COVERED"})
	require.NoError(t, err)
	require.Contains(t, out, e.why)
	require.Contains(t, out, "2 changes tried, 1 noticed (50.0 %), 1 explained, 0 live; 1 in code")

	for name, m := range map[string]mutation{
		"another kind":  {Type: "INVERT_LOGICAL", Status: "LIVED", Line: line, Column: column},
		"another place": {Type: e.kind, Status: "LIVED", Line: line, Column: 1},
		"another line":  {Type: e.kind, Status: "LIVED", Line: line + 1, Column: column},
		"past the end":  {Type: e.kind, Status: "LIVED", Line: 1 << 20, Column: column},
	} {
		out, err := read(killed, m)
		require.ErrorIs(t, err, errLive, name)
		require.Contains(t, out, " lives: ", name)
	}
	_, err = read()
	require.ErrorContains(t, err, "no change that was tried")
}
