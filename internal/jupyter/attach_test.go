package jupyter_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/fakegateway"
)

// leaves runs code until so many outputs were taken, and leaves it then. It returns what there is
// to go on with, and what was taken.
func leaves(t *testing.T, k *jupyter.Kernel, code string, most int) (jupyter.Left, *outputs) {
	t.Helper()
	left, out, enough, number := jupyter.Left{}, &outputs{}, make(chan struct{}), int64(0)
	ended := inBackground(t, k, jupyter.ExecuteRequest{
		Code: code, Keep: true, Placed: func(n int64) { number = n },
		Announce: func(id string) error { left.Request = id; return nil },
	}, func(ctx context.Context, e messages.Event) error {
		if len(out.list()) == most { // who is killed takes nothing more
			close(enough)
			<-k.Done()
			return context.Canceled
		}
		left.Seen = max(left.Seen, number)
		return out.emit(ctx, e)
	})
	await(t, enough)
	k.Detach()
	await(t, ended)
	return left, out
}

// TestAttach: what another client has left is gone on with after what that has taken: while it
// runs, and when it has ended. What the kernel has forgotten is told.
func TestAttach(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ taken, remember int }{
		"it runs": {taken: 50}, "nothing was taken": {taken: 0}, "it has ended": {taken: 120}, "the kernel has forgotten some": {taken: 50, remember: 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gate := make(chan struct{})
			o := printed(200, map[int]func(*fakegateway.Cell){150: func(*fakegateway.Cell) { <-gate }})
			o.Remember = row.remember
			s, c := fake(t, o)
			k := startKernel(t, c)
			k.EnableReplay()
			left, out := leaves(t, k, "print", row.taken)
			if row.taken == 120 || row.remember > 0 {
				close(gate)
				require.Eventually(t, s.Live()[0].Idle, patience, tick)
			}
			again, err := c.Attach(within(t), k.ID(), left, nil)
			require.NoError(t, err)
			defer again.Detach()
			if row.taken != 120 && row.remember == 0 {
				require.True(t, again.Running())
				close(gate)
			}
			reply, err := again.Resume(within(t), jupyter.ExecuteRequest{Code: "print"}, out.emit)
			require.NoError(t, err)
			require.Equal(t, jupyter.ReplyOK, reply.Status)
			require.Equal(t, 1, s.Live()[0].Received("execute_request"))
			if row.remember > 0 {
				require.Len(t, notices(out), 1)
				require.Contains(t, reply.Incomplete, "messages were lost on the way")
				require.Less(t, len(out.text("stdout")), len(numbered(200)))
				require.True(t, strings.HasPrefix(out.text("stdout"), numbered(50)))
				return
			}
			require.Equal(t, numbered(200), out.text("stdout"))
			require.Empty(t, reply.Incomplete)
			require.Empty(t, notices(out))
			next, _ := run(t, again, "print")
			require.Equal(t, jupyter.ReplyOK, next.Status)
		})
	}
}

// TestAttachToWhatTheKernelNeverGot: it is sent, once.
func TestAttachToWhatTheKernelNeverGot(t *testing.T) {
	t.Parallel()
	s, c := fake(t, printed(10, nil))
	k := startKernel(t, c)
	k.EnableReplay()
	_, _ = run(t, k, "other")
	left := jupyter.Left{}
	_, err := k.Execute(within(t), jupyter.ExecuteRequest{Code: "print", Keep: true, Announce: func(id string) error {
		left.Request = id
		return context.Canceled // the client is killed just then
	}}, nil)
	require.ErrorIs(t, err, context.Canceled)
	k.Detach()
	before := s.Live()[0].Received("execute_request")
	again, err := c.Attach(within(t), k.ID(), left, nil)
	require.NoError(t, err)
	out := &outputs{}
	announced := ""
	reply, err := again.Resume(within(t), jupyter.ExecuteRequest{Code: "print", Announce: func(id string) error { announced = id; return nil }}, out.emit)
	require.NoError(t, err)
	require.Equal(t, jupyter.ReplyOK, reply.Status)
	require.Equal(t, numbered(10), out.text("stdout"))
	require.Equal(t, before+1, s.Live()[0].Received("execute_request"))
	require.NotEqual(t, left.Request, announced)
	again.Detach()
	_, err = c.Attach(within(t), k.ID(), jupyter.Left{Request: "nothing"}, nil)
	require.ErrorContains(t, err, "is not the id of a request")
}
