package opportunity_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/opportunity"
)

// TestAProcessWithTooMuchToDoIsLate: what is read from another process waits for all that
// this one does besides, and so does the watch, whatever the system gives it.
func TestAProcessWithTooMuchToDoIsLate(t *testing.T) {
	const each = 2 * time.Millisecond // of work, as for a message
	stop := make(chan struct{})
	var busy, begun sync.WaitGroup
	for range 100 * runtime.GOMAXPROCS(0) {
		begun.Add(1)
		busy.Go(func() {
			for first := true; ; first = false {
				if first {
					begun.Done()
				}
				select {
				case <-stop:
					return
				default:
				}
				for begin := time.Now(); time.Since(begin) < each; {
				}
				runtime.Gosched()
			}
		})
	}
	defer busy.Wait()
	defer close(stop)
	begun.Wait()
	var w opportunity.Watch
	w.Start()
	defer w.Stop()
	begin := time.Now()
	for range 8 {
		runtime.Gosched() // behind all others, as what was read is
	}
	require.Greater(t, w.Stalled(), time.Since(begin)*3/4)
}
