package jupyter_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/messages"
)

// The everyday things, on one kernel of a real gateway.
func TestRealKernel(t *testing.T) {
	t.Parallel()
	k := realKernel(t)
	require.Equal(t, "python", k.Info().Language)
	require.NotEmpty(t, k.Info().LanguageVersion)

	r, out := run(t, k, "1+1")
	require.Equal(t, jupyter.ReplyOK, r.Status)
	require.Len(t, out.list(), 1)
	require.Equal(t, messages.RawJSON(`"2"`), out.list()[0].(messages.ExecuteResult).Data["text/plain"])

	_, out = run(t, k, "import sys\nprint('grüße')\nprint('oh', file=sys.stderr)")
	require.Equal(t, "grüße\n", out.text("stdout"))
	require.Equal(t, "oh\n", out.text("stderr"))

	r, out = run(t, k, "1/0")
	require.Equal(t, jupyter.ReplyError, r.Status)
	require.Equal(t, "ZeroDivisionError", r.Error.Name)
	require.Equal(t, "division by zero", r.Error.Message)
	require.NotEmpty(t, r.Error.Traceback)
	require.Equal(t, messages.Error{ErrorDetails: *r.Error}, out.list()[0])

	_, out = run(t, k, strings.Join([]string{
		"from IPython.display import display, HTML, JSON, clear_output",
		"h = display(HTML('<b>'), display_id='d')", "h.update(HTML('<i>'))",
		"display(JSON({'a': [1, None]}))", "clear_output(wait=True)",
	}, "\n"))
	all := out.list()
	require.Len(t, all, 4)
	require.Equal(t, "d", all[0].(messages.Display).DisplayID)
	require.True(t, all[1].(messages.Display).Update)
	require.JSONEq(t, `{"a":[1,null]}`, string(all[2].(messages.Display).Data["application/json"]))
	require.Equal(t, messages.ClearOutput{Wait: true}, all[3])

	_, out = run(t, k, "len?")
	require.Contains(t, string(out.list()[0].(messages.Display).Data["text/plain"]), "Signature", "a pager's text is output")

	reply, err := k.Execute(within(t), jupyter.ExecuteRequest{
		Code: "x = 6", Silent: true, UserExpressions: map[string]string{"good": "x * 7", "bad": "y"},
	}, nil)
	require.NoError(t, err)
	require.Equal(t, messages.RawJSON(`"42"`), reply.UserExpressions["good"].Data["text/plain"])
	require.Equal(t, "NameError", reply.UserExpressions["bad"].Error.Name)
	require.NoError(t, k.Err())
}

func TestRealInput(t *testing.T) {
	t.Parallel()
	k := realKernel(t)
	out := &outputs{}
	r, err := k.Execute(within(t), jupyter.ExecuteRequest{Code: "print(input('name? ') * 2)", AllowStdin: true},
		func(ctx context.Context, o messages.Event) error {
			if q, ok := o.(messages.InputRequest); ok {
				require.Equal(t, "name? ", q.Prompt)
				return k.Input(ctx, "Ada")
			}
			return out.emit(ctx, o)
		})
	require.NoError(t, err)
	require.Equal(t, jupyter.ReplyOK, r.Status)
	require.Equal(t, "AdaAda\n", out.text("stdout"))

	r, _ = run(t, k, "input()")
	require.Equal(t, "StdinNotImplementedError", r.Error.Name)
}

// Python code, a C call that heeds signals, and a wait in await.
func TestRealInterrupt(t *testing.T) {
	t.Parallel()
	k := realKernel(t)
	for code, want := range map[string]string{
		"while True: pass":           "KeyboardInterrupt",
		"time.sleep(100)":            "KeyboardInterrupt",
		"await asyncio.sleep(100)":   "CancelledError",
		"input()":                    "KeyboardInterrupt",
		"threading.Event().wait(99)": "KeyboardInterrupt",
	} {
		for range 3 {
			begun := make(chan struct{})
			first := true
			end := inBackground(t, k, jupyter.ExecuteRequest{
				Code:       "import time, asyncio, threading\nprint('begun', flush=True)\n" + code,
				AllowStdin: true,
			}, func(context.Context, messages.Event) error {
				if first {
					first = false
					close(begun)
				}
				return nil
			})
			await(t, begun)
			require.NoError(t, k.Ping(within(t)), "busy is alive")
			sent := time.Now()
			require.NoError(t, k.Interrupt(within(t)))
			// One that comes while ipykernel flushes its streams can be swallowed.
			again := time.AfterFunc(2*time.Second, func() { _ = k.Interrupt(context.WithoutCancel(t.Context())) })
			f := await(t, end)
			again.Stop()
			require.NoError(t, f.err, code)
			require.NotNil(t, f.reply.Error, code)
			require.Equal(t, want, f.reply.Error.Name, code)
			t.Logf("%-28s %s", code, time.Since(sent).Round(time.Millisecond))
		}
	}
	run(t, k, "1")
}

// An interrupt that comes with the request itself is not lost.
func TestRealInterruptAtOnce(t *testing.T) {
	t.Parallel()
	k := realKernel(t)
	for range 5 {
		end := inBackground(t, k, jupyter.ExecuteRequest{Code: "while True: pass"}, nil)
		require.NoError(t, k.Interrupt(within(t)))
		// One that comes before the code is swallowed. Those that follow should not find ipykernel
		// where it ends the cell, which it would take for the end of itself: they come slower and slower.
		wait := 200 * time.Millisecond
		again := time.NewTimer(wait)
		f := func() finished {
			defer again.Stop()
			over := time.After(patience)
			for {
				select {
				case f := <-end:
					return f
				case <-again.C:
					require.NoError(t, k.Interrupt(within(t)))
					wait *= 2
					again.Reset(wait)
				case <-over:
					require.FailNow(t, "no interrupt arrived")
				}
			}
		}()
		if f.err != nil {
			// The signal came between the kernel's first word and the code.
			require.ErrorIs(t, f.err, jupyter.ErrNoReply)
		}
		r, _ := run(t, k, "1")
		require.Equal(t, jupyter.ReplyOK, r.Status, "the next execution is not hit")
	}
}

func TestRealDeath(t *testing.T) {
	t.Parallel()
	k := realKernel(t)
	out := &outputs{}
	var killed time.Time
	_, err := k.Execute(within(t), jupyter.ExecuteRequest{
		Code: "import os, signal, time\nprint('last words', flush=True)\ntime.sleep(0.2)\nos.kill(os.getpid(), signal.SIGKILL)",
	}, func(ctx context.Context, o messages.Event) error {
		killed = time.Now().Add(200 * time.Millisecond)
		return out.emit(ctx, o)
	})
	took := time.Since(killed)
	_ = requireLost(t, k, err, false)
	require.Equal(t, "last words\n", out.text("stdout"))
	t.Logf("told %s after the death", took.Round(time.Millisecond))
	require.NoError(t, k.Delete(within(t)))
}

func TestRealExit(t *testing.T) {
	t.Parallel()
	k := realKernel(t)
	r, out := run(t, k, "print('bye')\nexit()")
	require.True(t, r.Exited)
	require.Equal(t, jupyter.ReplyOK, r.Status)
	require.Equal(t, "bye\n", out.text("stdout"))
	_, err := k.Execute(within(t), jupyter.ExecuteRequest{Code: "1"}, nil)
	_ = requireLost(t, k, err, false)
}

// A kernel that somebody else deletes is noticed although the server leaves
// the connection open and says nothing.
func TestRealDeletedByOthers(t *testing.T) {
	t.Parallel()
	c := realClient(t)
	k := startKernel(t, c)
	require.NoError(t, c.Delete(within(t), k.ID()))
	if err := k.Ping(within(t)); err == nil {
		require.Fail(t, "a deleted kernel does not answer")
	}
	await(t, k.Done())
	require.NoError(t, k.Delete(within(t)))
}

// Nothing of a flood is lost, not even when it is not taken for two seconds.
func TestRealFlood(t *testing.T) {
	t.Parallel()
	c, err := jupyter.NewClient(jupyter.Options{
		URL: realClient(t).URL(), Token: realGateway.token, SpoolMemory: 64 << 10, SpoolDir: t.TempDir(),
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	k := startKernel(t, c)

	const n = 100_000
	check := func(code string, n int, hold time.Duration) {
		var got strings.Builder
		released := time.Now().Add(hold)
		r, err := k.Execute(within(t), jupyter.ExecuteRequest{Code: code}, func(_ context.Context, o messages.Event) error {
			<-time.After(time.Until(released))
			got.WriteString(o.(messages.Stream).Text)
			return nil
		})
		require.NoError(t, err)
		require.Empty(t, r.Incomplete)
		lines := strings.Split(strings.TrimSuffix(got.String(), "\n"), "\n")
		require.Len(t, lines, n)
		for i, l := range lines {
			if l != fmt.Sprint(i) {
				require.Equal(t, fmt.Sprint(i), l)
			}
		}
	}
	check(fmt.Sprintf("for i in range(%d): print(i)", n), n, 0)
	check("for i in range(6000): print(i, flush=True)", 6000, 2*time.Second)
}

// A start that is cancelled in the middle leaves nothing, on a server that
// takes half a second for a kernel to come up.
func TestRealStartCancelled(t *testing.T) {
	t.Parallel()
	c := realClient(t)
	ctx, cancel := context.WithCancel(within(t))
	_, err := c.Start(ctx, jupyter.StartRequest{OnStage: func(s string) {
		if s == jupyter.StageConnect {
			cancel()
		}
	}})
	require.ErrorIs(t, err, context.Canceled)
	require.NotContains(t, err.Error(), "left behind")

	_, err = c.Start(within(t), jupyter.StartRequest{Name: "no-such-kernel"})
	var status *jupyter.StatusError
	require.ErrorAs(t, err, &status)
	require.Equal(t, 500, status.Code)
}
