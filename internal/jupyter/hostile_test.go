package jupyter_test

import (
	"context"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/fakegateway"
)

// hostile sends what an attacker chose to a client that executes code: each
// piece of script is a frame, whose first byte says what kind of one.
func hostile(k *fakegateway.Kernel, header map[string]any, script []byte) {
	for len(script) > 1 {
		op, n := script[0], min(int(script[1]), len(script)-2)
		body := script[2 : 2+n]
		script = script[2+n:]
		switch op % 8 {
		case 0:
			k.Raw(websocket.BinaryMessage, body)
		case 1:
			k.Raw(websocket.TextMessage, body)
		case 2:
			k.Raw(websocket.CloseMessage, body[:min(n, 125)])
		case 3:
			k.Drop()
		case 4: // a message in good form, with a content that is not
			k.Publish([]string{"stream", "display_data", "error", "status", "execute_result", "clear_output"}[n%6], header, map[string]any{"text": string(body), "data": string(body)})
		case 5:
			k.Swallow(true, n%2 == 0)
		case 6:
			k.Publish("coppice_repeat_reply", header, map[string]any{"messages": []any{map[string]any{"number": n, "id": string(body), "type": "stream", "channel": "iopub"}}, "through": 2 * n, "sent": n})
			k.Numbered(header, int64(1)<<(n%64))

		default:
			k.Announce("status", header, map[string]any{"execution_state": string(body)})
		}
	}
}

// Whatever a server sends, an execution ends, and nothing crashes or stays.
func FuzzHostileServer(f *testing.F) {
	f.Add([]byte("\x00\x04abcd\x03\x00\x04\x02hi\x05\x01x\x03\x00"), true)
	f.Add([]byte("\x01\x02{}\x02\x02\x03\xe8"), false)
	f.Add([]byte("\x06\x03a_1\x03\x00\x07\x04dead\x04\x05stuff\x04\x03abc"), true)
	f.Fuzz(func(t *testing.T, script []byte, replays bool) {
		if len(script) > 512 {
			return
		}
		s, err := fakegateway.Start(fakegateway.Options{Recover: replays, Execute: func(c *fakegateway.Cell) {
			c.Begin()
			hostile(c.Kernel, c.Header(), script)
			c.Kernel.Die() // whoever is still connected hears of it; the others find it unknown
		}})
		require.NoError(t, err)
		defer s.Close()
		c, err := jupyter.NewClient(jupyter.Options{
			URL: s.URL(), Token: s.Token(), SpoolDir: t.TempDir(), MaxMessage: 1 << 16, RestartSettle: time.Millisecond,
			Settle: 10 * time.Millisecond, VerifyEvery: 10 * time.Millisecond, PingEvery: 50 * time.Millisecond, RequestTimeout: time.Second, Reconnect: 2 * time.Second,
		})
		require.NoError(t, err)
		defer c.Close()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		k, err := c.Start(ctx, jupyter.StartRequest{})
		require.NoError(t, err)
		if replays {
			k.EnableReplay()
		}
		// No news of a death comes over a connection that swallows everything: a host
		// asks now and then.
		asked := make(chan struct{})
		go func() {
			defer close(asked)
			for k.Err() == nil && ctx.Err() == nil {
				_ = k.Ping(ctx) // it matters only whether it finds the kernel lost
				<-time.After(5 * time.Millisecond)
			}
		}()
		_, err = k.Execute(ctx, jupyter.ExecuteRequest{Code: "x"}, func(context.Context, messages.Event) error { return nil })
		require.NoError(t, ctx.Err(), "it hung: %v", err)
		require.NoError(t, k.Delete(ctx))
		<-asked
	})
}
