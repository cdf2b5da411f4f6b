package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// maxSocket is how long the path of a Unix socket may be on every system.
const maxSocket = 100

// ErrSocket is matched by the error for a socket that cannot be.
var ErrSocket = errors.New("the Unix socket cannot be made")

// listenSocket listens on a Unix socket that only this user can reach: it stands
// in a folder of mode 0700 from the start, and has mode 0600 itself. It is removed
// when the listener is closed.
func listenSocket(ctx context.Context, path string) (net.Listener, error) {
	if len(path) > maxSocket {
		return nil, fmt.Errorf("%w: %s is longer than %d bytes", ErrSocket, path, maxSocket)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSocket, err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%w: others may enter %s", ErrSocket, dir)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSocket, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrSocket, err), l.Close())
	}
	return l, nil
}
