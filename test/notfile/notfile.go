package notfile

import (
	"os"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Kind is what Make puts at a path.
type Kind string

// The kinds.
const (
	FIFO      Kind = "a FIFO"
	Device    Kind = "a device" // a link to /dev/zero, which has no end
	Socket    Kind = "a socket"
	Directory Kind = "a directory"
)

// Make puts something at a path, in place of what is there.
func Make(tb testing.TB, kind Kind, path string) {
	tb.Helper()
	require.NoError(tb, os.RemoveAll(path))
	if kind == Directory {
		require.NoError(tb, os.Mkdir(path, 0o700))
		return
	}
	put(tb, kind, path)
}

// patience is far more than it takes to refuse a file, and less than for ever.
const patience = 30 * time.Second

// AtOnce calls do several times and fails when that waits for somebody: in the call,
// or in a thread that stays in the kernel.
func AtOnce(tb testing.TB, do func()) {
	tb.Helper()
	const times = 20
	before := pprof.Lookup("threadcreate").Count()
	over := make(chan struct{})
	go func() {
		defer close(over)
		for range times {
			do()
		}
	}()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-over:
	case <-late.C:
		require.FailNow(tb, "it waits for the other end")
	}
	// Other tests of the process make threads too, but not one for each call.
	require.Less(tb, pprof.Lookup("threadcreate").Count()-before, times, "threads stay")
}
