package lines_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/file/lines"
)

// TestFullDisk: where a line does not fit, none of it is left, and the next one
// that fits is whole. A limit on the size of files stands for the full disk: the
// kernel writes what fits and says so.
func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f, err := lines.Open(lines.Options{Path: path})
	require.NoError(t, err)
	require.NoError(t, f.Append([]byte("first\n")))
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 12, Max: before.Max}))
	err = f.Append([]byte(strings.Repeat("x", 20) + "\n"))
	short := f.Append([]byte("fits\n"))
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before))
	require.ErrorIs(t, err, syscall.EFBIG)
	require.NoError(t, short)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "first\nfits\n", string(data))
	require.NoError(t, f.Close())
}
