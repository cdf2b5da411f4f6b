package jupyter_test

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/test/fakegateway"
	"github.com/coppice-run/coppice/test/starve"
)

// starved is a process that wants a processor and gets none, in the place of a server's.
func starved(t *testing.T) process.Identity {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "while :; do :; done")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	starve.Deprive(t, cmd.Process.Pid)
	id, err := process.Identify(cmd.Process.Pid)
	require.NoError(t, err)
	return id
}

// A request to a server that has no processor is waited for, longer than to one that has
// its chance and says nothing.
func TestAStarvedServerIsWaitedFor(t *testing.T) {
	const limit, answersAfter = 400 * time.Millisecond, 1200 * time.Millisecond
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		late := time.NewTimer(answersAfter)
		defer late.Stop()
		select {
		case <-late.C:
		case <-r.Context().Done():
			return
		}
		_, _ = w.Write([]byte(`{"id":"k","name":"python3","execution_state":"idle"}`))
	}))
	t.Cleanup(s.Close)
	get := func(server process.Identity) error {
		c, err := jupyter.NewClient(jupyter.Options{URL: s.URL, Server: server, RequestTimeout: limit})
		require.NoError(t, err)
		defer c.Close()
		_, err = c.Get(t.Context(), "k")
		return err
	}
	var away *jupyter.UnreachableError
	require.ErrorAs(t, get(process.Identity{}), &away)
	require.True(t, away.Timeout, "%v", away)
	require.NoError(t, get(starved(t)))
}

// So is its connection, when nothing comes.
func TestTheSilenceOfAStarvedServer(t *testing.T) {
	const limit = 400 * time.Millisecond
	silent := func(server process.Identity) time.Duration {
		k, live := fakeKernel(t, fakegateway.Options{}, func(o *jupyter.Options) {
			o.Server, o.PingEvery, o.Silence, o.Reconnect = server, limit/4, limit, time.Nanosecond
		})
		begin := time.Now()
		live.Freeze()
		await(t, k.Done())
		require.ErrorContains(t, k.Err(), "silent")
		return time.Since(begin)
	}
	alone := silent(process.Identity{})
	require.Greater(t, alone, limit-limit/4, "the last it said came at most an interval of pings before")
	require.Greater(t, silent(starved(t)), 2*limit, "alone it was %v", alone)
}
