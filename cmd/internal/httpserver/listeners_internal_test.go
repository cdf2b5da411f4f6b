package httpserver

import (
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// slow is a listener that is about to take a connection for as long as goes is open, whatever
// its deadline is: an accept looks at that before, and has no processor then.
type slow struct {
	net.Listener
	goes chan struct{}
}

func (s slow) Accept() (net.Conn, error) {
	<-s.goes
	here, there := net.Pipe()
	return here, there.Close()
}

func (s slow) SetDeadline(time.Time) error { return nil }

// TestPauseIsExact: what was about to be taken when the pause began is taken before it has.
func TestPauseIsExact(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newListener(slow{goes: make(chan struct{})})
		var taken, paused bool
		var all sync.WaitGroup
		all.Go(func() {
			conn, err := l.Accept()
			require.NoError(t, err)
			require.NoError(t, conn.Close())
			taken = true
		})
		synctest.Wait()
		all.Go(func() { l.pause(); paused = true })
		synctest.Wait()
		require.False(t, paused)
		close(l.Listener.(slow).goes)
		all.Wait()
		require.True(t, taken)
		taken = false
		all.Go(func() {
			conn, err := l.Accept()
			require.NoError(t, err)
			require.NoError(t, conn.Close())
			taken = true
		})
		synctest.Wait()
		require.False(t, taken)
		l.resume()
		all.Wait()
		require.True(t, taken)
	})
}
