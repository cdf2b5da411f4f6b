package handover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/coppice-run/coppice/internal/deadline"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/rights"
)

// Supported says whether this system can hand servers over.
const Supported = true

// bounds are those of a message.
var bounds = rights.Bounds{Body: 1 << 20, Files: 4}

// wire is one connection between a server and a successor.
type wire struct{ conn *net.UnixConn }

// send writes a message with its files, which stay the caller's.
func (w wire) send(m message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("tell the other server: %w", err)
	}
	_, err = rights.Send(w.conn, body, m.files)
	switch {
	case errors.Is(err, rights.ErrFile):
		return fmt.Errorf("hand over a descriptor: %w", err)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrEnded, err)
	}
	return nil
}

// receive reads a message. The error is that of ctx, or matches ErrEnded when nobody is there
// any more, or says what is wrong with it.
func (w wire) receive(ctx context.Context) (m message, err error) {
	stop := deadline.Past(ctx, w.conn.SetReadDeadline)
	defer func() {
		if !stop() {
			err = context.Cause(ctx) // the connection is of no use any more
		}
		if err != nil {
			m.close()
			m.files = nil
		}
	}()
	body, files, err := rights.Receive(w.conn, bounds)
	m.files = files
	switch {
	case errors.Is(err, rights.ErrNoMessage), errors.Is(err, rights.ErrMissing):
		return m, fmt.Errorf("hear the other server: %w", err)
	case err != nil:
		return m, fmt.Errorf("%w: %w", ErrEnded, err)
	}
	if err = json.Unmarshal(body, &m); err != nil {
		return m, fmt.Errorf("read what the other server says: %w", err)
	}
	return m, nil
}

// peer returns who is at the other end, as the system tells it. One of another user is
// refused.
func (w wire) peer() (process.Identity, error) {
	raw, err := w.conn.SyscallConn()
	if err != nil {
		return process.Identity{}, fmt.Errorf("look who asks: %w", err)
	}
	var who *unix.Ucred
	if e := raw.Control(func(fd uintptr) { who, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); e != nil {
		err = e
	}
	if err != nil {
		return process.Identity{}, fmt.Errorf("look who asks: %w", err)
	}
	return admit(who, os.Geteuid())
}

// admit returns the identity of a process, unless it is another user's.
func admit(who *unix.Ucred, user int) (process.Identity, error) {
	if int(who.Uid) != user {
		return process.Identity{}, refusedf("the other process belongs to user %d", who.Uid)
	}
	id, err := process.Identify(int(who.Pid))
	if err != nil {
		return id, fmt.Errorf("%w: %w", ErrEnded, err)
	}
	return id, nil
}
