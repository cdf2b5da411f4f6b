//go:build linux

package runner

import (
	"context"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
)

// TestAForkServerIsGoneOnce, however often a start meets it before Run has heard of its end: the
// session has its modules when there is another.
func TestAForkServerIsGoneOnce(t *testing.T) {
	t.Parallel()
	place := func() (*place, int) {
		s := NewServer(ServerOptions{Python: os.Getenv("COPPICE_TEST_PYTHON"), Spares: -1})
		ctx, cancel := context.WithCancel(t.Context())
		pids, ended := make(chan int, 1), make(chan struct{})
		go func() { // ends with cancel; ended is its join
			defer close(ended)
			_ = s.Run(ctx, func(pid int) { pids <- pid }) // one is killed
		}()
		t.Cleanup(func() { cancel(); <-ended })
		pid := <-pids
		p, ok := s.places.Now()
		require.True(t, ok)
		return p, pid
	}
	next, _ := place()
	dead, pid := place()
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	<-dead.server.Done()

	s := NewServer(ServerOptions{})
	s.places.There(dead)
	tries := 0
	progress := func(string) {
		if tries++; tries == 3*mostGone {
			s.places.There(next)
		}
	}
	b := New(Options{Server: s, Modules: func(string) string { return "loaded = 1\n" }})
	got, err := b.Start(t.Context(), kernel.StartOptions{Progress: progress})
	require.NoError(t, err)
	i := got.(*Interpreter)
	t.Cleanup(func() { require.NoError(t, i.Close(context.Background())) })
	require.Nil(t, i.notice)
	require.GreaterOrEqual(t, tries, 3*mostGone)
}
