package jupyter_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/fakegateway"
)

// posted waits until the server has got so many interrupts.
func posted(t *testing.T, s *fakegateway.Server, k *jupyter.Kernel, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		got := 0
		for _, r := range s.Requests() {
			if r == "POST /api/kernels/"+k.ID()+"/interrupt" {
				got++
			}
		}
		return got >= n
	}, patience, tick)
}

// An interrupt is on its way when its caller leaves and the code ends by itself:
// the next code waits until it has landed.
func TestAnInterruptThatIsHeldUp(t *testing.T) {
	t.Parallel()
	finish := make(chan struct{}, 1)
	hit := make(chan bool, 1)
	s, c := fake(t, fakegateway.Options{Execute: func(c *fakegateway.Cell) {
		c.Begin()
		if c.Code == "next" {
			select {
			case <-c.Interrupted():
				hit <- true
			case <-time.After(20 * time.Millisecond): // it would have come with the one before
				hit <- false
			}
		} else {
			<-finish
		}
		c.Reply("ok", nil)
		c.Status("idle")
	}})
	k := startKernel(t, c)
	for round := 1; round <= 3; round++ {
		hold := make(chan struct{})
		s.Set(func(f *fakegateway.Faults) { f.HoldInterrupt = hold })
		end := inBackground(t, k, jupyter.ExecuteRequest{Code: "first"}, nil)
		ctx, leave := context.WithCancel(t.Context())
		asked := make(chan error, 2)
		for range 2 { // the second waits for the first, and must never hit the next code
			require.Eventually(t, k.Running, patience, tick)
			go func() { asked <- k.Interrupt(ctx) }()
		}
		posted(t, s, k, round)
		leave()
		require.ErrorIs(t, await(t, asked), context.Canceled)
		require.ErrorIs(t, await(t, asked), context.Canceled)
		finish <- struct{}{}
		require.NoError(t, await(t, end).err)
		end = inBackground(t, k, jupyter.ExecuteRequest{Code: "next"}, nil)
		select {
		case <-end:
			require.FailNow(t, "the next code ran while an interrupt was on its way")
		case <-time.After(20 * time.Millisecond):
		}
		close(hold)
		f := await(t, end)
		require.NoError(t, f.err)
		require.False(t, f.reply.Stray)
		require.False(t, await(t, hit))
	}
	require.Equal(t, 0, s.Live()[0].Received("interrupt_request"))
}

// The server has answered, and the signal waits in the kernel.
func TestAnInterruptThatWaitsInTheKernel(t *testing.T) {
	t.Parallel()
	finish := make(chan struct{})
	s, c := fake(t, fakegateway.Options{Execute: func(c *fakegateway.Cell) {
		if c.Code != "first" {
			c.Serve()
			return
		}
		c.Begin()
		<-finish
		c.Reply("ok", nil)
		c.Status("idle")
	}}, func(o *jupyter.Options) { o.Settle = patience })
	k := startKernel(t, c)
	end := inBackground(t, k, jupyter.ExecuteRequest{Code: "first"}, nil)
	require.Eventually(t, k.Running, patience, tick)
	s.Set(func(f *fakegateway.Faults) { f.PendInterrupt = true })
	require.NoError(t, k.Interrupt(within(t)))
	close(finish)
	require.NoError(t, await(t, end).err)
	require.Eventually(t, func() bool { return s.Live()[0].Received("kernel_info_request") >= 2 }, patience, tick)
	require.NoError(t, k.Interrupt(within(t)), "nothing runs")
	r, _ := run(t, k, "out a")
	require.Equal(t, jupyter.ReplyOK, r.Status)
}

// A kernel that gets no processor after an interrupt gets no code either.
func TestAnInterruptOfAKernelThatIsSlow(t *testing.T) {
	t.Parallel()
	finish := make(chan struct{})
	s, c := fake(t, fakegateway.Options{Execute: func(c *fakegateway.Cell) {
		c.Begin()
		<-finish
		c.Reply("ok", nil)
		c.Status("idle")
	}})
	k := startKernel(t, c)
	fk := s.Live()[0]
	end := inBackground(t, k, jupyter.ExecuteRequest{Code: "first"}, nil)
	require.Eventually(t, k.Running, patience, tick)
	asked := fk.Received("kernel_info_request")
	require.NoError(t, k.Interrupt(within(t)))
	close(finish)
	require.NoError(t, await(t, end).err)
	// What wakes the kernel up after the interrupt comes in its own time.
	require.Eventually(t, func() bool { return fk.Received("kernel_info_request") > asked }, patience, tick)
	fk.Swallow(false, true)
	ctx, leave := context.WithCancel(t.Context())
	next := make(chan error, 1)
	go func() {
		_, err := k.Execute(ctx, jupyter.ExecuteRequest{Code: "next"}, nil)
		next <- err
	}()
	// A start, or a look at what is missing, may have asked as well: there is no right number.
	require.Eventually(t, func() bool { return fk.Swallowed("kernel_info_request") >= 2 }, patience, tick, "it is asked on both channels")
	require.Never(t, func() bool { return fk.Swallowed("execute_request") > 0 }, 2500*time.Millisecond, tick, "it is given no code before it has answered")
	leave()
	require.ErrorIs(t, await(t, next), context.Canceled)
}

// A server that never answers an interrupt, and one that carries it out when it is not
// expected any more.
func TestAStrayInterrupt(t *testing.T) {
	t.Parallel()
	for _, mute := range []bool{false, true} {
		t.Run(map[bool]string{false: "answered", true: "never answered"}[mute], func(t *testing.T) {
			t.Parallel()
			s, c := fake(t, fakegateway.Options{}, func(o *jupyter.Options) { o.RequestTimeout = 100 * time.Millisecond })
			k := startKernel(t, c)
			fk := s.Live()[0]
			r, _ := run(t, k, "raise KeyboardInterrupt mine")
			require.False(t, r.Stray, "nothing was ever interrupted")

			if mute {
				s.Set(func(f *fakegateway.Faults) { f.HoldInterrupt = make(chan struct{}) })
			}
			end, _ := running(t, k)
			require.NoError(t, k.Interrupt(within(t)), "the control channel does it")
			f := await(t, end)
			require.Equal(t, "KeyboardInterrupt", f.reply.Error.Name)
			require.False(t, f.reply.Stray)

			out := &outputs{}
			begun := make(chan struct{}, 8)
			end = inBackground(t, k, jupyter.ExecuteRequest{Code: "out a\nblock"}, func(ctx context.Context, o messages.Event) error {
				begun <- struct{}{}
				return out.emit(ctx, o)
			})
			await(t, begun)
			fk.Interrupt()
			f = await(t, end)
			require.NoError(t, f.err)
			require.True(t, f.reply.Stray)
			last := out.list()[len(out.list())-1]
			require.Equal(t, jupyter.NoticeStray, last.(messages.Notice).Code)
			r, _ = run(t, k, "raise ValueError")
			require.False(t, r.Stray)
		})
	}
}

// A late interrupt swallowed the request: code that has certainly not begun is
// sent again, and other code is not.
func TestARequestThatAnInterruptSwallowed(t *testing.T) {
	t.Parallel()
	for _, begins := range []bool{false, true} {
		t.Run(map[bool]string{false: "before it began", true: "when it had begun"}[begins], func(t *testing.T) {
			t.Parallel()
			runs := 0
			_, c := fake(t, fakegateway.Options{Execute: func(c *fakegateway.Cell) {
				if c.Code == "swallowed" {
					if runs++; runs == 1 {
						c.Status("busy")
						if begins {
							c.Publish("execute_input", map[string]any{"code": c.Code})
						}
						c.Status("idle")
						return
					}
				}
				c.Serve()
			}})
			k := startKernel(t, c)
			end, _ := running(t, k)
			require.NoError(t, k.Interrupt(within(t)))
			require.NoError(t, await(t, end).err)

			f := await(t, inBackground(t, k, jupyter.ExecuteRequest{Code: "swallowed"}, nil))
			if begins {
				require.ErrorIs(t, f.err, jupyter.ErrNoReply)
				require.True(t, f.reply.Stray)
				require.Equal(t, 1, runs)
				return
			}
			require.NoError(t, f.err)
			require.Equal(t, jupyter.ReplyOK, f.reply.Status)
			require.Equal(t, 2, runs)
		})
	}
}

// Deleting a kernel ends what waits for a server that never answers.
func TestDeleteWhileAnInterruptIsHeldUp(t *testing.T) {
	t.Parallel()
	s, c := fake(t, fakegateway.Options{Faults: fakegateway.Faults{HoldInterrupt: make(chan struct{})}})
	k := startKernel(t, c)
	end, _ := running(t, k)
	asked := make(chan error, 1)
	go func() { asked <- k.Interrupt(within(t)) }()
	posted(t, s, k, 1)
	require.NoError(t, k.Delete(within(t)))
	require.Error(t, await(t, asked))
	var lost *jupyter.LostError
	require.ErrorAs(t, await(t, end).err, &lost)
}
