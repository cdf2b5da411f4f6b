package rights_test

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/coppice-run/coppice/internal/rights"
)

// most is what a message of the tests has at most.
var most = rights.Bounds{Body: 1 << 20, Files: 3}

// pair returns the two ends of a connection.
func pair(t *testing.T) (from, to *net.UnixConn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "end")
		conn, err := net.FileConn(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		t.Cleanup(func() { _ = conn.Close() })
		ends[i] = conn.(*net.UnixConn)
	}
	return ends[0], ends[1]
}

// pipe is one whose writing end is passed on.
type pipe struct{ read, write *os.File }

func newPipe(t *testing.T) pipe {
	t.Helper()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = read.Close(); _ = write.Close() })
	return pipe{read, write}
}

// over makes sure that nobody has the writing end any more.
func (p pipe) over(t *testing.T) {
	t.Helper()
	_ = p.write.Close()
	raw, err := p.read.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) { // it waits for nothing
		n, err := unix.Read(int(fd), make([]byte, 1))
		require.NoError(t, err, "a descriptor is left")
		require.Zero(t, n)
	}))
}

// head is the head of a message, whatever follows.
func head(size, count uint32) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, size), count)
}

// write writes bytes, with a descriptor so often.
func write(t *testing.T, conn *net.UnixConn, data []byte, f *os.File, times int) {
	t.Helper()
	raw, err := f.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		var extra []byte
		if times > 0 {
			fds := make([]int, times)
			for i := range fds {
				fds[i] = int(fd)
			}
			extra = unix.UnixRights(fds...)
		}
		_, _, err := conn.WriteMsgUnix(data, extra, nil)
		require.NoError(t, err)
	}))
}

// TestMessages come whole, one by one, with their descriptors, which no child inherits.
func TestMessages(t *testing.T) {
	from, to := pair(t)
	sizes := []int{0, 1, 100, 1 << 16, 1 << 20}
	var pipes []pipe
	sent := make(chan error, 1)
	for range most.Files {
		pipes = append(pipes, newPipe(t))
	}
	go func() { // ends with what it has to send, or with the connection; sent is its join
		for i, size := range sizes {
			var files []*os.File
			for _, p := range pipes[:i%(most.Files+1)] {
				files = append(files, p.write)
			}
			n, err := rights.Send(from, []byte(strings.Repeat("x", size)), files)
			if err != nil || n != size+8 {
				sent <- err
				return
			}
		}
		sent <- from.CloseWrite()
	}()
	for i, size := range sizes {
		body, files, err := rights.Receive(to, most)
		require.NoError(t, err)
		require.Equal(t, strings.Repeat("x", size), string(body))
		require.Len(t, files, i%(most.Files+1))
		for k, f := range files {
			_, err := f.WriteString("it")
			require.NoError(t, err)
			got := make([]byte, 2)
			_, err = io.ReadFull(pipes[k].read, got)
			require.NoError(t, err)
			flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0)
			require.NoError(t, err)
			require.NotZero(t, flags&unix.FD_CLOEXEC)
			require.NoError(t, f.Close())
		}
	}
	require.NoError(t, <-sent)
	_, _, err := rights.Receive(to, most)
	require.ErrorIs(t, err, io.EOF)
	for _, p := range pipes {
		_, err := p.write.WriteString("it is the sender's still")
		require.NoError(t, err)
	}
}

// TestWhatIsNoMessage is told by its error, and leaves no descriptor.
func TestWhatIsNoMessage(t *testing.T) {
	for name, c := range map[string]struct {
		data  []byte
		files int
		want  error
		body  string
	}{
		"a head that is cut":       {head(1, 1)[:5], 1, io.ErrUnexpectedEOF, ""},
		"a body that is not there": {head(3, 1), 1, io.ErrUnexpectedEOF, ""},
		"a body that is cut":       {append(head(3, 1), "ab"...), 1, io.ErrUnexpectedEOF, ""},
		"a body that is too long":  {head(1<<20+1, 1), 1, rights.ErrNoMessage, ""},
		"the longest":              {head(1<<32-1, 1), 1, rights.ErrNoMessage, ""},
		"more than may come":       {append(head(1, 4), "a"...), 3, rights.ErrNoMessage, ""},
		"less than it says":        {append(head(1, 2), "a"...), 1, rights.ErrMissing, "a"},
		"none, and it says one":    {append(head(1, 1), "a"...), 0, rights.ErrMissing, "a"},
		"more than it says":        {append(head(1, 1), "a"...), 2, rights.ErrMissing, "a"},
		"more than there is room":  {append(head(1, 3), "a"...), 9, rights.ErrMissing, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := pair(t)
			p := newPipe(t)
			write(t, from, c.data, p.write, c.files)
			require.NoError(t, from.Close())
			body, files, err := rights.Receive(to, most)
			require.ErrorIs(t, err, c.want)
			require.Equal(t, c.body, string(body))
			require.Empty(t, files)
			p.over(t)
		})
	}
}

// TestAMessageInPieces is one all the same.
func TestAMessageInPieces(t *testing.T) {
	from, to := pair(t)
	p := newPipe(t)
	text := append(head(2, 1), "ab"...)
	write(t, from, text[:1], p.write, 1)
	got := make(chan struct{})
	go func() { // ends with the message, or with the connection; got is its join
		defer close(got)
		body, files, err := rights.Receive(to, most)
		if err == nil && string(body) == "ab" && len(files) == 1 {
			_ = files[0].Close()
			_, _ = to.Write([]byte("ok"))
		}
		_ = to.Close()
	}()
	for i := 1; i < len(text); i++ {
		write(t, from, text[i:i+1], p.write, 0)
	}
	said, err := io.ReadAll(from)
	require.NoError(t, err)
	require.Equal(t, "ok", string(said))
	<-got
	p.over(t)
}

// TestNoNumbersLeft: where no more descriptors may be open, the message comes without them.
func TestNoNumbersLeft(t *testing.T) {
	from, to := pair(t)
	p := newPipe(t)
	for range 2 {
		_, err := rights.Send(from, []byte("it"), []*os.File{p.write, p.write})
		require.NoError(t, err)
	}
	var was unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: was.Max}))
	body, files, err := rights.Receive(to, most)
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was))
	require.ErrorIs(t, err, rights.ErrMissing)
	require.Equal(t, "it", string(body))
	require.Empty(t, files)
	body, files, err = rights.Receive(to, most) // the connection is as good as before
	require.NoError(t, err)
	require.Equal(t, "it", string(body))
	require.Len(t, files, 2)
	for _, f := range files {
		require.NoError(t, f.Close())
	}
	p.over(t)
}

// TestWhatCannotBeSent: of a message with a file that is closed nothing goes out; with a
// connection that is over, the error says so.
func TestWhatCannotBeSent(t *testing.T) {
	from, to := pair(t)
	p, gone := newPipe(t), newPipe(t)
	require.NoError(t, gone.write.Close())
	for _, files := range [][]*os.File{{gone.write}, {p.write, gone.write}, {nil}} {
		n, err := rights.Send(from, []byte("it"), files)
		require.ErrorIs(t, err, rights.ErrFile)
		require.Zero(t, n)
	}
	n, err := rights.Send(from, []byte("it"), []*os.File{p.write})
	require.NoError(t, err)
	require.Equal(t, 10, n)
	body, files, err := rights.Receive(to, most)
	require.NoError(t, err)
	require.Equal(t, "it", string(body))
	require.NoError(t, files[0].Close())
	require.NoError(t, to.Close())
	n, err = rights.Send(from, []byte("it"), []*os.File{p.write})
	require.ErrorIs(t, err, syscall.EPIPE)
	require.NotErrorIs(t, err, rights.ErrFile)
	require.Zero(t, n)
	p.over(t)
}

// FuzzReceive takes anything, with any number of descriptors, and leaves none of these.
func FuzzReceive(f *testing.F) {
	f.Add(append(head(2, 1), "{}"...), uint8(1))
	f.Add(append(head(2, 3), "{}"...), uint8(0))
	f.Add(head(0, 9), uint8(9))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), uint8(2))
	f.Add(head(1<<32-1, 1<<32-1), uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, times uint8) {
		if len(data) == 0 || len(data) > 1<<12 {
			return // descriptors come with a byte; what is longer waits for a reader
		}
		from, to := pair(t)
		p := newPipe(t)
		write(t, from, data, p.write, int(times%32))
		require.NoError(t, from.Close())
		body, files, err := rights.Receive(to, most)
		if err == nil {
			require.Equal(t, data[8:8+len(body)], body)
			require.Len(t, files, int(times%32))
			for _, f := range files {
				require.NoError(t, f.Close())
			}
		} else {
			require.Empty(t, files)
		}
		require.NoError(t, to.Close())
		p.over(t)
	})
}
