package ipctrace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestTrace is written by many, is for its owner alone, and does not grow without
// bound.
func TestTrace(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "trace")
	f, err := open(dir, 10_000)
	require.NoError(t, err)
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for range 100 {
				f.Write(Record{Backend: "runner", Kernel: "1", Direction: "sent", Type: "execute", Bytes: 10})
			}
		})
	}
	writers.Wait()
	require.NoError(t, f.Close())
	require.NoError(t, f.Close())
	for _, path := range []string{f.Path(), f.Path() + ".1"} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		require.LessOrEqual(t, info.Size(), int64(10_000))
		require.Positive(t, info.Size())
		file, err := os.Open(path)
		require.NoError(t, err)
		for lines := bufio.NewScanner(file); lines.Scan(); {
			var r Record
			require.NoError(t, json.Unmarshal(lines.Bytes(), &r), lines.Text())
			require.Equal(t, "execute", r.Type)
		}
		require.NoError(t, file.Close())
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2)
}

// TestNothing traces nothing and needs no file.
func TestNothing(t *testing.T) {
	t.Parallel()
	var none *File
	none.Write(Record{})
	require.Empty(t, none.Path())
	require.NoError(t, none.Close())
	f, err := Open(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, f.Close())
	f.Write(Record{}) // after the end: no panic
}

// TestTriesAgain: a full file that cannot be put aside costs the messages of that
// time, and no others.
func TestTriesAgain(t *testing.T) {
	t.Parallel()
	f, err := open(t.TempDir(), 200)
	require.NoError(t, err)
	write := func() { f.Write(Record{Backend: "runner", Kernel: "1", Direction: "sent", Type: "execute", Bytes: 10}) }
	write()
	require.NoError(t, os.MkdirAll(filepath.Join(f.Path()+".1", "in the way"), 0o700))
	write()
	write()
	require.NoError(t, os.RemoveAll(f.Path()+".1"))
	write()
	for _, path := range []string{f.Path(), f.Path() + ".1"} {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, 1, bytes.Count(data, []byte("\n")), path)
	}
	require.ErrorContains(t, f.Close(), "2 messages could not be written")
}
