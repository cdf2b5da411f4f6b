package httpserver_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
)

// TestASocket serves the same as the address, to this user alone, and is gone with the
// server.
func TestASocket(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		return // the command takes none there
	}
	base, err := os.MkdirTemp("", "coppice-sock-") // the name of a socket has to be short
	require.NoError(t, err)
	defer func() { require.NoError(t, os.RemoveAll(base)) }()
	socket := filepath.Join(base, "run", "s")
	s, err := httpserver.Listen(t.Context(), httpserver.Options{Addr: "127.0.0.1:0", Token: "sesame", Socket: socket})
	require.NoError(t, err)
	require.Equal(t, socket, s.Socket())
	require.Equal(t, socket, s.Record("").Socket)
	for name, mode := range map[string]os.FileMode{filepath.Dir(socket): 0o700, socket: 0o600} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), name)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/none", http.NoBody)
	require.NoError(t, err)
	resp, err := (&http.Client{Transport: transport}).Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode, "the token is wanted here too")
	transport.CloseIdleConnections()
	end()
	require.NoError(t, <-ended)
	require.NoFileExists(t, socket)

	open := filepath.Join(base, "open")
	require.NoError(t, os.Mkdir(open, 0o700))
	require.NoError(t, os.Chmod(open, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(base, "file"), nil, 0o600))
	for name, path := range map[string]string{
		"a long name":            filepath.Join(base, strings.Repeat("x", 100)),
		"a folder for others":    filepath.Join(open, "s"),
		"a file for a folder":    filepath.Join(base, "file", "s"),
		"something else's place": filepath.Join(base, "file"),
	} {
		_, err := httpserver.Listen(t.Context(), httpserver.Options{Addr: "127.0.0.1:0", Socket: path})
		require.ErrorIs(t, err, httpserver.ErrSocket, name)
	}
}
