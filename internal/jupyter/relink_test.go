package jupyter_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/fakegateway"
)

// printed makes a kernel that prints numbered lines and lets the test act at
// some of them.
func printed(n int, act map[int]func(*fakegateway.Cell)) fakegateway.Options {
	return fakegateway.Options{Recover: true, Execute: func(c *fakegateway.Cell) {
		if c.Code != "print" {
			c.Serve()
			return
		}
		c.Begin()
		for i := range n {
			if do := act[i]; do != nil {
				do(c)
			}
			c.Stream("stdout", fmt.Sprintln(i))
		}
		c.Reply("ok", nil)
		c.Status("idle")
	}}
}

// numbered is what a loop over n prints.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, i)
	}
	return b.String()
}

// notices returns the notices among outputs.
func notices(o *outputs) (all []messages.Notice) {
	for _, out := range o.list() {
		if n, ok := out.(messages.Notice); ok {
			all = append(all, n)
		}
	}
	return all
}

// away cuts the connections and waits until the server has seen it.
func away(c *fakegateway.Cell) {
	before := c.Kernel.Attached()
	c.Kernel.Drop()
	for c.Kernel.Attached() == before {
		<-time.After(tick)
	}
}

// A connection that breaks is dialled again, and the server hands over what it
// has buffered.
func TestReconnect(t *testing.T) {
	t.Parallel()
	for _, legacy := range []bool{false, true} {
		t.Run(fmt.Sprint("legacy=", legacy), func(t *testing.T) {
			t.Parallel()
			o := printed(300, map[int]func(*fakegateway.Cell){
				50:  func(c *fakegateway.Cell) { c.Kernel.Drop() },
				150: away,
				299: away,
			})
			o.Legacy = legacy
			k, fk := fakeKernel(t, o)
			k.EnableReplay()
			r, out := run(t, k, "print")
			require.Equal(t, jupyter.ReplyOK, r.Status)
			require.True(t, r.Broken)
			require.Equal(t, numbered(300), out.text("stdout"))
			require.Empty(t, r.Incomplete)
			require.Empty(t, notices(out))
			require.NotZero(t, k.Stats().Reconnects)
			require.Equal(t, 1, fk.Received("execute_request"))
			r, out = run(t, k, "out again")
			require.Equal(t, "again\n", out.text("stdout"))
			require.False(t, r.Broken)
		})
	}
}

// An idle kernel is connected again as well.
func TestReconnectWhileIdle(t *testing.T) {
	t.Parallel()
	k, fk := fakeKernel(t, fakegateway.Options{})
	for n := range 3 {
		fk.Drop()
		require.Eventually(t, func() bool { return k.Stats().Reconnects == int64(n+1) }, patience, tick)
		require.NoError(t, k.Ping(within(t)))
		_, out := run(t, k, "out here")
		require.Equal(t, "here\n", out.text("stdout"))
	}
}

// An interrupt can mangle what ipykernel sends. What was in it is asked for, and the kernel goes
// on; one that mangles everything is lost.
func TestAMangledMessage(t *testing.T) {
	t.Parallel()
	mangled := v1Frame("iopub", "<IDS|MSG>", "{}", "{}", "{}") // the rest of one, and the next
	mangle := func(c *fakegateway.Cell) {
		c.Kernel.Lose(2)
		c.Kernel.Raw(websocket.BinaryMessage, mangled)
	}
	k, fk := fakeKernel(t, printed(300, map[int]func(*fakegateway.Cell){50: mangle, 51: mangle, 200: mangle, 299: mangle}))
	k.EnableReplay()
	r, out := run(t, k, "print")
	require.Equal(t, jupyter.ReplyOK, r.Status)
	require.Equal(t, numbered(300), out.text("stdout"))
	require.Empty(t, r.Incomplete)
	require.Equal(t, 1, fk.Received("execute_request"))
	require.Equal(t, fk.ID(), k.ID())

	require.Eventually(t, func() bool {
		fk.Raw(websocket.BinaryMessage, mangled)
		return k.Err() != nil
	}, patience, tick)
	require.ErrorContains(t, k.Err(), "not a message: malformed message: the header is not readable")
}

// A request that the kernel certainly never got is sent again; one of which
// nothing is known is not.
func TestRequestSwallowed(t *testing.T) {
	t.Parallel()
	for _, replays := range []bool{true, false} {
		t.Run(fmt.Sprint(replays), func(t *testing.T) {
			t.Parallel()
			k, fk := fakeKernel(t, fakegateway.Options{Recover: true})
			if replays {
				k.EnableReplay()
			}
			fk.Swallow(false, true)
			out := &outputs{}
			end := inBackground(t, k, jupyter.ExecuteRequest{Code: "out once"}, out.emit)
			require.Eventually(t, func() bool { return fk.Swallowed() > 0 }, patience, tick)
			fk.Drop()
			f := await(t, end)
			if !replays {
				require.ErrorIs(t, f.err, jupyter.ErrNoReply)
				require.Zero(t, fk.Received("execute_request"))
				return
			}
			require.NoError(t, f.err)
			require.Equal(t, "once\n", out.text("stdout"))
			require.Equal(t, 1, fk.Received("execute_request"))
		})
	}
}

// The answer to an input request survives a break.
func TestInputSwallowed(t *testing.T) {
	t.Parallel()
	k, fk := fakeKernel(t, fakegateway.Options{Recover: true})
	k.EnableReplay()
	out := &outputs{}
	end := inBackground(t, k, jupyter.ExecuteRequest{Code: "ask name?", AllowStdin: true}, func(ctx context.Context, o messages.Event) error {
		if _, ok := o.(messages.InputRequest); ok {
			fk.Swallow(false, true)
			require.NoError(t, k.Input(ctx, "Ada"))
			return nil
		}
		return out.emit(ctx, o)
	})
	require.Eventually(t, func() bool { return fk.Swallowed() > 0 }, patience, tick)
	fk.Drop()
	f := await(t, end)
	require.NoError(t, f.err)
	require.Equal(t, "Ada\n", out.text("stdout"))
}

// An answer that is given while the connection is down goes over the next one, once: the code
// may ask again at once, and a second one would answer that.
func TestInputWhileAway(t *testing.T) {
	t.Parallel()
	s, c := fake(t, fakegateway.Options{Recover: true})
	k := startKernel(t, c)
	k.EnableReplay()
	out, hold := &outputs{}, make(chan struct{})
	end := inBackground(t, k, jupyter.ExecuteRequest{Code: "ask name?", AllowStdin: true}, func(ctx context.Context, o messages.Event) error {
		if _, ok := o.(messages.InputRequest); !ok {
			return out.emit(ctx, o)
		}
		s.Set(func(f *fakegateway.Faults) { f.HoldHandshake = hold })
		dialled := len(s.Requests())
		s.Live()[0].Drop()
		require.Eventually(t, func() bool {
			return slices.ContainsFunc(s.Requests()[dialled:], func(request string) bool { return strings.Contains(request, "/channels") })
		}, patience, tick)
		require.NoError(t, k.Input(ctx, "Ada"))
		close(hold)
		return nil
	})
	f := await(t, end)
	require.NoError(t, f.err)
	require.Equal(t, "Ada\n", out.text("stdout"))
	require.NoError(t, k.Ping(within(t))) // what was sent before it has come
	require.Equal(t, 1, s.Live()[0].Received("input_reply"))
}

// A kernel that was replaced while the connection was down is lost.
func TestReplacedWhileAway(t *testing.T) {
	t.Parallel()
	k, fk := fakeKernel(t, fakegateway.Options{})
	end, out := running(t, k)
	fk.Replace(false)
	fk.Drop()
	f := await(t, end)
	_ = requireLost(t, k, f.err, true)
	require.Equal(t, "a\n", out.text("stdout"))
}

// Deleting a kernel that is being dialled again ends the dialling.
func TestDeleteWhileAway(t *testing.T) {
	t.Parallel()
	s, c := fake(t, fakegateway.Options{})
	k := startKernel(t, c)
	hold := make(chan struct{})
	s.Set(func(f *fakegateway.Faults) { f.HoldHandshake = hold })
	s.Live()[0].Drop()
	require.NoError(t, k.Delete(within(t)))
	await(t, k.Done())
	close(hold)
	require.Empty(t, s.Live())
}

// A server that is away for a while, or fails handshakes, is waited for.
func TestReconnectAfterFailures(t *testing.T) {
	t.Parallel()
	s, c := fake(t, fakegateway.Options{Recover: true})
	k := startKernel(t, c)
	k.EnableReplay()
	end, out := running(t, k)
	s.Set(func(f *fakegateway.Faults) { f.Status, f.Times = map[string]int{"channels": 502}, 3 })
	s.Live()[0].Drop()
	require.Eventually(t, func() bool { return k.Stats().Reconnects == 1 }, patience, tick)
	require.NoError(t, k.Interrupt(within(t)))
	f := await(t, end)
	require.NoError(t, f.err)
	require.Equal(t, "KeyboardInterrupt", f.reply.Error.Name)
	require.Equal(t, "a\n", out.text("stdout"))
}
