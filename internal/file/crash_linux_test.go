package file_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/file"
)

// crashVar makes this test a program that writes the file it names until it is killed.
const crashVar = "FILE_TEST_WRITE"

// TestWriteKilled: of a program that is killed at any instant, the file is whole, and at
// most one temporary file is left of each.
func TestWriteKilled(t *testing.T) {
	if path := os.Getenv(crashVar); path != "" {
		for i := 0; ; i++ {
			data := strings.Repeat(string(rune('a'+i%26)), 1<<20)
			if err := file.Write(path, []byte(data), file.WriteOptions{Durable: i%2 == 0}); err != nil {
				os.Exit(3)
			}
		}
	}
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	const kills = 10
	for i := range kills {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWriteKilled$")
		cmd.Env = append(os.Environ(), crashVar+"="+path)
		require.NoError(t, cmd.Start())
		first, err := os.Stat(path)
		if !errors.Is(err, fs.ErrNotExist) {
			require.NoError(t, err)
		}
		// Once it has written, it is killed at one or another point of the next one.
		require.Eventually(t, func() bool {
			now, err := os.Stat(path)
			return err == nil && (first == nil || !os.SameFile(first, now))
		}, 3*time.Minute, time.Duration(i+1)*100*time.Microsecond)
		require.NoError(t, cmd.Process.Kill())
		require.Error(t, cmd.Wait())
		require.Equal(t, syscall.SIGKILL, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
		data := content(t, path)
		require.Len(t, data, 1<<20)
		require.Empty(t, strings.Trim(data, data[:1]), "it is of one piece")
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode())
	}
	left, err := filepath.Glob(filepath.Join(dir, file.Unfinished))
	require.NoError(t, err)
	require.LessOrEqual(t, len(left), kills)
	require.Len(t, names(t, dir), len(left)+1, "there is nothing else")
	for _, l := range left {
		info, err := os.Stat(l)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode(), "no one else can read half of it")
	}
}

// TestWriteFullDisk: where the new content does not fit, the old one stays, and nothing
// is left. A limit on the size of files stands for the full disk.
func TestWriteFullDisk(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	require.NoError(t, file.Write(path, []byte("old"), file.WriteOptions{}))
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 12, Max: before.Max}))
	err := file.Write(path, []byte(strings.Repeat("x", 20)), file.WriteOptions{})
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before))
	require.ErrorIs(t, err, syscall.EFBIG)
	require.Equal(t, "old", content(t, path))
	require.Equal(t, []string{"f"}, names(t, dir))
}
