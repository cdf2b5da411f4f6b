package temp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"syscall"

	"github.com/coppice-run/coppice/internal/process"
)

// ofProcess is the name of a socket that holds the number of the process which listens there:
// serve-123.sock.
var ofProcess = regexp.MustCompile(`^[a-z]+-([0-9]+)\.sock$`)

// AbandonedSockets returns the sockets in a folder at which nobody listens any more, of those whose
// names hold the number of a process. A folder that is not there has none.
//
// No process with that number is a first sign only: in a folder that several containers share, each
// counts its own. That nobody takes a connection is proof.
func AbandonedSockets(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var found []string
	for _, e := range entries {
		m := ofProcess.FindStringSubmatch(e.Name())
		if m == nil || e.Type() != fs.ModeSocket {
			continue
		}
		if pid, err := strconv.Atoi(m[1]); err == nil && process.Ended(process.Identity{PID: pid}) && refuses(dir, e.Name()) {
			found = append(found, filepath.Join(dir, e.Name()))
		}
	}
	return found
}

// CleanSockets removes the abandoned sockets of a folder and returns which they were. The error
// says which could not be removed.
func CleanSockets(dir string) (gone []string, err error) {
	for _, path := range AbandonedSockets(dir) {
		if failed := os.Remove(path); failed != nil && !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("remove what was left behind: %w", failed))
			continue
		}
		gone = append(gone, path)
	}
	return gone, err
}

// refuses reports whether nobody listens at a socket.
func refuses(dir, name string) bool {
	at := filepath.Join(dir, name)
	if runtime.GOOS == "linux" { // the path may be longer than that of a socket may be
		if folder, err := os.Open(dir); err == nil {
			defer folder.Close()
			at = fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), name)
		}
	}
	c, err := (&net.Dialer{}).DialContext(context.Background(), "unix", at) // which answers at once
	if err == nil {
		_ = c.Close() // it was only knocked
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
