package jupyter_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/fakegateway"
)

// What widgets tell a frontend comes with the output, in its place, to who asks for it.
func TestCommsAreForWhoAsks(t *testing.T) {
	t.Parallel()
	k, _ := fakeKernel(t, fakegateway.Options{Execute: func(c *fakegateway.Cell) {
		c.Begin()
		c.Stream("stdout", "a")
		c.Publish("comm_open", map[string]any{"comm_id": "c1", "target_name": "jupyter.widget", "data": map[string]any{"state": map[string]any{"v": 1}}})
		c.Publish("comm_msg", map[string]any{"comm_id": "c1", "data": map[string]any{"method": "custom", "of": c.Header()["msg_id"]}})
		c.Stream("stdout", "b")
		c.Publish("comm_close", map[string]any{"comm_id": "c1", "data": map[string]any{}})
		c.Reply("ok", nil)
		c.Status("idle")
	}})
	text := func(s string) messages.Event { return messages.Stream{Name: "stdout", Text: s} }
	for _, tt := range []struct {
		asks bool
		want []messages.Event
	}{
		{false, []messages.Event{text("a"), text("b")}},
		{true, []messages.Event{
			text("a"),
			messages.Comm{ID: "c1", Action: messages.CommOpen, Target: "jupyter.widget", Data: messages.RawJSON(`{"state":{"v":1}}`)},
			messages.Comm{ID: "c1", Action: messages.CommUpdate, Data: messages.RawJSON(`{"method":"custom","of":"coppice:request"}`)},
			text("b"),
			messages.Comm{ID: "c1", Action: messages.CommClose, Data: messages.RawJSON(`{}`)},
		}},
	} {
		out := &outputs{}
		r, err := k.Execute(within(t), jupyter.ExecuteRequest{Code: "x", Comms: tt.asks}, out.emit)
		require.NoError(t, err)
		require.Equal(t, jupyter.ReplyOK, r.Status)
		require.Empty(t, cmp.Diff(tt.want, out.list()))
		require.Empty(t, r.Incomplete)
	}
}
