package process_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
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
			}, 3*time.Minute, time.Millisecond, "%v", left)
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

// TestParts: what has a mark is told apart by its part of it, which is inherited as the mark
// is, and may be given to a process that runs.
func TestParts(t *testing.T) {
	for name, own := range map[string]*process.Owner{"owned": owner(t), "alone": nil} {
		t.Run(name, func(t *testing.T) {
			mark := process.NewMark()
			in, write, err := os.Pipe()
			require.NoError(t, err)
			o := shell(own, "read go; (setsid sh -c '(env -i setsid sleep 600 &)' &); read stop")
			o.Mark, o.Part, o.Stdin = mark, 7, in
			first := start(t, o)
			second := start(t, process.Options{Path: "/bin/sleep", Args: []string{"600"}, Mark: mark, Owner: own})
			_, err = write.WriteString("go\n")
			require.NoError(t, err)
			var left []process.Identity
			parts := func() map[int]process.Part {
				members, err := process.Tally(mark, nil)
				require.NoError(t, err)
				of := map[int]process.Part{}
				left = nil
				for _, m := range members {
					if of[m.PID] = m.Part; m.PID != first.PID() && m.PID != second.PID() {
						left = append(left, m.Identity)
					}
				}
				return of
			}
			require.Eventually(t, func() bool {
				of := parts()
				return len(of) == 3 && len(left) == 1 && holds(t, left[0], "sleep")
			}, 3*time.Minute, time.Millisecond)
			require.Equal(t, map[int]process.Part{first.PID(): 7, second.PID(): 0, left[0].PID: 7}, parts())
			require.NoError(t, process.SetMark(second.PID(), mark), "it keeps what it has")
			require.NoError(t, process.SetPart(second.PID(), 8))
			require.NoError(t, process.SetMark(first.PID(), mark))
			require.Equal(t, map[int]process.Part{first.PID(): 7, second.PID(): 8, left[0].PID: 7}, parts())
			of, err := process.BelongingOf(left[0].PID)
			require.NoError(t, err)
			require.Equal(t, process.Belonging{Mark: mark, Part: 7}, of)
			all, err := process.Belongings()
			require.NoError(t, err)
			require.Subset(t, all[of], []int{first.PID(), left[0].PID})
			require.Equal(t, []int{second.PID()}, all[process.Belonging{Mark: mark, Part: 8}])
			some, err := process.TallyOf([]int{second.PID(), -1})
			require.NoError(t, err)
			require.Equal(t, []process.Member{{Identity: second.Identity(), Parent: some[0].Parent, Memory: -1, Part: 8}}, some)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			require.Empty(t, process.KillAll(ctx, append(left, second.Identity())))
			require.NoError(t, errors.Join(in.Close(), write.Close()))
			ended(t, first)
			ended(t, second)
		})
	}
}

// holds reports whether a process is this program by now.
func holds(t *testing.T, id process.Identity, word string) bool {
	t.Helper()
	args, err := process.Arguments(id.PID)
	return err == nil && len(args) > 0 && args[0] == word
}

// TestLastStarted: who begins has a higher number than all before, until those are used up.
func TestLastStarted(t *testing.T) {
	before := process.LastStarted()
	require.Positive(t, before)
	c := exec.Command("true")
	require.NoError(t, c.Run())
	after := process.LastStarted()
	require.NotEqual(t, before, after)
	if after > before {
		require.GreaterOrEqual(t, after, c.Process.Pid)
		require.Greater(t, c.Process.Pid, before)
	}
}
