package client_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
)

// TestFind finds a server by its file only while the process that wrote it runs,
// and while nobody else can read it.
func TestFind(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	o := client.FindOptions{Env: []string{"COPPICE_HOME=" + home}}
	_, err := client.Find(o)
	require.ErrorIs(t, err, client.ErrNoServer)
	path, err := client.RecordPath(o)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(home, ".coppice", "serve.json"), path)
	write := func(r client.Record, mode os.FileMode) {
		data, err := json.Marshal(r)
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, data, mode))
		require.NoError(t, os.Chmod(path, mode))
	}
	me := client.Record{URL: "http://127.0.0.1:1", Token: "t", PID: os.Getpid(), Began: client.ProcessBegan(os.Getpid())}
	write(me, 0o600)
	c, err := client.Find(o)
	require.NoError(t, err)
	c.Close()
	if runtime.GOOS != "linux" {
		return // what follows is told by /proc, or by modes
	}
	write(me, 0o644)
	_, err = client.Find(o)
	require.ErrorContains(t, err, "can be read by others")
	other := me
	other.Began++ // another process has the number by now
	write(other, 0o600)
	_, err = client.Find(o)
	require.ErrorIs(t, err, client.ErrNoServer)
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	_, err = client.Find(o)
	require.ErrorContains(t, err, "remove it if no server runs")
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "127.0.0.1:7788", "ftp://127.0.0.1", "http://"} {
		_, err := client.New(client.Options{URL: url})
		require.Error(t, err, url)
	}
}

// FuzzRecord reads any file.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"url":"http://127.0.0.1:1","token":"t","pid":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "serve.json")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		r, there, err := client.ReadRecord(path)
		require.Equal(t, err == nil, there)
		_ = r.Runs()
	})
}
