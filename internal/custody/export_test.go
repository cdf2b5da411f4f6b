//go:build linux

package custody

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/coppice-run/coppice/internal/process"
)

// Belongs is belongs of the file at path, for tests.
func Belongs(path string, uid int) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	return belongs(path, info, uid)
}

// dial connects to the custodian of a folder, whose path may be long.
func dial(path string) (*net.UnixConn, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	conn, err := net.Dial("unix", fmt.Sprintf("/proc/self/fd/%d/%s", f.Fd(), socketFile))
	if err != nil {
		return nil, err
	}
	return conn.(*net.UnixConn), nil
}

// Hello asks the custodian of a folder for what it keeps, as a host that says all of
// this would.
func Hello(ctx context.Context, folder, token string, as process.Identity, lock *os.File) error {
	conn, err := dial(folder)
	if err != nil {
		return err
	}
	l := newLink(conn)
	defer l.close()
	var files []*os.File
	if lock != nil {
		files = append(files, lock)
	}
	_, err = l.call(ctx, request{Token: token, PID: as.PID, Start: as.Start}, files)
	return err
}

// Greet says anything to the custodian of a folder, and waits until it has heard that.
func Greet(folder string, what []byte) error {
	conn, err := dial(folder)
	if err != nil {
		return err
	}
	_, err = conn.Write(what)
	if err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	_ = conn.Close()
	return err
}
