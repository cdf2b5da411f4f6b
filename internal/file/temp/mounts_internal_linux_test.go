package temp

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatIsMountedIsSeen(t *testing.T) {
	at, err := mounts()
	require.NoError(t, err)
	require.Contains(t, at, "/proc")
	require.Equal(t, "/a b\\c", plain(`/a\040b\134c`))
	require.Equal(t, `/a\9`, plain(`/a\9`))
	require.Equal(t, "/tmp/x/y/usr", below("/tmp/x", []string{"/", "/tmp", "/tmp/xy", "/tmp/x/y/usr"}))
	require.Equal(t, "/tmp/x", below("/tmp/x", []string{"/tmp/x"}))
	require.Empty(t, below("/tmp/x", []string{"/", "/tmp", "/tmp/xy", "/tmp/x..y"}))
	dir := filepath.Join(t.TempDir(), "d")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "e"), 0o700))
	require.NoError(t, Remove(dir))
	require.NoDirExists(t, dir)
	require.NoError(t, Remove(dir), "it is gone already")
}
