package jupyter_test

import (
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
// order, and without a notice.
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

// What the kernel has forgotten is reported where it is missing.
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
					require.True(t, told, "lines %d to %d are missing, and no notice says so", next, i-1)
					missing += i - next
				}
				next, told = i+1, false
			}
		}
	}
	if next < n {
		require.True(t, told, "the lines from %d on are missing, and no notice says so", next)
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
	// A connection that breaks may take along what was sent just before.
	missing, upTo := requireTold(t, out, 300), 0
	require.GreaterOrEqual(t, missing, 20)
	require.Regexp(t, `^up to [0-9]+ messages were lost when the connection to the server broke$`, r.Incomplete)
	_, err := fmt.Sscanf(r.Incomplete, "up to %d", &upTo)
	require.NoError(t, err)
	// An answer to the client itself may still be on its way at a break, and is counted then.
	require.GreaterOrEqual(t, upTo, missing)
	require.LessOrEqual(t, upTo, missing+6)
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
