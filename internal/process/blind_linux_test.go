package process_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/process"
)

// blind is what a process without descriptors sees of one that runs, and, when it has
// some again, of the same.
type blind struct {
	Alive, Ended, Awaited  bool
	Left                   int
	Told                   []string // what went without an error
	LaterAlive, LaterEnded bool
	KilledThen, EndedThen  bool
}

// TestCannotLookIsNotHasEnded: a process that has no descriptor left takes nobody for
// ended, and says that it cannot tell.
func TestCannotLookIsNotHasEnded(t *testing.T) {
	t.Parallel()
	o := child("blind")
	o.Stdout = process.NewRing(process.RingOptions{})
	p := start(t, o)
	var is blind
	require.NoError(t, json.Unmarshal([]byte(object(t, o.Stdout)), &is), "%s", o.Stdout)
	require.Equal(t, blind{Left: 1, LaterAlive: true, KilledThen: true, EndedThen: true}, is)
	ended(t, p)
}

// TestEnded: what is not there has, and so has a zombie.
func TestEnded(t *testing.T) {
	t.Parallel()
	require.True(t, process.Ended(process.Identity{}))
	p := start(t, child("wait"))
	id := p.Identity()
	require.False(t, process.Ended(id))
	require.True(t, process.Ended(process.Identity{PID: id.PID, Start: "1@" + id.Start}), "another process has its number")
	require.False(t, process.Ended(process.Identity{PID: id.PID}), "it may be the one")
	require.NoError(t, p.Stop(t.Context(), process.StopOptions{Grace: -1}))
	require.True(t, process.Ended(id))
}
