package handover

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coppice-run/coppice/internal/process"
)

// Supported says whether this system can hand servers over.
const Supported = true

// Bounds of a message.
const (
	headSize  = 8 // its length, and how many descriptors come with it
	mostBody  = 1 << 20
	mostFiles = 4
)

// wire is one connection between a server and a successor.
type wire struct{ conn *net.UnixConn }

// send writes a message with its files, which stay the caller's.
func (w wire) send(m message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("tell the other server: %w", err)
	}
	text := binary.LittleEndian.AppendUint32(make([]byte, 0, headSize+len(body)), uint32(len(body))) //nolint:gosec // a few hundred bytes
	text = binary.LittleEndian.AppendUint32(text, uint32(len(m.files)))                              //nolint:gosec // at most mostFiles
	text = append(text, body...)
	return withDescriptors(m.files, nil, func(fds []int) error {
		var rights []byte
		if len(fds) > 0 {
			rights = unix.UnixRights(fds...)
		}
		n, _, err := w.conn.WriteMsgUnix(text, rights, nil)
		if err == nil && n < len(text) {
			_, err = w.conn.Write(text[n:])
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrEnded, err)
		}
		return nil
	})
}

// withDescriptors calls use with the numbers of files, none of which is closed meanwhile.
func withDescriptors(files []*os.File, fds []int, use func(fds []int) error) error {
	if len(files) == 0 {
		return use(fds)
	}
	raw, err := files[0].SyscallConn() // Fd would make it block, for the other server too
	if err != nil {
		return fmt.Errorf("hand over a descriptor: %w", err)
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = withDescriptors(files[1:], append(fds, int(fd)), use) }); err != nil {
		return fmt.Errorf("hand over a descriptor: %w", err)
	}
	return inner
}

// receive reads a message. The error is that of ctx, or matches ErrEnded when nobody is there
// any more, or says what is wrong with it.
func (w wire) receive(ctx context.Context) (m message, err error) {
	stop := context.AfterFunc(ctx, func() { _ = w.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer func() {
		if !stop() {
			err = context.Cause(ctx) // the connection is of no use any more
		}
		if err != nil {
			m.close()
			m.files = nil
		}
	}()
	head, room := make([]byte, headSize), make([]byte, unix.CmsgSpace(4*mostFiles))
	n, extra, flags, _, err := w.conn.ReadMsgUnix(head, room)
	if err == nil {
		m.files, err = rights(room[:extra])
	}
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err == nil {
		_, err = io.ReadFull(w.conn, head[n:])
	}
	if err != nil {
		return m, fmt.Errorf("%w: %w", ErrEnded, err)
	}
	size, count := binary.LittleEndian.Uint32(head), binary.LittleEndian.Uint32(head[4:])
	if size > mostBody || count > mostFiles {
		return m, errors.New("what came is no message of a server")
	}
	body := make([]byte, size)
	if _, err = io.ReadFull(w.conn, body); err != nil {
		return m, fmt.Errorf("%w: %w", ErrEnded, err)
	}
	files := m.files
	if err = json.Unmarshal(body, &m); err != nil {
		return m, fmt.Errorf("read what the other server says: %w", err)
	}
	if m.files = files; int(count) != len(files) || flags&unix.MSG_CTRUNC != 0 {
		return m, errors.New("this process has no numbers for descriptors left")
	}
	return m, nil
}

// rights returns the descriptors of a control message, which no child inherits.
func rights(extra []byte) ([]*os.File, error) {
	messages, err := syscall.ParseSocketControlMessage(extra)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for i := range messages {
		fds, err := syscall.ParseUnixRights(&messages[i])
		if err != nil {
			continue
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "handed over"))
		}
	}
	return files, nil
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
