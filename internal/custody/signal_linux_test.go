package custody_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// waiter keeps something, is asked to end by a signal that another thread of it takes, and so
// interrupts nothing: as one does that comes in the moment before it begins to wait.
const waiter = `
import os, signal, socket, sys, threading, time
with open(sys.argv[1]) as f:
    source, _, _ = f.read().rpartition("\nmain()")
custodian = {"__name__": "custodian"}
exec(compile(source, sys.argv[1], "exec"), custodian)
os.chdir(sys.argv[2])
host, link = socket.socketpair()
custodian["send"](host, {"n": 1, "token": "t", "keep_for": 600, "dir": sys.argv[2]})
keeper = custodian["Custodian"](link)
signal.signal(signal.SIGTERM, custodian["stop"])
main = threading.get_native_id()

def end():
    asleep = 0
    while asleep < 3:  # waiting for its turn with the interpreter looks the same, and is over soon
        with open("/proc/self/task/%d/stat" % main, "rb") as f:
            asleep = asleep + 1 if f.read().rpartition(b")")[2].split()[0] == b"S" else 0
        time.sleep(0.01)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    os.kill(os.getpid(), signal.SIGTERM)

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
try:
    threading.Thread(target=end, daemon=True).start()
    keeper.serve()
except SystemExit:
    print("ended")
`

// TestASignalEndsTheWaiting, also one that interrupts no system call.
func TestASignalEndsTheWaiting(t *testing.T) {
	source, err := filepath.Abs("custodian.py")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	said, err := exec.CommandContext(ctx, python(), "-c", waiter, source, t.TempDir()).CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Equal(t, "ended\n", string(said))
}
