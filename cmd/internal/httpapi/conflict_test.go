package httpapi_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
	"github.com/coppice-run/coppice/messages"
)

// TestConflicts meets each state that a request can be in conflict with: the
// answer is 409, says why, and nothing has changed.
func TestConflicts(t *testing.T) {
	t.Parallel()
	s := serve(t, coppice.Options{MaxSessions: 2}, httpapi.Options{})
	ctx := t.Context()

	// A notebook that changes between the moment it was read and its save, which
	// waits for the lock.
	path := filepath.Join(s.cwd, "a.ipynb")
	_, err := s.ApplyNotebook(ctx, client.Apply{Path: path, Text: "# %% [code]\nx = 1\n"})
	require.NoError(t, err)
	lock := flock.New(filepath.Join(s.cwd, ".a.ipynb.lock"))
	changed := func(round int) bool {
		require.NoError(t, lock.Lock())
		applied := make(chan error, 1)
		go func() { // ends when the lock is released; joined by the receive
			_, err := s.ApplyNotebook(ctx, client.Apply{Path: path, Text: fmt.Sprintf("# %%%% [code]\nx = %d\n", round)})
			applied <- err
		}()
		<-time.After(20 * time.Millisecond << round) // for it to read the file; if it comes later it sees the change
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path+".new", append(data, '\n'), 0o600))
		require.NoError(t, os.Rename(path+".new", path)) // nobody reads half of it
		require.NoError(t, lock.Unlock())
		if err = <-applied; err == nil {
			return false
		}
		require.Equal(t, http.StatusConflict, statusOf(t, err))
		require.ErrorContains(t, err, "changed on disk")
		return true
	}
	round := 1
	for ; round < 9 && !changed(round); round++ {
	}
	require.Less(t, round, 9)

	// An id that has another execution, while that runs.
	_, err = s.Start(ctx, client.Execute{ID: "mine", Session: "busy", Cells: cells("import time; print('here', flush=True); time.sleep(600)")})
	require.NoError(t, err)
	s.prints("mine")
	_, err = s.Start(ctx, client.Execute{ID: "mine", Session: "busy", Cells: cells("1")})
	require.Equal(t, http.StatusConflict, statusOf(t, err))
	_, err = s.RunNotebook(ctx, client.RunNotebook{ID: "mine", Path: path, Session: "busy"})
	require.Equal(t, http.StatusConflict, statusOf(t, err))

	// A session that is busy, or that has threads, cannot be copied.
	key := messages.SessionKey{Session: "busy"}
	_, err = s.Fork(ctx, key, 1, "")
	require.Equal(t, http.StatusConflict, statusOf(t, err), "%v", err)
	require.NoError(t, s.Cancel(ctx, "mine"))
	_, err = s.Wait(ctx, "mine")
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeOK, s.run("busy", "import threading; gate = threading.Event(); threading.Thread(target=gate.wait, daemon=True).start()").Outcome)
	_, err = s.Fork(ctx, key, 1, "")
	require.Equal(t, http.StatusConflict, statusOf(t, err), "%v", err)
	require.Equal(t, messages.OutcomeOK, s.run("busy", "gate.set()").Outcome)

	// What is no conflict: to do again what was done.
	require.NoError(t, s.Cancel(ctx, "mine"))
	require.NoError(t, s.Interrupt(ctx, key))
	require.NoError(t, s.Pin(ctx, key, true))
	require.NoError(t, s.Pin(ctx, key, true))
	status, err := s.Answer(ctx, "mine", "1", "nobody asked")
	require.NoError(t, err)
	require.NotEqual(t, messages.InputAccepted, status)
}

// prints waits until code prints something: it runs, and what ends it ends it there.
func (s *server) prints(id string) {
	for e, err := range s.Events(s.t.Context(), id, 0) {
		require.NoError(s.t, err)
		if e.Type() == "stdout" {
			return
		}
	}
	require.Fail(s.t, "it has printed nothing")
}
