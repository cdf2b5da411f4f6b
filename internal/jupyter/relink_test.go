package jupyter_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

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

// What was on its way when the connection broke is repeated by the kernel, also
// the end of the execution, and in pages.
func TestRecovery(t *testing.T) {
	t.Parallel()
	for name, at := range map[string][2]int{"in the middle": {100, 250}, "the end": {250, 299}, "from the start": {0, 299}, "little": {298, 299}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, _ := fakeKernel(t, printed(300, map[int]func(*fakegateway.Cell){
				at[0]: func(c *fakegateway.Cell) { c.Kernel.Swallow(true, false) },
				at[1]: func(c *fakegateway.Cell) {
					if at[1] != 299 {
						away(c)
						return
					}
					go func() {
						for !c.Kernel.Idle() {
							<-time.After(tick)
						}
						c.Kernel.Drop()
					}()
				},
			}))
			k.EnableReplay()
			r, out := run(t, k, "print")
			require.Equal(t, jupyter.ReplyOK, r.Status)
			require.Equal(t, numbered(300), out.text("stdout"))
			require.Empty(t, r.Incomplete)
			require.Empty(t, notices(out))
			require.NotZero(t, k.Stats().Replayed)
		})
	}
}

// Connections break and swallow, the server drops: each line comes once and in
// order, and nobody speaks of it.
func TestRecoveryOverALossyServer(t *testing.T) {
	t.Parallel()
	for seed := range uint64(16) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			act := map[int]func(*fakegateway.Cell){}
			for range 1 + r.IntN(8) {
				how, n := r.IntN(5), 1+r.IntN(20)
				act[r.IntN(300)] = func(c *fakegateway.Cell) {
					switch how {
					case 0:
						c.Kernel.Drop()
					case 1:
						away(c)
					case 2:
						c.Kernel.Lose(n)
					case 3:
						c.Kernel.Swallow(true, false)
						drop := time.AfterFunc(time.Duration(n)*tick, c.Kernel.Drop)
						t.Cleanup(func() { drop.Stop() })
					default:
						c.Kernel.Swallow(true, true)
						drop := time.AfterFunc(time.Duration(n)*tick, c.Kernel.Drop)
						t.Cleanup(func() { drop.Stop() })
					}
				}
			}
			o := printed(300, act)
			o.Legacy = seed%2 == 0
			k, fk := fakeKernel(t, o)
			k.EnableReplay()
			reply, out := run(t, k, "print")
			require.Equal(t, jupyter.ReplyOK, reply.Status)
			require.Equal(t, numbered(300), out.text("stdout"))
			require.Empty(t, reply.Incomplete)
			require.Empty(t, notices(out))
			require.Equal(t, 1, fk.Received("execute_request"))
		})
	}
}

// A server that drops output and says so: the kernel repeats what it dropped.
func TestRecoveryFromARateLimit(t *testing.T) {
	t.Parallel()
	k, _ := fakeKernel(t, printed(300, map[int]func(*fakegateway.Cell){
		100: func(c *fakegateway.Cell) {
			c.Kernel.Announce("stream", c.Header(), map[string]any{"name": "stderr", "text": "IOPub message rate exceeded.\n"})
			c.Kernel.Lose(199)
		},
	}))
	k.EnableReplay()
	r, out := run(t, k, "print")
	require.Equal(t, numbered(300), out.text("stdout"))
	require.Empty(t, r.Incomplete)
	require.Empty(t, notices(out))
}

// A kernel that does not number any more, or does not answer, holds nothing up.
func TestRecoveryThatDoesNotCome(t *testing.T) {
	t.Parallel()
	o := printed(300, map[int]func(*fakegateway.Cell){
		100: func(c *fakegateway.Cell) { c.Kernel.Swallow(true, false) },
		250: away,
	})
	o.Remember = 1
	k, _ := fakeKernel(t, o)
	k.EnableReplay()
	r, out := run(t, k, "print")
	require.NotEmpty(t, r.Incomplete)
	require.GreaterOrEqual(t, requireTold(t, out, 300), 100)

	o.Recover = false
	k, _ = fakeKernel(t, o)
	k.EnableReplay()
	r, out = run(t, k, "print")
	require.NotEmpty(t, r.Incomplete)
	require.Equal(t, jupyter.ReplyOK, r.Status)
	requireTold(t, out, 300)
}

// What the kernel has forgotten is told where it is missing.
func TestRecoveryOfTooMuch(t *testing.T) {
	t.Parallel()
	o := printed(300, map[int]func(*fakegateway.Cell){
		100: func(c *fakegateway.Cell) { c.Kernel.Swallow(true, false) },
		250: away,
	})
	o.Remember = 60
	k, _ := fakeKernel(t, o)
	k.EnableReplay()
	r, out := run(t, k, "print")
	require.Equal(t, jupyter.ReplyOK, r.Status)
	require.NotEmpty(t, r.Incomplete)
	requireTold(t, out, 300)
}

// requireTold checks that lines are in order, once, and that there is a notice
// wherever some are missing.
func requireTold(t *testing.T, o *outputs, n int) (missing int) {
	t.Helper()
	next, told := 0, false
	for _, out := range o.list() {
		switch out := out.(type) {
		case messages.Notice:
			require.Equal(t, jupyter.NoticeConnection, out.Code, out.Text)
			told = true
		case messages.Stream:
			for line := range strings.Lines(out.Text) {
				var i int
				_, err := fmt.Sscanln(line, &i)
				require.NoError(t, err, line)
				require.GreaterOrEqual(t, i, next, "twice, or out of order")
				if i > next {
					require.True(t, told, "lines %d to %d are missing, and nobody says so", next, i-1)
					missing += i - next
				}
				next, told = i+1, false
			}
		}
	}
	if next < n {
		require.True(t, told, "the lines from %d on are missing, and nobody says so", next)
		missing += n - next
	}
	return missing
}

// A kernel that cannot repeat anything: its numbers show how much is missing.
func TestBreakWithoutRecovery(t *testing.T) {
	t.Parallel()
	k, _ := fakeKernel(t, printed(300, map[int]func(*fakegateway.Cell){
		100: func(c *fakegateway.Cell) { c.Kernel.Swallow(true, false) },
		120: away,
		200: away,
	}))
	r, out := run(t, k, "print")
	require.Equal(t, jupyter.ReplyOK, r.Status)
	require.Equal(t, 20, requireTold(t, out, 300))
	// An answer to the client itself may still be on its way, and is counted then.
	require.Regexp(t, `^up to 2[0-3] messages were lost when the connection to the server broke$`, r.Incomplete)
	require.Regexp(t, `^up to 2[0-3] messages of the kernel are missing here, after output 100 of the cell: `, notices(out)[0].Text)
}

// A reply that was swallowed is not waited for for ever, and not made up.
func TestReplyLostWithoutRecovery(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	k, fk := fakeKernel(t, fakegateway.Options{Execute: func(c *fakegateway.Cell) {
		c.Begin()
		c.Stream("stdout", "a")
		c.Kernel.Swallow(true, false)
		c.Reply("ok", nil)
		c.Status("idle")
		close(release)
	}})
	end := inBackground(t, k, jupyter.ExecuteRequest{Code: "x"}, nil)
	await(t, release)
	fk.Drop()
	f := await(t, end)
	require.ErrorIs(t, f.err, jupyter.ErrNoReply)
	require.True(t, f.reply.Broken)
	require.NotEmpty(t, f.reply.Incomplete)
	require.NoError(t, k.Err())
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

// A kernel that was replaced while nobody listened is lost.
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
