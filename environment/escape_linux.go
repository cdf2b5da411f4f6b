package environment

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// longestSocket is how long the path of a socket may be, in bytes.
const longestSocket = 107

// aimsHere makes what only this system has: sockets with a path and with a name, and
// two kinds of shared memory. undo, which is never nil, removes it.
func aimsHere(ctx context.Context, outside string, aim map[string]any) (undo func() error, err error) {
	var made []func() error
	undo = func() error {
		var err error
		for _, f := range slices.Backward(made) {
			err = errors.Join(err, f())
		}
		return err
	}
	name := "coppice-escape-" + rand.Text()
	path := filepath.Join(outside, "s")
	if len(path) > longestSocket {
		dir, err := os.MkdirTemp("/tmp", "coppice-escape-")
		if err != nil {
			return undo, fmt.Errorf("open a socket: %w", err)
		}
		made = append(made, func() error { return os.RemoveAll(dir) })
		path = filepath.Join(dir, "s")
	}
	aim["abstract"], aim["socket"], aim["shm"] = name, path, filepath.Join("/dev/shm", name)
	var lc net.ListenConfig
	for _, at := range []string{"@" + name, path} {
		l, err := lc.Listen(ctx, "unix", at)
		if err != nil {
			return undo, fmt.Errorf("open a socket: %w", err)
		}
		made = append(made, l.Close)
	}
	if err := os.WriteFile(aim["shm"].(string), []byte("secret"), 0o600); err != nil {
		return undo, fmt.Errorf("make shared memory: %w", err)
	}
	made = append(made, func() error { return os.Remove(aim["shm"].(string)) })
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, os.Getpagesize(), 0o600)
	if err != nil {
		return undo, fmt.Errorf("make System V memory: %w", err)
	}
	made = append(made, func() error {
		_, err := unix.SysvShmCtl(id, unix.IPC_RMID, nil)
		return err
	})
	aim["sysv"] = id
	return undo, nil
}
