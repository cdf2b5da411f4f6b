package fleetapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/fleet/fleettest"
	"github.com/coppice-run/coppice/messages"
)

// TestTheFleetAsAWhole: each node is a child of one tree, and what all have counted is one overview;
// one that gives no answer is named. Who names a node hears of that alone.
func TestTheFleetAsAWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		a, b := join(t, m, w, "a"), join(t, m, w, "b")
		defer a.leave()
		defer b.leave()
		var asked []string
		for name, s := range map[string]*server{"a": a, "b": b} {
			mux := http.NewServeMux()
			for _, mount := range s.node.Wrap([]httpserver.Mount{
				{Pattern: "GET /api/tree", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					httpserver.JSON(w, http.StatusOK, messages.Node{Name: "coppice", Kind: "supervisor", State: messages.ChildIdle, Children: []messages.Node{{Name: "of " + name}}, Busy: &messages.Busy{}})
				})},
				{Pattern: "GET /api/overview", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					asked = append(asked, name+" "+r.URL.Query().Get("after")+" "+r.URL.Query().Get("since"))
					at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
					httpserver.JSON(w, http.StatusOK, client.Overview{At: at.Add(time.Second), StepSeconds: 5, Samples: []client.Sample{{Seq: 1, At: at, Starts: 1}}})
				})},
			}) {
				mux.Handle(mount.Pattern, mount.Handler)
			}
			w.mu.Lock()
			w.nodes[s.host] = mux
			w.mu.Unlock()
			s.h = mux
		}
		get := func(path string, to any, header ...string) *httptest.ResponseRecorder {
			rec := a.ask(http.MethodGet, path, "", 0, header...)
			require.Equal(t, http.StatusOK, rec.Code, rec.Body)
			require.NoError(t, json.Unmarshal(rec.Body.Bytes(), to))
			return rec
		}
		var tree messages.Node
		get("/api/tree", &tree)
		require.Equal(t, "fleet", tree.Name)
		require.NotNil(t, tree.Busy)
		require.Len(t, tree.Children, 2)
		for i, s := range []*server{a, b} {
			require.Equal(t, s.node.ID(), tree.Children[i].Name)
			require.Equal(t, "of "+[]string{"a", "b"}[i], tree.Children[i].Children[0].Name)
		}
		var o client.Overview
		get("/api/overview?after=0", &o)
		require.Equal(t, 2, o.Samples[0].Starts)
		require.Equal(t, []string{"a 0 ", "b  2026-01-02T03:04:00Z"}, asked, "the others are asked for the same time")

		var alone messages.Node
		get("/api/tree", &alone, HeaderNode, b.node.ID())
		require.Equal(t, "coppice", alone.Name)

		b.kill()
		tree = messages.Node{}
		get("/api/tree", &tree)
		require.Equal(t, "it gave no answer", tree.Children[1].Detail)
		o = client.Overview{}
		get("/api/overview", &o)
		require.Equal(t, "The node "+b.node.ID()+" gave no answer.", o.Problems[0].What)
	})
}
