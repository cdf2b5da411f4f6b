package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/test/testpython"
)

// What is open by name can be watched, from any thread, and what is not cannot.
func TestTheBrokerWatches(t *testing.T) {
	require.NoError(t, Available(Seccomp))
	dir, data, outside := t.TempDir(), t.TempDir(), t.TempDir()
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "link")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "closed"), nil, 0o000))
	script := filepath.Join(dir, "watch.py")
	require.NoError(t, os.WriteFile(script, []byte(`import ctypes, os, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
queue = libc.inotify_init1(os.O_NONBLOCK)
def watch(path, mask=0x100, queue=queue):
    ctypes.set_errno(0)
    got = libc.inotify_add_watch(queue, path.encode(), mask)
    return "yes" if got > 0 else os.strerror(ctypes.get_errno())
dir, data, outside = sys.argv[1:]
def look():
    print("in a thread:", watch(dir))
t = threading.Thread(target=look); t.start(); t.join()
open("made", "w").close()
print("heard:", b"made" in os.read(queue, 4096))
for name, got in {
    "here": watch("."), "to be read": watch(data), "in one folder that is a file": watch("made", 0x1000100), "outside": watch(outside), "by a link": watch("link"),
    "the link": watch("link", 0x2000100), "by the process": watch("/proc/self/cwd/../" + os.path.basename(outside)), "of the system": watch("/etc"),
    "that is not there": watch("nothing"), "closed": watch("closed"), "no queue": watch(".", queue=0), "nothing open": watch(".", queue=999),
}.items():
    print(name + ":", got)
`), 0o600))
	python := testpython.Path(t)
	base, err := exec.CommandContext(t.Context(), python, "-c", "import sys; print(sys.base_prefix)").Output()
	require.NoError(t, err)
	r := Rules{Level: Seccomp, Write: []string{dir}, Read: []string{data, filepath.Dir(filepath.Dir(python)), strings.TrimSpace(string(base))}}
	out, err := confined(t, r, "cd "+dir+" && exec "+python+" watch.py "+dir+" "+data+" "+outside)
	require.NoError(t, err, out)
	for _, want := range []string{
		"in a thread: yes", "heard: True", "here: yes", "to be read: yes", "in one folder that is a file: Not a directory", "outside: Operation not permitted",
		"by a link: Operation not permitted", "the link: yes", "of the system: Operation not permitted", "that is not there: No such file",
		"closed: Permission denied", "no queue: Invalid argument", "nothing open: Bad file descriptor",
	} {
		require.Contains(t, out, want)
	}
	require.NotContains(t, out, "by the process: yes")
}
