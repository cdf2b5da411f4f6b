package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"runtime"

	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/internal/home"
	"github.com/coppice-run/coppice/internal/process"
)

// ErrNoServer is matched when no server runs.
var ErrNoServer = errors.New("no coppice serve runs")

// Record is what a server leaves in a file, for its user alone, so that others
// find it.
type Record struct {
	URL   string `json:"url"`
	Token string `json:"token"`
	// Socket is the path of a Unix socket that serves the same, "" if there is
	// none.
	Socket string `json:"socket,omitempty"`
	PID    int    `json:"pid"`
	// Start is when the process started, in a form of the system's own, which names
	// the boot too; with PID it names a process for good. "": not known.
	Start string `json:"start,omitempty"`
	// Tools is the folder of tools that it serves.
	Tools string `json:"tools,omitempty"`
}

// maxRecord bounds the file of a server, in bytes.
const maxRecord = 1 << 20

// ReadRecord reads the file of a server; false: there is none. A file that others
// can read or change is refused.
func ReadRecord(path string) (Record, bool, error) {
	f, err := file.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, false, nil
	}
	if err != nil {
		return Record{}, false, fmt.Errorf("read the record of a server: %w; remove it if no server runs", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	data, err := file.ReadAll(context.Background(), f, maxRecord)
	var r Record
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		return Record{}, false, fmt.Errorf("read %s: %w; remove it if no server runs", path, err)
	}
	if info, err := f.Stat(); err != nil || info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		return Record{}, false, fmt.Errorf("%s can be read by others: end the server, remove the file, and start it again", path)
	}
	return r, true, nil
}

// Runs reports whether the process that wrote the record runs. Where the system does
// not tell when a process started, one with its number is taken for it: the server has
// to answer.
func (r Record) Runs() bool {
	if r.PID <= 0 {
		return false
	}
	if r.Start != "" {
		return !process.Ended(process.Identity{PID: r.PID, Start: r.Start})
	}
	_, err := process.Identify(r.PID)
	return !errors.Is(err, process.ErrNoProcess)
}

// FindOptions say where to look. The zero value of a field is its default.
type FindOptions struct {
	// Home holds the folder .<Brand>. "": COPPICE_HOME from Env, else the user's
	// home directory.
	Home string
	// Brand is as in the options of a host. "": coppice.
	Brand string
	// Env is the environment. nil: that of this process.
	Env []string
	// Client makes the client; URL, Token and Socket are filled in.
	Client Options
}

// RecordPath is the file that a server leaves: <Home>/.<Brand>/serve.json.
func RecordPath(o FindOptions) (string, error) {
	place, err := home.Home{Brand: o.Brand, Path: o.Home, Env: o.Env}.Resolve()
	if err != nil {
		return "", err
	}
	return place.Join("serve.json"), nil
}

// Find returns the client of the server that runs for this user, and of the one that takes its
// place: when the server cannot be reached, or does not take the token any more, the client
// looks where it is now. The error matches ErrNoServer when there is none. Find asks nothing of
// the server.
func Find(o FindOptions) (*Client, error) {
	path, err := RecordPath(o)
	if err != nil {
		return nil, err
	}
	r, there, err := ReadRecord(path)
	switch {
	case err != nil:
		return nil, err
	case !there:
		return nil, fmt.Errorf("%w; start it in another terminal", ErrNoServer)
	case !r.Runs():
		return nil, fmt.Errorf("%w: process %d of %s has ended; start it again", ErrNoServer, r.PID, path)
	}
	o.Client.URL, o.Client.Token, o.Client.Socket = r.URL, r.Token, r.Socket
	c, err := New(o.Client)
	if err != nil {
		return nil, err
	}
	c.record = path
	return c, nil
}
