package jupyter_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/fakegateway"
)

// emit may block for as long as it likes; meanwhile everything is read, and
// nothing is lost, although almost nothing fits in memory.
func TestSlowEmitLosesNothing(t *testing.T) {
	t.Parallel()
	k, fk := fakeKernel(t, fakegateway.Options{}, func(o *jupyter.Options) { o.SpoolMemory = 4 << 10 })
	const n = 5000
	var got strings.Builder
	blocked, resume := make(chan struct{}), make(chan struct{})
	first := true
	end := inBackground(t, k, jupyter.ExecuteRequest{Code: fmt.Sprintf("flood %d", n)}, func(_ context.Context, o messages.Event) error {
		if first {
			first = false
			close(blocked)
			<-resume
		}
		got.WriteString(o.(messages.Stream).Text)
		return nil
	})
	await(t, blocked)
	require.Eventually(t, func() bool { return k.Stats().Received > n }, patience, tick, "the reader goes on")
	require.NoError(t, k.Ping(within(t)))
	require.NotNil(t, fk)
	close(resume)
	f := await(t, end)
	require.NoError(t, f.err)
	var want strings.Builder
	for i := range n {
		fmt.Fprintln(&want, i)
	}
	require.Equal(t, want.String(), got.String())
	require.Empty(t, f.reply.Incomplete)
}

func TestLargeMessage(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("0123456789abcdef", 20<<20/16)
	k, _ := fakeKernel(t, fakegateway.Options{Execute: func(c *fakegateway.Cell) {
		c.Begin()
		c.Stream("stdout", big)
		c.Reply("ok", nil)
		c.Status("idle")
	}})
	r, out := run(t, k, "x")
	require.Empty(t, r.Incomplete)
	require.Equal(t, out.text("stdout"), big)

	k, _ = fakeKernel(t, fakegateway.Options{Execute: func(c *fakegateway.Cell) {
		c.Begin()
		c.Stream("stdout", big)
	}}, func(o *jupyter.Options) { o.MaxMessage = 1 << 20 })
	_, err := k.Execute(within(t), jupyter.ExecuteRequest{Code: "x"}, (&outputs{}).emit)
	lost := requireLost(t, k, err, false)
	require.Contains(t, lost.Reason, "larger than allowed")
}

func TestSpoolDiskFailureIsTold(t *testing.T) {
	t.Parallel()
	k, _ := fakeKernel(t, fakegateway.Options{}, func(o *jupyter.Options) {
		o.SpoolMemory, o.SpoolDir = 1, o.SpoolDir+"/missing"
	})
	r, out := run(t, k, "out a\nout b")
	require.Equal(t, jupyter.ReplyOK, r.Status)
	require.Contains(t, r.Incomplete, "2 outputs could not be kept")
	require.Equal(t, []messages.Event{messages.Notice{Code: jupyter.NoticeNotKept, Text: r.Incomplete}}, out.list())
}

// A caller that leaves does not stop the code, and cannot have a second
// execution beside it.
func TestAbandonedExecution(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"context", "emit"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			release := make(chan struct{})
			k, _ := fakeKernel(t, fakegateway.Options{Execute: func(c *fakegateway.Cell) {
				c.Begin()
				c.Stream("stdout", "a")
				if c.Code == "long" {
					<-release
				}
				c.Stream("stdout", "b")
				c.Reply("ok", nil)
				c.Status("idle")
			}})
			left := errors.New("left")
			ctx, cancel := context.WithCancelCause(within(t))
			_, err := k.Execute(ctx, jupyter.ExecuteRequest{Code: "long"}, func(context.Context, messages.Event) error {
				if how == "emit" {
					return left
				}
				cancel(left)
				return nil
			})
			require.ErrorIs(t, err, left)
			cancel(nil)
			_, err = k.Execute(within(t), jupyter.ExecuteRequest{Code: "x"}, nil)
			require.ErrorIs(t, err, jupyter.ErrBusy)
			close(release)
			out := &outputs{}
			require.Eventually(t, func() bool {
				_, err = k.Execute(within(t), jupyter.ExecuteRequest{Code: "x"}, out.emit)
				return !errors.Is(err, jupyter.ErrBusy)
			}, patience, tick)
			require.NoError(t, err)
			require.Equal(t, "ab", out.text("stdout"))
			require.EqualValues(t, 1, k.Stats().Background, "the late b of the first")
		})
	}
}
