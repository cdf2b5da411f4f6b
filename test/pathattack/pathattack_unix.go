//go:build unix

package pathattack

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/workspace/files"
)

// Attack is a path.
type Attack struct {
	Path string
	// Refused is how many of the [Operations], from the first on, are refused: a symbolic
	// link may be described, moved and removed itself.
	Refused int
	// Want is matched by the error. nil: it is a *file.NotRegularError, or another one.
	Want error
}

// Operations are the names of those that take a path, in the order of [Attack].Refused.
var Operations = []string{"read", "write", "list", "watch", "make", "stat", "move from", "move to", "remove"}

// Attacks are tried in a folder that [Make] has made.
var Attacks = []Attack{
	{"..", 9, files.ErrOutside},
	{"../outside/secret", 9, files.ErrOutside},
	{"./../outside/secret", 9, files.ErrOutside},
	{"dir/../../outside/secret", 9, files.ErrOutside},
	{"dir/..", 9, files.ErrOutside},
	{"dir//..//../outside/secret", 9, files.ErrOutside},
	{strings.Repeat("../", 100) + "etc/passwd", 9, files.ErrOutside},
	{"/", 9, files.ErrOutside},
	{"/etc/passwd", 9, files.ErrOutside},
	{"//etc/passwd", 9, files.ErrOutside},
	{"/proc/self/cwd/etc/passwd", 9, files.ErrOutside},
	{`\etc\passwd`, 9, files.ErrOutside},
	{`..\outside\secret`, 9, files.ErrOutside},
	{`dir\..\..\outside`, 9, files.ErrOutside},
	{`C:\secret`, 9, files.ErrOutside},
	{"C:/secret", 9, files.ErrOutside},
	{"c:", 9, files.ErrOutside},
	{`\\server\share\x`, 9, files.ErrOutside},
	{`\\?\C:\secret`, 9, files.ErrOutside},
	{"inside\x00", 9, files.ErrPath},
	{"\x00", 9, files.ErrPath},
	{"inside\x00/../../outside/secret", 9, files.ErrPath},
	{"\xff\xfe", 9, files.ErrPath},
	{"\xc0\xae\xc0\xae/outside/secret", 9, files.ErrPath},
	{strings.Repeat("x", 256), 9, files.ErrPath},
	{strings.Repeat("x/", 2049), 9, files.ErrPath},
	{"up/outside/secret", 9, files.ErrOutside},
	{"up2/outside/secret", 9, files.ErrOutside},
	{"dir/back/secret", 9, files.ErrOutside},
	{"absolute/secret", 9, files.ErrOutside},
	{"home/secret", 9, files.ErrOutside},
	{"proc/etc/passwd", 9, files.ErrOutside},
	{"chain/secret", 9, files.ErrOutside},
	{"loop/x", 9, nil},
	{"fifo/x", 9, files.ErrNotDir},
	{"socket/x", 9, files.ErrNotDir},
	{"inside/x", 9, files.ErrNotDir},
	{"up", 4, nil},
	{"absolute", 4, nil},
	{"home", 4, nil},
	{"chain", 4, nil},
	{"proc", 4, nil},
	{"loop", 4, nil},
	{"absolutefile", 4, nil},
	{"dangling", 4, nil},
	{"fifo", 5, nil},
	{"socket", 5, nil},
	{"device", 5, nil},
}

// Make puts everything that the attacks name into a folder, and returns another one,
// beside it, which holds a file "secret" that no attack may reach.
func Make(t *testing.T, dir string) (outside string) {
	t.Helper()
	outside = filepath.Join(filepath.Dir(dir), "outside")
	require.NoError(t, os.Mkdir(outside, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600))
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.Mkdir(at("dir"), 0o700))
	require.NoError(t, os.WriteFile(at("inside"), []byte("inside"), 0o600))
	for name, target := range map[string]string{
		"up": "..", "up2": "dir/../..", "dir/back": "../../outside", "absolute": outside, "home": dir + "/../outside", "proc": "/proc/self/cwd",
		"chain": "dir/back", "loop": "loop", "absolutefile": filepath.Join(outside, "secret"), "dangling": filepath.Join(outside, "none"),
	} {
		require.NoError(t, os.Symlink(target, at(name)))
	}
	require.NoError(t, syscall.Mkfifo(at("fifo"), 0o600))
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", shortly(t, dir))
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	if err := syscall.Mknod(at("device"), syscall.S_IFCHR|0o600, 1<<8|5); err != nil { // /dev/zero, for root
		require.NoError(t, syscall.Mkfifo(at("device"), 0o600))
	}
	return outside
}

// shortly is a path of dir/socket that a socket can have.
func shortly(t *testing.T, dir string) string {
	t.Helper()
	short, err := os.MkdirTemp("", "f")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(short)) })
	require.NoError(t, os.Symlink(dir, filepath.Join(short, "d")))
	return filepath.Join(short, "d", "socket")
}
