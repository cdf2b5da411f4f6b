package launcher_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/toolbox"
)

// open starts a launcher of a folder; none of its tools is ever started.
func open(t *testing.T, dir string) *launcher.Launcher {
	t.Helper()
	l, err := launcher.Start(t.Context(), launcher.Options{Dir: dir, Home: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.True(t, l.Shutdown(context.Background()).Clean()) })
	return l
}

// pinned are the tools that a launcher holds as pinned.
func pinned(t *testing.T, l *launcher.Launcher) []string {
	t.Helper()
	state, err := l.State(t.Context())
	require.NoError(t, err)
	ids := []string{}
	for _, s := range state.Tools {
		require.True(t, s.Pinned, "a tool that was never warm is known for its pin alone: %+v", s)
		ids = append(ids, s.ID)
	}
	return ids
}

// TestMemoryAndFileAgree whatever races.
func TestMemoryAndFileAgree(t *testing.T) {
	t.Parallel()
	box := toolbox.New(t)
	box.Add(toolbox.Tool{ID: "x", NoVenv: true})
	l := open(t, box.Dir)
	for range 30 {
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				if err := l.Pin(t.Context(), "x", i%2 == 0); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		kept, err := l.Toolbox().Pinned()
		require.NoError(t, err)
		require.Equal(t, slices.Contains(kept, "x"), slices.Contains(pinned(t, l), "x"))
	}
}

// TestPinsOfTwoLaunchers of one folder all hold for the next one.
func TestPinsOfTwoLaunchers(t *testing.T) {
	t.Parallel()
	box := toolbox.New(t)
	ids := []string{"a", "b", "c", "d", "e", "f"}
	for _, id := range ids {
		box.Add(toolbox.Tool{ID: id, NoVenv: true})
	}
	two := []*launcher.Launcher{open(t, box.Dir), open(t, box.Dir)}
	var all sync.WaitGroup
	for i, id := range ids {
		all.Go(func() {
			if err := two[i%2].Pin(t.Context(), id, true); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.Equal(t, ids, pinned(t, open(t, box.Dir)))
}

// TestTheEndOfAPinLeavesNothing in the state, of a tool that was never warm and of one
// that is not there.
func TestTheEndOfAPinLeavesNothing(t *testing.T) {
	t.Parallel()
	box := toolbox.New(t)
	box.Add(toolbox.Tool{ID: "x", NoVenv: true})
	l := open(t, box.Dir)
	require.NoError(t, l.Pin(t.Context(), "unknown", false))
	require.Empty(t, pinned(t, l))
	require.NoError(t, l.Pin(t.Context(), "x", true))
	require.Equal(t, []string{"x"}, pinned(t, l))
	require.NoError(t, l.Pin(t.Context(), "x", false))
	require.Empty(t, pinned(t, l))

	require.NoError(t, l.Pin(t.Context(), "x", true))
	require.True(t, l.Shutdown(t.Context()).Clean())
	require.ErrorIs(t, l.Pin(t.Context(), "x", false), launcher.ErrClosed)
	kept, err := l.Toolbox().Pinned()
	require.NoError(t, err)
	require.Equal(t, []string{"x"}, kept, "what is refused changes nothing")
	var told *messages.ToolError
	require.ErrorAs(t, l.Pin(t.Context(), "unknown", true), &told)
}
