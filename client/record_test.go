package client_test

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/internal/process"
)

// me is the record of this process.
func me(t *testing.T) client.Record {
	t.Helper()
	id, err := process.Identify(os.Getpid())
	require.NoError(t, err)
	return client.Record{URL: "http://127.0.0.1:1", Token: token, PID: id.PID, Start: id.Start}
}

// leave writes the file of a server below a home.
func leave(t *testing.T, home string, r client.Record) string {
	t.Helper()
	path := filepath.Join(home, ".coppice", "serve.json")
	data, err := json.Marshal(r)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

// TestFind finds a server by its file only while the process that wrote it runs, which
// is told by more than its number.
func TestFind(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	o := client.FindOptions{Env: []string{"COPPICE_HOME=" + home}}
	_, err := client.Find(o)
	require.ErrorIs(t, err, client.ErrNoServer)
	require.EqualError(t, err, "no coppice serve runs; start it in another terminal")
	ended := exec.Command(os.Args[0], "-test.run=^$")
	require.NoError(t, ended.Run())
	running := me(t)
	for name, tc := range map[string]struct {
		change func(*client.Record)
		want   string // "": it runs
	}{
		"this process":       {func(*client.Record) {}, ""},
		"start not known":    {func(r *client.Record) { r.Start = "" }, ""},
		"another process":    {func(r *client.Record) { r.Start = "1" + r.Start }, "has ended"},
		"of another boot":    {func(r *client.Record) { r.Start = strings.Split(r.Start, "@")[0] + "@before" }, "has ended"},
		"ended":              {func(r *client.Record) { r.PID = ended.Process.Pid }, "has ended"},
		"ended, not known":   {func(r *client.Record) { r.PID, r.Start = ended.Process.Pid, "" }, "has ended"},
		"no process":         {func(r *client.Record) { r.PID = 0 }, "has ended"},
		"a group":            {func(r *client.Record) { r.PID = -r.PID }, "has ended"},
		"an address of none": {func(r *client.Record) { r.URL = "127.0.0.1" }, "it is like http://"},
	} {
		r := running
		tc.change(&r)
		path := leave(t, home, r)
		c, err := client.Find(o)
		if tc.want != "" {
			require.ErrorContains(t, err, tc.want, name)
			require.NotContains(t, err.Error(), token, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, r.URL, c.URL(), name)
		c.Close()
		got, there, err := client.ReadRecord(path)
		require.NoError(t, err)
		require.True(t, there)
		require.Equal(t, r, got, name)
	}
}

// TestWhereARecordIs says so by home, brand and environment.
func TestWhereARecordIs(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]client.FindOptions{
		filepath.Join("/h", ".coppice", "serve.json"): {Home: "/h"},
		filepath.Join("/h", ".other", "serve.json"):   {Home: "/h", Brand: "other", Env: []string{"COPPICE_HOME=/e"}},
		filepath.Join("/e", ".coppice", "serve.json"): {Env: []string{"COPPICE_HOME=/d", "COPPICE_HOME=/e"}},
	} {
		got, err := client.RecordPath(o)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := client.RecordPath(client.FindOptions{Brand: "a/b"})
	require.ErrorContains(t, err, "not a plain name")
	_, err = client.Find(client.FindOptions{Brand: "a/b"})
	require.ErrorContains(t, err, "not a plain name")
}

// TestARecordThatIsNotOurs is refused: one that others can read or write, that is no
// record, or that has no bound.
func TestARecordThatIsNotOurs(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	path := leave(t, home, me(t))
	o := client.FindOptions{Home: home}
	for name, tc := range map[string]struct {
		data string
		mode os.FileMode
		want string
	}{
		"readable":  {`{"pid":1}`, 0o640, "can be read by others"},
		"writable":  {`{"pid":1}`, 0o602, "can be read by others"},
		"no JSON":   {`{`, 0o600, "remove it if no server runs"},
		"no object": {`[]`, 0o600, "remove it if no server runs"},
		"nothing":   {``, 0o600, "remove it if no server runs"},
		"endless":   {`{"url":"` + strings.Repeat("x", 2<<20) + `"}`, 0o600, "remove it if no server runs"},
		"null":      {`null`, 0o600, "has ended"},
	} {
		if tc.mode != 0o600 && runtime.GOOS == "windows" {
			continue // modes say nothing there
		}
		require.NoError(t, os.WriteFile(path, []byte(tc.data), 0o600))
		require.NoError(t, os.Chmod(path, tc.mode))
		_, err := client.Find(o)
		require.ErrorContains(t, err, tc.want, name)
		require.NoError(t, os.Chmod(path, 0o600))
	}
}

// TestASocket is used in place of the address.
func TestASocket(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "coppice-sock-") // the name of a socket has to be short
	require.NoError(t, err)
	defer func() { require.NoError(t, os.RemoveAll(dir)) }()
	socket := filepath.Join(dir, "s")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	require.NoError(t, err)
	hosts := make(chan string, 1)
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hosts <- r.Host
		says(http.StatusOK, `{"status":"ok"}`)(w, r)
	})}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	home := t.TempDir()
	r := me(t)
	r.Socket = socket
	leave(t, home, r)
	c, err := client.Find(client.FindOptions{Home: home, Client: client.Options{Patience: -1}})
	require.NoError(t, err)
	h, err := c.Health(t.Context())
	require.NoError(t, err)
	require.Equal(t, "ok", h.Status)
	require.Equal(t, "127.0.0.1:1", <-hosts, "the address is asked for, over the socket")
	c.Close()
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-ended, http.ErrServerClosed)
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
