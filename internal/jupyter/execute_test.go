package jupyter_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/fakegateway"
)

// Both framings carry every kind of output.
func TestOutputs(t *testing.T) {
	t.Parallel()
	for _, legacy := range []bool{false, true} {
		t.Run(fmt.Sprintf("legacy=%v", legacy), func(t *testing.T) {
			t.Parallel()
			k, _ := fakeKernel(t, fakegateway.Options{Legacy: legacy, Execute: func(c *fakegateway.Cell) {
				c.Begin()
				c.Stream("stdout", "grüße\n")
				c.Stream("stderr", "oh\n")
				c.Display(map[string]any{"text/html": "<b>", "application/json": map[string]any{"a": 1}}, "d1")
				c.Publish("update_display_data", map[string]any{
					"data": map[string]any{"text/html": "<i>"}, "metadata": map[string]any{"k": 1}, "transient": map[string]any{"display_id": "d1"},
				})
				c.Publish("clear_output", map[string]any{"wait": true})
				c.Publish("comm_open", map[string]any{"x": 1})
				c.Publish("debug_event", map[string]any{})
				c.Result("2")
				c.Publish("execute_result", map[string]any{
					"data": map[string]any{"text/plain": "3"}, "metadata": map[string]any{}, "transient": map[string]any{"display_id": "value"},
				})
				c.Error("ValueError", "no")
				c.ReplyError("ValueError", "no")
				c.Status("idle")
			}})
			r, out := run(t, k, "x")
			raised := messages.ErrorDetails{Name: "ValueError", Message: "no", Traceback: []string{"Traceback (fake)", "ValueError: no"}}
			want := []messages.Event{
				messages.Stream{Name: "stdout", Text: "grüße\n"},
				messages.Stream{Name: "stderr", Text: "oh\n"},
				messages.Display{Data: messages.Bundle{"text/html": messages.RawJSON(`"\u003cb\u003e"`), "application/json": messages.RawJSON(`{"a":1}`)}, DisplayID: "d1"},
				messages.Display{Data: messages.Bundle{"text/html": messages.RawJSON(`"\u003ci\u003e"`)}, Metadata: messages.RawJSON(`{"k":1}`), DisplayID: "d1", Update: true},
				messages.ClearOutput{Wait: true},
				messages.ExecuteResult{Data: messages.Bundle{"text/plain": messages.RawJSON(`"2"`)}},
				messages.ExecuteResult{Data: messages.Bundle{"text/plain": messages.RawJSON(`"3"`)}, DisplayID: "value"},
				messages.Error{ErrorDetails: raised},
			}
			require.Empty(t, cmp.Diff(want, out.list()))
			require.Equal(t, jupyter.ReplyError, r.Status)
			require.Equal(t, &raised, r.Error)
			require.Empty(t, r.Incomplete)
			require.Positive(t, r.Duration)
			require.NoError(t, k.Err())
		})
	}
}

func TestRequestFields(t *testing.T) {
	t.Parallel()
	seen := make(chan map[string]any, 2)
	k, _ := fakeKernel(t, fakegateway.Options{Execute: func(c *fakegateway.Cell) {
		seen <- c.Request
		c.Serve()
	}})
	ctx := within(t)
	none := func(context.Context, messages.Event) error { return nil }
	_, err := k.Execute(ctx, jupyter.ExecuteRequest{Code: "a"}, none)
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"code": "a", "silent": false, "store_history": false, "user_expressions": map[string]any{},
		"allow_stdin": false, "stop_on_error": true,
	}, <-seen)
	_, err = k.Execute(ctx, jupyter.ExecuteRequest{
		Code: "b", Silent: true, StoreHistory: true, AllowStdin: true, ContinueOnError: true,
		UserExpressions: map[string]string{"x": "1"},
	}, none)
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"code": "b", "silent": true, "store_history": false, "user_expressions": map[string]any{"x": "1"},
		"allow_stdin": true, "stop_on_error": false,
	}, <-seen)
}

// The reply and the idle come in either order, and output may lie between.
func TestCompletionOrders(t *testing.T) {
	t.Parallel()
	ok := func(c *fakegateway.Cell) { c.Reply("ok", nil) }
	idle := func(c *fakegateway.Cell) { c.Status("idle") }
	late := func(c *fakegateway.Cell) { c.Stream("stdout", "late") }
	for name, steps := range map[string][]func(*fakegateway.Cell){
		"reply, idle":          {late, ok, idle},
		"idle, reply":          {late, idle, ok},
		"reply, output, idle":  {ok, late, idle},
		"idle, output, reply":  {idle, late, ok},
		"no busy and no input": {func(c *fakegateway.Cell) {}, late, ok, idle},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, _ := fakeKernel(t, fakegateway.Options{Execute: func(c *fakegateway.Cell) {
				for _, s := range steps {
					s(c)
				}
			}})
			for range 3 {
				r, out := run(t, k, "x")
				require.Equal(t, jupyter.ReplyOK, r.Status)
				require.Equal(t, "late", out.text("stdout"))
				require.Empty(t, r.Incomplete)
			}
		})
	}
}

func TestReplyWithoutIdleIsIncomplete(t *testing.T) {
	t.Parallel()
	k, _ := fakeKernel(t, fakegateway.Options{Execute: func(c *fakegateway.Cell) {
		c.Begin()
		c.Stream("stdout", "a")
		c.Reply("ok", nil)
	}})
	r, out := run(t, k, "x")
	require.Equal(t, jupyter.ReplyOK, r.Status)
	require.NotEmpty(t, r.Incomplete)
	all := out.list()
	require.Len(t, all, 2)
	require.Equal(t, messages.Notice{Code: jupyter.NoticeIncomplete, Text: r.Incomplete}, all[1])
	require.NoError(t, k.Err(), "the kernel lives on")
}

// iopub brings nothing any more, not even the idle of the probes.
func TestReplyWithoutIdleAndDeafIOPub(t *testing.T) {
	t.Parallel()
	s, c := fake(t, fakegateway.Options{Execute: func(c *fakegateway.Cell) { c.Reply("ok", nil) }})
	k := startKernel(t, c)
	s.Live()[0].LoseIdle(100)
	r, _ := run(t, k, "x")
	require.NotEmpty(t, r.Incomplete)
}

func TestIdleWithoutReply(t *testing.T) {
	t.Parallel()
	k, _ := fakeKernel(t, fakegateway.Options{Execute: func(c *fakegateway.Cell) {
		if c.Code == "broken" {
			c.Begin()
			c.Error("KeyboardInterrupt", "")
			c.Status("idle")
			return
		}
		c.Serve()
	}})
	r, err := k.Execute(within(t), jupyter.ExecuteRequest{Code: "broken"}, (&outputs{}).emit)
	require.ErrorIs(t, err, jupyter.ErrNoReply)
	require.Equal(t, "KeyboardInterrupt", r.Error.Name)
	require.Empty(t, r.Status)
	_, out := run(t, k, "out next")
	require.Equal(t, "next\n", out.text("stdout"))
}

func TestAborted(t *testing.T) {
	t.Parallel()
	k, _ := fakeKernel(t, fakegateway.Options{Execute: func(c *fakegateway.Cell) {
		c.Status("busy")
		c.Reply("aborted", nil)
		c.Status("idle")
	}})
	r, _ := run(t, k, "x")
	require.Equal(t, jupyter.ReplyAborted, r.Status)
	require.Nil(t, r.Error)
}

func TestPayloadsAndExpressions(t *testing.T) {
	t.Parallel()
	k, _ := fakeKernel(t, fakegateway.Options{Execute: func(c *fakegateway.Cell) {
		c.Begin()
		c.Reply("ok", map[string]any{
			"payload": []any{
				map[string]any{"source": "page", "data": map[string]any{"text/plain": "help"}, "start": 0},
				map[string]any{"source": "set_next_input", "text": "y"},
				map[string]any{"source": "ask_exit", "keepkernel": true},
			},
			"user_expressions": map[string]any{
				"good": map[string]any{"status": "ok", "data": map[string]any{"text/plain": "1"}, "metadata": map[string]any{}},
				"bad":  map[string]any{"status": "error", "ename": "NameError", "evalue": "x", "traceback": []string{}},
			},
		})
		c.Status("idle")
	}})
	r, out := run(t, k, "x")
	require.False(t, r.Exited, "it wants the kernel to be kept")
	require.Equal(t, []messages.Event{messages.Display{Data: messages.Bundle{"text/plain": messages.RawJSON(`"help"`)}}}, out.list())
	require.Equal(t, messages.RawJSON(`"1"`), r.UserExpressions["good"].Data["text/plain"])
	require.Equal(t, "NameError", r.UserExpressions["bad"].Error.Name)
}

func TestExitIsToldAndLosesTheKernel(t *testing.T) {
	t.Parallel()
	k, _ := fakeKernel(t, fakegateway.Options{})
	r, _ := run(t, k, "exit")
	require.True(t, r.Exited)
	await(t, k.Done())
	_, err := k.Execute(within(t), jupyter.ExecuteRequest{Code: "x"}, nil)
	_ = requireLost(t, k, err, false)
}

func TestRateLimitIsNoticed(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"IOPub data rate exceeded.\nThe Jupyter server", "IOPub message rate exceeded.\nThe"} {
		k, _ := fakeKernel(t, fakegateway.Options{Execute: func(c *fakegateway.Cell) {
			c.Begin()
			c.Stream("stdout", "a")
			c.Kernel.Announce("stream", c.Header(), map[string]any{"name": "stderr", "text": text})
			c.Stream("stdout", "b")
			// The same words from the user's own code are output as any other.
			c.Stream("stderr", text)
			c.Reply("ok", nil)
			c.Status("idle")
		}})
		r, out := run(t, k, "x")
		require.Contains(t, r.Incomplete, "rate limit")
		all := out.list()
		require.Len(t, all, 4)
		notice, ok := all[1].(messages.Notice)
		require.True(t, ok)
		require.Equal(t, jupyter.NoticeRateLimited, notice.Code)
		require.Equal(t, messages.Stream{Name: "stderr", Text: text}, all[3])
	}
}

// The numbers of the messages show that some are missing. Pings, whose answers
// are numbered too, do not; and with a second client nothing can be said, nor when the
// server asks in our name: it hears the replies on sockets of its own.
func TestDroppedMessagesAreNoticed(t *testing.T) {
	t.Parallel()
	stranger := map[string]any{"msg_id": "other", "session": "somebody"}
	k, _ := fakeKernel(t, fakegateway.Options{Execute: func(c *fakegateway.Cell) {
		c.Begin()
		c.Stream("stdout", "a")
		if c.Code != "whole" {
			c.Drop(7)
		}
		if c.Code == "stranger" {
			c.Kernel.Publish("status", stranger, map[string]any{"execution_state": "busy"})
		}
		if c.Code == "server" {
			session, _ := c.Header()["session"].(string)
			c.Kernel.Publish("status", map[string]any{"msg_id": session + "_31415_2", "session": session, "msg_type": "kernel_info_request"}, map[string]any{"execution_state": "idle"})
		}
		c.Reply("ok", nil)
		c.Status("idle")
	}})
	for _, code := range []string{"whole", "drops", "whole", "stranger", "server", "drops"} {
		require.NoError(t, k.Ping(within(t)))
		r, out := run(t, k, code)
		if code != "drops" {
			require.Empty(t, r.Incomplete, code)
			require.Len(t, out.list(), 1)
			continue
		}
		require.Equal(t, "7 messages of the kernel never arrived", r.Incomplete)
		require.Equal(t, messages.Notice{Code: jupyter.NoticeDropped, Text: r.Incomplete}, out.list()[1])
	}
	require.EqualValues(t, 14, k.Stats().Dropped)
}

func TestMalformedOutputIsLeftOutAndTold(t *testing.T) {
	t.Parallel()
	k, _ := fakeKernel(t, fakegateway.Options{Execute: func(c *fakegateway.Cell) {
		c.Begin()
		c.Publish("stream", map[string]any{"name": 7})
		c.Publish("display_data", map[string]any{})
		c.Stream("stdout", "b")
		c.Reply("ok", nil)
		c.Status("idle")
	}})
	r, out := run(t, k, "x")
	require.Contains(t, r.Incomplete, "2 outputs")
	require.Len(t, out.list(), 3)
	require.Equal(t, "b", out.text("stdout"))
}

// Unparented messages and those for other clients do not count, whatever they
// claim; the kernel does not end a cell by an idle of somebody else's.
func TestForeignMessagesAreIgnored(t *testing.T) {
	t.Parallel()
	k, _ := fakeKernel(t, fakegateway.Options{Execute: func(c *fakegateway.Cell) {
		other := map[string]any{"msg_id": "other", "session": "somebody"}
		c.Begin()
		c.Kernel.Publish("status", nil, map[string]any{"execution_state": "idle"})
		c.Kernel.Publish("status", other, map[string]any{"execution_state": "idle"})
		c.Kernel.Publish("stream", other, map[string]any{"name": "stdout", "text": "theirs"})
		c.Kernel.Publish("stream", nil, map[string]any{"name": "stderr", "text": "debugger warning"})
		c.Kernel.Publish("iopub_welcome", nil, map[string]any{})
		c.Stream("stdout", "ours")
		c.Reply("ok", nil)
		c.Status("idle")
	}})
	_, out := run(t, k, "x")
	require.Equal(t, []messages.Event{messages.Stream{Name: "stdout", Text: "ours"}}, out.list())
	require.GreaterOrEqual(t, k.Stats().Foreign, int64(5))
}

// What a thread prints after its cell has ended belongs to no cell.
func TestLateOutputIsCountedAndDropped(t *testing.T) {
	t.Parallel()
	var first map[string]any
	k, _ := fakeKernel(t, fakegateway.Options{Execute: func(c *fakegateway.Cell) {
		if first == nil {
			first = c.Header()
		} else {
			c.Kernel.Publish("stream", first, map[string]any{"name": "stdout", "text": "late"})
		}
		c.Serve()
	}})
	run(t, k, "out a")
	_, out := run(t, k, "out b")
	require.Equal(t, "b\n", out.text("stdout"))
	require.EqualValues(t, 1, k.Stats().Background)
	require.Positive(t, k.Stats().BackgroundBytes)
}
