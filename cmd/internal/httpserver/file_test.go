package httpserver_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
)

func TestTheFileIsForItsUserAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "serve.json")
	require.NoError(t, httpserver.WriteRecord(path, client.Record{Token: "t"}))
	info, err := os.Stat(path)
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	_, _, err = client.ReadRecord(path)
	require.ErrorContains(t, err, "remove it if no server runs")
}

// TestTheRecordOfAServer names this process, and is removed by the server that wrote it
// alone.
func TestTheRecordOfAServer(t *testing.T) {
	t.Parallel()
	s, err := httpserver.Listen(t.Context(), httpserver.Options{Addr: "127.0.0.1:0", Token: "sesame"})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	mine := s.Record("/tools")
	require.Equal(t, client.Record{URL: s.URL(), Token: "sesame", PID: os.Getpid(), Start: mine.Start, Tools: "/tools"}, mine)
	require.True(t, mine.Runs())
	if runtime.GOOS == "linux" {
		require.Contains(t, mine.Start, "@", "it names the boot too")
	}

	path := filepath.Join(t.TempDir(), "home", "serve.json")
	require.NoError(t, httpserver.RemoveRecord(path, mine), "there is none")
	other := client.Record{URL: "b", PID: 2}
	require.NoError(t, httpserver.WriteRecord(path, mine))
	require.NoError(t, httpserver.WriteRecord(path, other))
	require.NoError(t, httpserver.RemoveRecord(path, mine))
	got, there, err := client.ReadRecord(path)
	require.NoError(t, err)
	require.True(t, there, "it is another one's by now")
	require.Equal(t, other, got)
	require.NoError(t, httpserver.RemoveRecord(path, other))
	_, there, err = client.ReadRecord(path)
	require.NoError(t, err)
	require.False(t, there)
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	require.Error(t, httpserver.RemoveRecord(path, mine), "what cannot be read is left alone")
	require.FileExists(t, path)
	require.Error(t, httpserver.WriteRecord(filepath.Join(path, "below"), mine))
}
