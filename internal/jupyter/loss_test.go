package jupyter_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/fakegateway"
)

// running starts an execution that has printed "a" and goes on for ever.
func running(t *testing.T, k *jupyter.Kernel) (<-chan finished, *outputs) {
	t.Helper()
	out := &outputs{}
	begun := make(chan struct{}, 1)
	end := inBackground(t, k, jupyter.ExecuteRequest{Code: "out a\nblock"}, func(ctx context.Context, o messages.Event) error {
		select {
		case begun <- struct{}{}:
		default:
		}
		return out.emit(ctx, o)
	})
	await(t, begun)
	return end, out
}

// Whatever ends a kernel, the running execution and all later ones learn of it,
// and the output from before is delivered.
func TestLoss(t *testing.T) {
	t.Parallel()
	dead := func(state string) func(*fakegateway.Kernel, *fakegateway.Server) {
		return func(k *fakegateway.Kernel, _ *fakegateway.Server) {
			k.Announce("status", nil, map[string]any{"execution_state": state})
		}
	}
	for name, tc := range map[string]struct {
		happen   func(*fakegateway.Kernel, *fakegateway.Server)
		replaced bool
		reason   string
		change   func(*jupyter.Options)
		ended    bool // somebody tells that the server has
	}{
		"dead status": {happen: dead("dead"), reason: "died"},
		"restarting":  {happen: dead("restarting"), replaced: true, reason: "started a new one"},
		"the server ends": {
			happen: func(_ *fakegateway.Kernel, s *fakegateway.Server) { s.Close() }, reason: "its server is gone",
			change: func(o *jupyter.Options) { o.RefusedFor = 50 * time.Millisecond },
		},
		"the server is known to have ended": {
			happen: func(_ *fakegateway.Kernel, s *fakegateway.Server) { s.Close() }, reason: "its server is gone",
			change: func(o *jupyter.Options) { o.RefusedFor, o.Reconnect = time.Hour, time.Hour }, ended: true,
		},
		"the server ended while it is dialled": {
			happen: func(k *fakegateway.Kernel, s *fakegateway.Server) {
				s.Set(func(f *fakegateway.Faults) { f.Hang = map[string]bool{"channels": true} })
				k.Drop()
			},
			reason: "its server is gone", ended: true,
			change: func(o *jupyter.Options) { o.Reconnect = time.Hour },
		},
		"half open": {
			happen: func(k *fakegateway.Kernel, _ *fakegateway.Server) { k.Freeze() }, reason: "silent",
			change: func(o *jupyter.Options) {
				o.PingEvery, o.Reconnect = 30*time.Millisecond, time.Nanosecond
			},
		},
		"the connection drops for too long": {
			happen: func(k *fakegateway.Kernel, s *fakegateway.Server) {
				s.Set(func(f *fakegateway.Faults) { f.Status = map[string]int{"channels": 502} })
				k.Drop()
			},
			reason: "connection to its server ended",
			change: func(o *jupyter.Options) { o.Reconnect = 200 * time.Millisecond },
		},
		"the server says goodbye for good": {
			happen: func(k *fakegateway.Kernel, s *fakegateway.Server) {
				s.Set(func(f *fakegateway.Faults) { f.Status = map[string]int{"channels": 502} })
				k.Raw(websocket.CloseMessage, websocket.FormatCloseMessage(1011, "secret path"))
			},
			reason: "its server closed the connection",
			change: func(o *jupyter.Options) { o.Reconnect = 200 * time.Millisecond },
		},
		"the kernel is unknown afterwards": {
			happen: func(k *fakegateway.Kernel, _ *fakegateway.Server) { k.Vanish(); k.Drop() },
			reason: "does not know it any more",
		},
		"the token is refused afterwards": {
			happen: func(k *fakegateway.Kernel, s *fakegateway.Server) {
				s.Set(func(f *fakegateway.Faults) { f.Status = map[string]int{"channels": 403} })
				k.Drop()
			},
			reason: "does not accept the token any more",
		},
		"the server restarts it meanwhile": {
			happen: func(k *fakegateway.Kernel, s *fakegateway.Server) {
				s.Set(func(f *fakegateway.Faults) { f.State, f.HoldHandshake = "autorestarting", make(chan struct{}) })
				k.Drop()
			},
			replaced: true, reason: "started a new one",
		},
		"autorestarting": {happen: dead("autorestarting"), replaced: true, reason: "started a new one"},
		"a new process speaks": {
			happen: func(k *fakegateway.Kernel, _ *fakegateway.Server) {
				k.Replace(false)
				k.Publish("iopub_welcome", nil, nil)
			},
			replaced: true, reason: "replaced",
		},
		"starting again": {
			happen: func(k *fakegateway.Kernel, _ *fakegateway.Server) {
				k.Publish("status", nil, map[string]any{"execution_state": "starting"})
			},
			replaced: true, reason: "replaced",
		},
		"restart from outside": {
			happen: func(k *fakegateway.Kernel, _ *fakegateway.Server) {
				k.Publish("shutdown_reply", map[string]any{"msg_id": "server"}, map[string]any{"status": "ok", "restart": true})
			},
			replaced: true, reason: "restarted from outside",
		},
		"shutdown from outside": {
			happen: func(k *fakegateway.Kernel, _ *fakegateway.Server) {
				k.Publish("shutdown_reply", map[string]any{"msg_id": "server"}, map[string]any{"status": "ok", "restart": false})
			},
			reason: "shut down from outside",
		},
		"text frame in v1": {
			happen: func(k *fakegateway.Kernel, _ *fakegateway.Server) { k.Raw(websocket.TextMessage, []byte("{}")) },
			reason: "not a message",
		},
		"garbage": {
			happen: func(k *fakegateway.Kernel, _ *fakegateway.Server) {
				k.Raw(websocket.BinaryMessage, []byte("garbage!garbage!"))
			},
			reason: "not a message",
		},
		"absurd offsets": {
			happen: func(k *fakegateway.Kernel, _ *fakegateway.Server) {
				frame := binary.LittleEndian.AppendUint64(nil, 1<<60)
				k.Raw(websocket.BinaryMessage, frame)
			},
			reason: "not a message",
		},
		"empty frame": {
			happen: func(k *fakegateway.Kernel, _ *fakegateway.Server) { k.Raw(websocket.BinaryMessage, nil) },
			reason: "not a message",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.change == nil {
				tc.change = func(*jupyter.Options) {}
			}
			s, c := fake(t, fakegateway.Options{}, tc.change)
			k := startKernel(t, c)
			end, out := running(t, k)
			tc.happen(s.Live()[0], s)
			if tc.ended {
				c.ServerEnded()
				c.ServerEnded()
			}
			f := await(t, end)
			lost := requireLost(t, k, f.err, tc.replaced)
			require.Contains(t, lost.Reason, tc.reason)
			require.NotContains(t, lost.Error(), "secret")
			require.Equal(t, "a\n", out.text("stdout"))
			_, err := k.Execute(within(t), jupyter.ExecuteRequest{Code: "x"}, nil)
			_ = requireLost(t, k, err, tc.replaced)
			require.Error(t, k.Interrupt(within(t)))
			require.Error(t, k.Ping(within(t)))
			require.Error(t, k.Input(within(t), "x"))
		})
	}
}

// Code that was sent between death and detection runs in the new process: it
// is reported as lost, not as success.
func TestReplyOfAnotherProcess(t *testing.T) {
	t.Parallel()
	k, _ := fakeKernel(t, fakegateway.Options{Execute: func(c *fakegateway.Cell) {
		c.Kernel.Replace(false)
		c.Kernel.Publish("status", c.Header(), map[string]any{"execution_state": "busy"})
	}})
	out := &outputs{}
	_, err := k.Execute(within(t), jupyter.ExecuteRequest{Code: "x"}, out.emit)
	_ = requireLost(t, k, err, true)
	require.Empty(t, out.list())
}

func TestMalformedReply(t *testing.T) {
	t.Parallel()
	k, _ := fakeKernel(t, fakegateway.Options{Execute: func(c *fakegateway.Cell) {
		c.Begin()
		c.Reply("what", nil)
		c.Status("idle")
	}})
	_, err := k.Execute(within(t), jupyter.ExecuteRequest{Code: "x"}, nil)
	_ = requireLost(t, k, err, false)
}

// A deletion ends the running execution and everything that belongs to the
// kernel, also when many ask for it at once.
func TestDeleteWhileBusy(t *testing.T) {
	t.Parallel()
	s, c := fake(t, fakegateway.Options{})
	k := startKernel(t, c)
	end, _ := running(t, k)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := k.Delete(within(t)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	f := await(t, end)
	lost := requireLost(t, k, f.err, false)
	require.Contains(t, lost.Reason, "deleted")
	require.Empty(t, s.Live())
}

// A deletion that fails says so, and can be repeated.
func TestDeleteFails(t *testing.T) {
	t.Parallel()
	s, c := fake(t, fakegateway.Options{})
	k := startKernel(t, c)
	s.Set(func(f *fakegateway.Faults) { f.Status = map[string]int{"delete": 500} })
	require.Error(t, k.Delete(within(t)))
	await(t, k.Done())
	s.Set(func(f *fakegateway.Faults) { f.Status = nil })
	require.NoError(t, k.Delete(within(t)))
	require.Empty(t, s.Live())
}

// Many kernels at once neither mix up nor leave anything.
func TestManyKernels(t *testing.T) {
	t.Parallel()
	s, c := fake(t, fakegateway.Options{}, func(o *jupyter.Options) { o.MaxStarts = 16 })
	const n = 120
	kernels := make([]*jupyter.Kernel, n)
	var wg sync.WaitGroup
	for i := range kernels {
		wg.Go(func() {
			k, err := c.Start(within(t), jupyter.StartRequest{})
			if err != nil {
				t.Error(err)
				return
			}
			kernels[i] = k
			for j := range 5 {
				out := &outputs{}
				want := fmt.Sprintf("kernel %d cell %d", i, j)
				r, err := k.Execute(within(t), jupyter.ExecuteRequest{Code: "out " + want}, out.emit)
				if err != nil || r.Status != jupyter.ReplyOK || out.text("stdout") != want+"\n" {
					t.Errorf("%s: %v %v %q", want, r, err, out.text("stdout"))
				}
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	require.Len(t, s.Live(), n)
	t.Logf("%d goroutines for %d kernels and their fakes", runtime.NumGoroutine(), n)
	for _, k := range kernels {
		wg.Go(func() {
			if err := k.Delete(within(t)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Empty(t, s.Live())
}
