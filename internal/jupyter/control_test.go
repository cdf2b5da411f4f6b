package jupyter_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/fakegateway"
)

func TestInterrupt(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"block", "await"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			var hit atomic.Int32
			k, _ := fakeKernel(t, fakegateway.Options{Execute: func(c *fakegateway.Cell) {
				c.Serve()
				select {
				case <-c.Interrupted():
					if c.Code == "innocent" {
						hit.Add(1)
					}
				default:
				}
			}})
			// At once after the request was sent, and repeatedly while it ends:
			// an interrupt must neither be lost before the code begins nor hit
			// the next code.
			for range 10 {
				end := inBackground(t, k, jupyter.ExecuteRequest{Code: "out a\n" + code}, nil)
				var f finished
				for f.reply.Status == "" {
					require.NoError(t, k.Interrupt(within(t)))
					select {
					case f = <-end:
						require.NoError(t, f.err)
					default:
					}
				}
				require.Equal(t, "KeyboardInterrupt", f.reply.Error.Name)
				run(t, k, "innocent")
			}
			require.NoError(t, k.Interrupt(within(t)), "nothing runs")
			require.Zero(t, hit.Load())
		})
	}
}

// The server cannot interrupt: the kernel is asked itself.
func TestInterruptByMessage(t *testing.T) {
	t.Parallel()
	s, c := fake(t, fakegateway.Options{})
	k := startKernel(t, c)
	s.Set(func(f *fakegateway.Faults) { f.Status = map[string]int{"interrupt": 500} })
	end, _ := running(t, k)
	require.NoError(t, k.Interrupt(within(t)))
	f := await(t, end)
	require.Equal(t, "KeyboardInterrupt", f.reply.Error.Name)
	require.Equal(t, 1, s.Live()[0].Received("interrupt_request"))
}

// Neither the server nor the kernel can be reached.
func TestInterruptFails(t *testing.T) {
	t.Parallel()
	s, c := fake(t, fakegateway.Options{})
	k := startKernel(t, c)
	end, _ := running(t, k)
	s.Set(func(f *fakegateway.Faults) { f.Status = map[string]int{"interrupt": 500} })
	s.Live()[0].Freeze()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, k.Interrupt(ctx), context.DeadlineExceeded)
	require.NoError(t, k.Delete(within(t)))
	require.Error(t, await(t, end).err)
}

func TestInterruptOfAVanishedKernel(t *testing.T) {
	t.Parallel()
	k, fk := fakeKernel(t, fakegateway.Options{})
	end, _ := running(t, k)
	fk.Vanish()
	_ = requireLost(t, k, k.Interrupt(within(t)), false)
	_ = requireLost(t, k, await(t, end).err, false)
}

func TestInput(t *testing.T) {
	t.Parallel()
	k, _ := fakeKernel(t, fakegateway.Options{})
	require.ErrorIs(t, k.Input(within(t), "x"), jupyter.ErrNoInput)

	out := &outputs{}
	asked := make(chan messages.InputRequest, 1)
	end := inBackground(t, k, jupyter.ExecuteRequest{Code: "ask name: ", AllowStdin: true}, func(ctx context.Context, o messages.Event) error {
		if r, ok := o.(messages.InputRequest); ok {
			asked <- r
		}
		return out.emit(ctx, o)
	})
	r := await(t, asked)
	require.Equal(t, "name:", r.Prompt)
	require.NotEmpty(t, r.ID)
	require.NoError(t, k.Input(within(t), "Ada"))
	f := await(t, end)
	require.NoError(t, f.err)
	require.Equal(t, "Ada\n", out.text("stdout"))
	require.ErrorIs(t, k.Input(within(t), "again"), jupyter.ErrNoInput)

	// Without permission the code gets an error at once.
	reply, _ := run(t, k, "ask x")
	require.Equal(t, "StdinNotImplementedError", reply.Error.Name)

	// An interrupt ends the wait.
	end = inBackground(t, k, jupyter.ExecuteRequest{Code: "ask x", AllowStdin: true}, func(_ context.Context, o messages.Event) error {
		if r, ok := o.(messages.InputRequest); ok {
			asked <- r
		}
		return nil
	})
	await(t, asked)
	require.NoError(t, k.Interrupt(within(t)))
	require.Equal(t, "KeyboardInterrupt", await(t, end).reply.Error.Name)
	require.ErrorIs(t, k.Input(within(t), "late"), jupyter.ErrNoInput)
}

func TestPing(t *testing.T) {
	t.Parallel()
	k, fk := fakeKernel(t, fakegateway.Options{})
	require.NoError(t, k.Ping(within(t)))
	end, _ := running(t, k)
	require.NoError(t, k.Ping(within(t)), "busy is alive")
	fk.Vanish()
	_ = requireLost(t, k, k.Ping(within(t)), false)
	_ = requireLost(t, k, await(t, end).err, false)
}

// Output of a frozen kernel that comes late satisfies Ping, and not Answers.
func TestAFrozenKernelThatIsHeardOfLate(t *testing.T) {
	t.Parallel()
	s, c := fake(t, fakegateway.Options{}, func(o *jupyter.Options) { o.RequestTimeout = time.Second })
	k := startKernel(t, c)
	require.NoError(t, k.Answers(within(t)))
	fk := s.Live()[0]
	fk.Swallow(false, true)
	late := func(ask func(context.Context) error) error {
		asked := fk.Swallowed()
		end := make(chan error, 1)
		go func() { end <- ask(within(t)) }()
		require.Eventually(t, func() bool { return fk.Swallowed() > asked }, patience, time.Millisecond)
		fk.Publish("status", nil, map[string]any{"execution_state": "idle"})
		return await(t, end)
	}
	require.NoError(t, late(k.Ping))
	var silent *jupyter.SilentError
	require.ErrorAs(t, late(k.Answers), &silent)
}

// A kernel that is silent while its server vouches for it is not lost.
func TestPingOfASilentKernel(t *testing.T) {
	t.Parallel()
	s, c := fake(t, fakegateway.Options{}, func(o *jupyter.Options) { o.RequestTimeout = time.Second })
	k := startKernel(t, c)
	s.Live()[0].Freeze()
	var silent *jupyter.SilentError
	require.ErrorAs(t, k.Ping(within(t)), &silent)
	require.Equal(t, "idle", silent.State)
	require.NoError(t, k.Err())
}

// A connection that breaks again and again swallows each answer: that says nothing
// of the kernel.
func TestPingOverConnectionsThatBreak(t *testing.T) {
	t.Parallel()
	s, c := fake(t, fakegateway.Options{}, func(o *jupyter.Options) { o.RequestTimeout = time.Second })
	k := startKernel(t, c)
	fk := s.Live()[0]
	fk.Swallow(false, true)
	end := make(chan error, 1)
	ctx := within(t)
	go func() { end <- k.Ping(ctx) }()
	require.Eventually(t, func() bool { return fk.Swallowed() > 0 }, patience, tick)
	fk.Swallow(true, true)
	fk.Drop()
	require.Eventually(t, func() bool {
		fk.Swallow(true, true)
		return k.Stats().Reconnects > 0
	}, patience, time.Millisecond)
	fk.Swallow(true, true)
	var silent *jupyter.SilentError
	if err := await(t, end); err != nil { // an answer may have slipped through
		require.ErrorAs(t, err, &silent)
		require.True(t, silent.Away)
	}
}
