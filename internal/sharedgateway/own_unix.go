//go:build linux || darwin

package sharedgateway

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// own takes the hold of a gateway that is about to start: it goes to the gateway
// with the open file, so that no instant is without it. To close the file gives
// up the caller's copy alone. [errOwned]: another process has it.
func own(dir, place string) (*os.File, error) {
	f, err := os.OpenFile(ownPath(dir, place), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start a kernel gateway: %w", err)
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return f, nil
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			err = fmt.Errorf("%w (it holds %s)", errOwned, f.Name())
		default:
			err = fmt.Errorf("start a kernel gateway: lock %s: %w", f.Name(), err)
		}
		_ = f.Close()
		return nil, err
	}
}
