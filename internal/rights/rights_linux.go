package rights

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// headSize is how long the head of a message is, in bytes.
const headSize = 8

// Errors that callers decide by.
var (
	// ErrFile: a file that was to be sent is closed. Nothing was sent.
	ErrFile = errors.New("a descriptor cannot be passed on")
	// ErrNoMessage: what came says that it is more than a message may be.
	ErrNoMessage = errors.New("what came is no message")
	// ErrMissing: a message has come, and not the descriptors that it says come with it: no more
	// of them may be open here.
	ErrMissing = errors.New("this process has no numbers for descriptors left")
)

// Bounds are what a message has at most.
type Bounds struct {
	// Body is how long its body is, in bytes. 0: it has none.
	Body int
	// Files is how many descriptors come with it. 0: none.
	Files int
}

// Send writes a message with copies of files. n is how many bytes of it were written: with
// an error and more than none the connection is of no use any more. The error matches
// [ErrFile], or is that of the connection.
func Send(conn *net.UnixConn, body []byte, files []*os.File) (n int, err error) {
	text := binary.LittleEndian.AppendUint32(make([]byte, 0, headSize+len(body)), uint32(len(body))) //nolint:gosec // what is longer is in no Bounds
	text = binary.LittleEndian.AppendUint32(text, uint32(len(files)))                                //nolint:gosec // as above
	text = append(text, body...)
	var sent error
	err = withNumbers(files, nil, func(fds []int) {
		var rights []byte
		if len(fds) > 0 {
			rights = unix.UnixRights(fds...)
		}
		n, _, sent = conn.WriteMsgUnix(text, rights, nil)
		if sent == nil && n < len(text) {
			var more int
			more, sent = conn.Write(text[n:])
			n += more
		}
	})
	return n, errors.Join(err, sent)
}

// withNumbers calls use with the numbers of files, none of which is closed meanwhile.
func withNumbers(files []*os.File, fds []int, use func(fds []int)) error {
	if len(files) == 0 {
		use(fds)
		return nil
	}
	raw, err := files[0].SyscallConn() // Fd would make it block, for the other process too
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFile, err)
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = withNumbers(files[1:], append(fds, int(fd)), use) }); err != nil {
		return fmt.Errorf("%w: %w", ErrFile, err)
	}
	return inner
}

// Receive reads a message and its descriptors, which are the caller's to close. The error is
// [ErrMissing], with the body of the message; or [ErrNoMessage], or that of the connection,
// io.EOF where it has ended: then it is of no use any more.
func Receive(conn *net.UnixConn, most Bounds) (body []byte, files []*os.File, err error) {
	defer func() {
		if err != nil {
			for _, f := range files {
				_ = f.Close()
			}
			files = nil
		}
	}()
	head, room := make([]byte, headSize), make([]byte, unix.CmsgSpace(4*most.Files))
	n, extra, flags, _, err := conn.ReadMsgUnix(head, room)
	if err != nil {
		return nil, nil, err
	}
	fds, err := numbers(room[:extra])
	for _, fd := range fds {
		files = append(files, os.NewFile(uintptr(fd), "received"))
	}
	if err != nil {
		return nil, files, err
	}
	if _, err := io.ReadFull(conn, head[n:]); err != nil {
		return nil, files, cut(err)
	}
	size, count := binary.LittleEndian.Uint32(head), binary.LittleEndian.Uint32(head[4:])
	if uint64(size) > uint64(most.Body) || uint64(count) > uint64(most.Files) { //nolint:gosec // neither bound is negative
		return nil, files, ErrNoMessage
	}
	body = make([]byte, size)
	if _, err := io.ReadFull(conn, body); err != nil {
		return nil, files, cut(err)
	}
	if int(count) != len(files) || flags&unix.MSG_CTRUNC != 0 {
		return body, files, ErrMissing
	}
	return body, files, nil
}

// cut is the error of a message that ends in its middle.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// numbers returns the descriptors of a control message.
func numbers(extra []byte) (fds []int, err error) {
	messages, err := syscall.ParseSocketControlMessage(extra)
	if err != nil {
		return nil, fmt.Errorf("read what descriptors have come: %w", err)
	}
	for i := range messages {
		m := &messages[i]
		if m.Header.Level != unix.SOL_SOCKET || m.Header.Type != unix.SCM_RIGHTS {
			continue
		}
		if len(m.Data)%4 != 0 { // package syscall would read beyond its end
			return nil, errors.New("read what descriptors have come: half of one")
		}
		some, err := syscall.ParseUnixRights(m)
		if err != nil {
			return nil, fmt.Errorf("read what descriptors have come: %w", err)
		}
		fds = append(fds, some...)
	}
	return fds, nil
}
