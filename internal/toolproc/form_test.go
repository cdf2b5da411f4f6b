package toolproc_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/toolproc"
	"github.com/coppice-run/coppice/messages"
)

// FuzzFileInput: whatever is given as a file is read, or refused as an input.
func FuzzFileInput(f *testing.F) {
	for _, s := range []string{`null`, `""`, `"data:a/b;base64,eA=="`, `{"filename":"a","data":"eA=="}`, `{"data":"data:;base64,"}`, `3`, `[]`, `{"filename":"\r\nX: y","data":""}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			return
		}
		name, kind, _, err := toolproc.ReadUpload("key", json.RawMessage(text))
		if err != nil {
			told, ok := errors.AsType[*messages.ToolError](err)
			require.True(t, ok)
			require.Equal(t, messages.ToolErrorInput, told.Kind)
			return
		}
		require.NotEmpty(t, name)
		require.NotEmpty(t, kind)
		require.NotContains(t, toolproc.UploadHeader("key", name, kind), "\n")
	})
}

func TestPathsOfATool(t *testing.T) {
	require.Equal(t, "/autocomplete/cities?q=S%C3%A3o+%26", toolproc.AutocompletePath("cities", "São &"))
	require.Equal(t, "/autocomplete/a/b?q=", toolproc.AutocompletePath("/autocomplete/a/b", ""))
	require.Equal(t, "/files/r-1/a%20b/%3F.txt", toolproc.FilePath("r-1", "a b/?.txt"))
}

// TestAFileOfARun is found on any day, in a folder of any name.
func TestAFileOfARun(t *testing.T) {
	root := filepath.Join(t.TempDir(), "a[b]*?")
	dir := filepath.Join(root, "tool", "2026-01-02", "run-1")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "sub"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sub", "f"), []byte("x"), 0o600))
	f, err := toolproc.OpenRunFile(root, "tool", "run-1", "sub/f")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	for _, bad := range [][3]string{{"tool", "run-1", "sub"}, {"tool", "run-1", "../run-1/sub/f"}, {"tool", "run-2", "sub/f"}, {"tool", "*", "sub/f"}, {"..", "run-1", "sub/f"}, {"tool", "run-1.running", "f"}} {
		_, err := toolproc.OpenRunFile(root, bad[0], bad[1], bad[2])
		require.ErrorIs(t, err, fs.ErrNotExist, "%v", bad)
	}
}
