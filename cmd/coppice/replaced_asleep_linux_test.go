package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
)

// slow is a cell of which what it defines takes until there is a file to be read from disk again.
// It says that it waits by another file.
func slow(gate, waits string) string {
	return fmt.Sprintf(`class Slow:
    def __getstate__(self): return 41
    def __setstate__(self, n):
        import os, time
        while not os.path.exists(%q):
            open(%q, 'w').close()
            time.sleep(.005)
        self.n = n
x = Slow()`, gate, waits)
}

// TestReplacedWithSessionsOnDisk: what is on disk is there in the next server, also what is
// being restored at that moment; sessions that live go on; and one that would not read it is
// refused.
func TestReplacedWithSessionsOnDisk(t *testing.T) {
	p := newReplaced(t)
	s := p.start("--hibernate", "lossy", "--addr", "127.0.0.1:0")
	c := s.serves()
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	gate, waits := filepath.Join(p.home, "gate"), filepath.Join(p.home, "waits")
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	for session, code := range map[string]string{
		"asleep": "import socket\nx, s = 41, socket.socket()", "waking": slow(gate, waits), "lives": "x = 41", "another": "x = 1",
	} {
		_, _, err := run(ctx, c, client.Execute{Session: session, Cells: []messages.Cell{{Code: code}}})
		require.NoError(t, err)
	}
	var kept client.Hibernated
	for _, session := range []string{"asleep", "waking"} {
		var err error
		kept, err = c.Hibernate(ctx, messages.SessionKey{Session: session})
		require.NoError(t, err)
	}
	require.Equal(t, []string{"Slow", "x"}, kept.Kept)
	_, err := c.SaveCheckpoint(ctx, messages.SessionKey{Session: "lives"}, client.SaveCheckpoint{Name: "mark"})
	require.NoError(t, err)
	require.NoError(t, os.Remove(gate))
	restores := client.Execute{ID: "restores", Session: "waking", Cells: []messages.Cell{{Code: "print(x.n)"}}}
	_, err = c.Start(ctx, restores)
	require.NoError(t, err)
	require.Eventually(t, func() bool { _, err := os.Stat(waits); return err == nil }, patience, 5*time.Millisecond)

	other := p.start("--replace", "--addr", "127.0.0.1:0")
	<-other.ended
	require.Contains(t, other.words(), "does not know sessions on disk/1 (--hibernate)")
	began := time.Now()
	next := p.start("--hibernate", "lossless", "--replace", "--addr", "127.0.0.1:0")
	next.serves()
	t.Logf("the next one served after %v", time.Since(began))
	s.over(0)

	all, err := c.Sessions(ctx)
	require.NoError(t, err)
	live := map[string]bool{}
	for _, one := range all {
		live[one.Session] = true
	}
	require.False(t, live["asleep"])
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	text, result, err := run(ctx, c, restores)
	require.NoError(t, err)
	require.Equal(t, "41\n", text)
	require.Equal(t, messages.StateRestored, result.State)
	text, result, err = run(ctx, c, client.Execute{Session: "asleep", Cells: []messages.Cell{{Code: "print(x)"}}})
	require.NoError(t, err)
	require.Equal(t, "41\n", text)
	require.Equal(t, messages.StateRestored, result.State)
	require.Equal(t, []string{"socket", "x"}, result.Restored.Kept)
	require.Len(t, result.Restored.Lost, 1)
	require.Equal(t, "s", result.Restored.Lost[0].Name)
	text, result, err = run(ctx, c, client.Execute{Session: "lives", Cells: []messages.Cell{{Code: "print(x)"}}})
	require.NoError(t, err)
	require.Equal(t, "41\n", text)
	require.Equal(t, messages.StateKept, result.State)
	_, err = c.RestoreCheckpoint(ctx, messages.SessionKey{Session: "another"}, client.RestoreCheckpoint{Name: "mark"})
	require.NoError(t, err)
	text, result, err = run(ctx, c, client.Execute{Session: "another", Cells: []messages.Cell{{Code: "print(x)"}}})
	require.NoError(t, err)
	require.Equal(t, "41\n", text)
	require.Equal(t, messages.StateRestored, result.State)
	next.ends()
}
