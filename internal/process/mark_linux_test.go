package process_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/process"
)

// TestMarks: what a child starts is known by its mark, though it has left its group,
// its session and its parent, and has an environment of its own.
func TestMarks(t *testing.T) {
	for name, own := range map[string]*process.Owner{"owned": owner(t), "alone": nil} {
		t.Run(name, func(t *testing.T) {
			mark := process.NewMark()
			require.NotZero(t, mark)
			in, write, err := os.Pipe()
			require.NoError(t, err)
			o := shell(own, "read go; (setsid sh -c '(env -i setsid sleep 600 &)' &); read stop; exit 0")
			o.Mark, o.Stdin = mark, in // without an owner it is marked when it runs already
			p := start(t, o)
			_, err = write.WriteString("go\n")
			require.NoError(t, err)
			var left []process.Identity
			require.Eventually(t, func() bool {
				left, err = process.Marked(mark)
				return err == nil && len(left) == 2 && (holds(t, left[0], "sleep") || holds(t, left[1], "sleep"))
			}, 10*time.Second, time.Millisecond, "%v", left)
			require.NoError(t, errors.Join(in.Close(), write.Close()))
			ended(t, p)
			require.NoError(t, p.Err())
			left, err = process.Marked(mark)
			require.NoError(t, err)
			require.Len(t, left, 1)
			require.True(t, holds(t, left[0], "sleep"))
			none, err := process.Marked(process.NewMark())
			require.NoError(t, err)
			require.Empty(t, none)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			require.Empty(t, process.KillAll(ctx, left))
		})
	}
	none, err := process.Marked(0)
	require.NoError(t, err)
	require.Empty(t, none)
}

// holds reports whether a process is this program by now.
func holds(t *testing.T, id process.Identity, word string) bool {
	t.Helper()
	args, err := process.Arguments(id.PID)
	return err == nil && len(args) > 0 && args[0] == word
}
