//go:build unix

package workspace

import (
	"os"
	"os/signal"
	"syscall"
)

// watchSize calls changed when the size of the terminal has changed, until stop is called,
// which joins it.
func watchSize(changed func()) (stop func()) {
	told, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(told, syscall.SIGWINCH)
	go func() { // ends with stop
		defer close(done)
		for range told {
			changed()
		}
	}()
	return func() {
		signal.Stop(told)
		close(told)
		<-done
	}
}
