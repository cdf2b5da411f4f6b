package kernelserver

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/test/testpython"
)

// served does with what is handed over what a server does that listens: it answers each
// connection, calls the host over the socket for that, and has a child that can be ended.
const served = `import asyncio, os, socket, sys
sys.path.insert(0, sys.argv[1])
import walled
child = os.fork()
if child == 0:
    while True: os.read(os.pipe()[0], 1)
h = walled.Handed(walled.told["calls"])
os.write(1, b"%d\n" % child)
def served():
    try:
        while True:
            connection, _ = h.accept()
            connection.setblocking(True)
            connection.sendall(b"hello " + connection.recv(100))
            connection.close()
    except BlockingIOError:
        pass
def called():
    h.called(*h.calls.accept())
def call():
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(walled.told["calls"])
        s.sendall(b"from code")
        os.write(1, s.recv(100) + b"\n")
async def run():
    loop = asyncio.get_running_loop()
    loop.add_reader(h.fileno(), served)
    loop.add_reader(h.calls.fileno(), called)
    await loop.run_in_executor(None, call)
    await loop.run_in_executor(None, os.waitpid, child, 0)
    os.write(1, b"ended\n")
    await asyncio.Event().wait()
asyncio.run(run())`

// TestHanded: what the host dials is served, what code says to the socket of its calls reaches
// the host, a kernel is ended by its number, and the end of the host is that of the gateway.
func TestHanded(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "h-*") //nolint:usetesting // short, for the path of a socket
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.WriteFile(filepath.Join(dir, "walled.py"), walledScript, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "walls.json"), fmt.Appendf(nil, `{"calls": %q}`, filepath.Join(dir, "h")), 0o600))
	h, stdin, err := newHanded()
	require.NoError(t, err)
	out, in, err := os.Pipe()
	require.NoError(t, err)
	said := process.NewRing(process.RingOptions{})
	p, err := process.Start(process.Options{Path: testpython.Path(t), Args: []string{"-c", served, dir}, Env: os.Environ(), Stdin: stdin, Output: in, Stderr: said})
	require.NoError(t, err)
	require.NoError(t, stdin.Close())
	require.NoError(t, in.Close())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, p.Stop(ctx, process.StopOptions{Grace: -1}))
		require.NoError(t, out.Close())
	})
	line := func() string {
		var text []byte
		for one := make([]byte, 1); ; {
			if _, err := io.ReadFull(out, one); err != nil || one[0] == '\n' {
				require.NoError(t, err, "%v", said.Tail(10))
				return string(text)
			}
			text = append(text, one[0])
		}
	}
	child := 0
	_, err = fmt.Sscan(line(), &child)
	require.NoError(t, err)

	s := &Server{handed: h}
	l := s.Listener()
	conn, err := l.Accept()
	require.NoError(t, err)
	asks := make([]byte, 9)
	_, err = io.ReadFull(conn, asks)
	require.NoError(t, err)
	require.Equal(t, "from code", string(asks))
	_, err = conn.Write([]byte("from the host"))
	require.NoError(t, err)
	require.Equal(t, "from the host", line())
	_, err = conn.Read(asks)
	require.ErrorIs(t, err, io.EOF, "who called has hung up")
	require.NoError(t, conn.Close())

	for n := range 3 {
		conn, err := s.Dialer()(t.Context(), "tcp", "127.0.0.1:0")
		require.NoError(t, err)
		_, err = fmt.Fprint(conn, n)
		require.NoError(t, err)
		answer, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint("hello ", n), string(answer))
		require.NoError(t, conn.Close())
	}

	require.NoError(t, s.End(t.Context(), os.Getpid()), "it is no child of the gateway's, and goes on")
	require.NoError(t, s.End(t.Context(), child))
	require.Equal(t, "ended", line())

	require.NoError(t, l.Close())
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	h.close()
	<-p.Done()
	_, err = s.Dialer()(t.Context(), "tcp", "127.0.0.1:0")
	require.Error(t, err)
}

// TestHandedToNoOne: a gateway that has ended refuses as a port does on which nobody listens, and
// one that does not read is not waited for.
func TestHandedToNoOne(t *testing.T) {
	t.Parallel()
	h, stdin, err := newHanded()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for err == nil { // until no more fits in
		var conn net.Conn
		if conn, err = h.dial(ctx, "", ""); err == nil {
			require.NoError(t, conn.Close())
		}
	}
	require.ErrorContains(t, err, "timeout")
	require.NoError(t, stdin.Close())
	_, err = h.dial(t.Context(), "", "")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	h.close()
}
