package cli

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/coppice-run/coppice/cmd/internal/handover"
)

// onReplace starts a successor at each SIGUSR2, of a server that can be replaced; another one
// says that it cannot, and goes on. stop ends that.
func (a *app) onReplace(o *handover.Offer) (stop func()) {
	asked, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(asked, syscall.SIGUSR2)
	go func() { // ends with stop, which waits for it
		defer close(done)
		for range asked {
			if o == nil {
				a.Err.Lines("coppice: SIGUSR2 is for a server with --keep-sessions: this one cannot be replaced")
				continue
			}
			a.successor()
		}
	}()
	return func() {
		signal.Stop(asked)
		close(asked)
		<-done
	}
}
