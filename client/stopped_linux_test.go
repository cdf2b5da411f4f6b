package client_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
)

// stoppedVariable makes this test binary a client that is stopped for a while: it holds
// the address of its server.
const stoppedVariable = "COPPICE_TEST_AS_STOPPED_CLIENT"

// TestAStoppedClientKeepsItsStream: a client that stands still for longer than the server
// may be silent reads what came meanwhile, and goes on with the same connection.
func TestAStoppedClientKeepsItsStream(t *testing.T) {
	if url := os.Getenv(stoppedVariable); url != "" {
		c, err := client.New(client.Options{URL: url, Token: token, Silence: time.Second})
		require.NoError(t, err)
		got, err := numbers(c.Events(t.Context(), "x1", 0))
		c.Close()
		require.NoError(t, err)
		require.Equal(t, []uint64{1, 2}, got)
		return
	}
	t.Parallel()
	goesOn := make(chan struct{})
	began := make(chan struct{}, 100)
	var connections atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connections.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "data: %s\n\n", printed(1))
		w.(http.Flusher).Flush()
		began <- struct{}{}
		alive := time.NewTicker(100 * time.Millisecond)
		defer alive.Stop()
		for {
			select {
			case <-alive.C:
				_, _ = fmt.Fprint(w, ":\n\n")
				w.(http.Flusher).Flush()
				continue
			case <-r.Context().Done():
				return
			case <-goesOn:
			}
			_, _ = fmt.Fprintf(w, "data: %s\n\n", final(2))
			return
		}
	}))
	t.Cleanup(s.Close)
	self, err := os.Executable()
	require.NoError(t, err)
	for range 3 { // which of a timer and of what has come is first is a matter of luck
		before := connections.Load()
		cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestAStoppedClientKeepsItsStream$", "-test.v")
		cmd.Env = append(os.Environ(), stoppedVariable+"="+s.URL)
		out, err := os.CreateTemp(t.TempDir(), "said")
		require.NoError(t, err)
		cmd.Stdout, cmd.Stderr = out, out
		require.NoError(t, cmd.Start())
		<-began
		require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
		stopped := time.NewTimer(1300 * time.Millisecond) // longer than the server may be silent
		<-stopped.C
		require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
		longer := time.NewTimer(300 * time.Millisecond) // and it listens for a while
		<-longer.C
		goesOn <- struct{}{}
		require.NoError(t, cmd.Wait())
		require.EqualValues(t, 1, connections.Load()-before, "its connection broke")
		require.NoError(t, out.Close())
	}
}
