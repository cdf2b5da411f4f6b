package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
)

// TestNamesOfFiles: what a program in a workspace calls its files is shown in one row each, and does
// nothing to the terminal.
func TestNamesOfFiles(t *testing.T) {
	home, _ := serve(t, map[string]string{
		"GET /api/workspaces/w/files/list?path=.": `{"files":[{"path":"a\nb","kind":"file","size":1,"mode":"0644","modified":"2026-01-02T03:04:05Z"},` +
			`{"path":"c\u001b[31m","kind":"directory","mode":"0755","modified":"2026-01-02T03:04:05Z"},` +
			`{"path":"l","kind":"symlink","mode":"0777","modified":"2026-01-02T03:04:05Z","target":"x\ny"},` +
			`{"path":"bad\ufffd","kind":"file","mode":"0644","modified":"2026-01-02T03:04:05Z","not_utf8":true}]}`,
	})
	out, _, err := run(t, home, "", "files", "w")
	require.NoError(t, err)
	require.Regexp(t, `^[^\n]* "a\\nb"\n[^\n]* "c\\x1b\[31m"/\n[^\n]* l -> "x\\ny"\n[^\n]* bad\x{FFFD}  \(its name is no UTF-8\)\n$`, out)
}

// TestNamesThatAreNoUTF8 are left out, and named: the rest is copied.
func TestNamesThatAreNoUTF8(t *testing.T) {
	const about = `"mode":"0644","modified":"2026-01-02T03:04:05Z"`
	home, asked := serve(t, map[string]string{
		"GET /api/workspaces/w/files/stat?path=out":          `{"path":"out","kind":"directory",` + about + `}`,
		"GET /api/workspaces/w/files/list?depth=-1&path=out": `{"files":[{"path":"out/bad\ufffd","kind":"file","not_utf8":true,` + about + `},{"path":"out/good","kind":"file","size":4,` + about + `}]}`,
		"GET /api/workspaces/w/files?path=out%2Fgood":        "good",
		"POST /api/workspaces/w/files/make":                  `{"path":"there","kind":"directory",` + about + `}`,
	})
	to := filepath.Join(t.TempDir(), "to")
	_, says, err := run(t, home, "", "get", "w", "out", to)
	leftOut(t, err)
	require.Contains(t, says, "out/bad\ufffd is left out: its name is no UTF-8\n")
	data, err := os.ReadFile(filepath.Join(to, "good"))
	require.NoError(t, err)
	require.Equal(t, "good", string(data))
	if runtime.GOOS != "linux" { // whose names are bytes
		return
	}
	from := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(from, "bad\xff"), nil, 0o600))
	before := len(asked())
	_, says, err = run(t, home, "", "put", "w", from, "there")
	leftOut(t, err)
	require.Contains(t, says, "is left out: its name is no UTF-8\n")
	for _, one := range asked()[before:] {
		require.False(t, strings.HasPrefix(one, "PUT "), one)
	}
}

// leftOut wants the exit code of what was copied but for one entry.
func leftOut(t *testing.T, err error) {
	t.Helper()
	exit, ok := errors.AsType[*console.Exit](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, console.Raised, exit.Code)
	require.ErrorContains(t, err, "1 entry left out")
}
