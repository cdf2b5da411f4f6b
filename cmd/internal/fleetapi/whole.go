package fleetapi

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/cmd/internal/liveview/vitals"
	"github.com/coppice-run/coppice/messages"
)

// What is told of the fleet as a whole: one tree, in which each node is a child, and one overview.

// whole has a GET answered with what all nodes say of themselves. ask is what the others are
// asked, once own is what this one has said; "": nothing. A request that names a node is answered by it alone.
func (n *Node) whole(ask func(own []byte) string, together func(me string, own []byte, others map[string][]byte) (any, error)) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			held := newBuffer()
			held.serve(h, r)
			if r.Header.Get(HeaderNode) != "" || held.status != http.StatusOK {
				held.to(w)
				return
			}
			question, others := ask(held.body.Bytes()), n.others()
			answers := make([][]byte, len(others))
			var asked sync.WaitGroup
			for i, p := range others {
				asked.Go(func() {
					if status, data, err := n.ask(r.Context(), r, p, question); err == nil && status == http.StatusOK {
						answers[i] = data
					}
				})
			}
			asked.Wait()
			said := map[string][]byte{} // a node that says nothing has nil
			for i, p := range others {
				said[p.ID] = answers[i]
			}
			all, err := together(n.ID(), held.body.Bytes(), said)
			if err != nil { // it is that of a node of another version
				held.to(w)
				return
			}
			httpserver.Answer(w, r, http.StatusOK, all)
		})
	}
}

// silentNode is what the tree has in place of a node that gave no answer.
const silentNode = "it gave no answer"

// tree is that of the fleet.
func (n *Node) tree() func(http.Handler) http.Handler {
	return n.whole(func([]byte) string { return "/api/tree" }, func(me string, own []byte, others map[string][]byte) (any, error) {
		var mine messages.Node
		if err := json.Unmarshal(own, &mine); err != nil {
			return nil, err
		}
		root := messages.Node{Name: "fleet", Kind: "fleet", State: mine.State, Since: mine.Since, StartedAt: mine.StartedAt, Epoch: 1, Busy: mine.Busy}
		mine.Name, mine.Busy = me, nil
		root.Children = append(root.Children, mine)
		for id, data := range others {
			other := messages.Node{Name: id, Kind: "node", State: messages.ChildSuspended, Epoch: 1, Detail: silentNode}
			if data != nil && json.Unmarshal(data, &other) == nil {
				other.Name, other.Busy = id, nil
			}
			root.Children = append(root.Children, other)
		}
		slices.SortFunc(root.Children, func(a, b messages.Node) int {
			if a.Name < b.Name {
				return -1
			}
			return 1
		})
		return root, nil
	})
}

// overview is that of the fleet: samples have the numbers of this node.
func (n *Node) overview() func(http.Handler) http.Handler {
	ask := func(own []byte) string {
		var o client.Overview
		if json.Unmarshal(own, &o) != nil {
			return "/api/overview"
		}
		since := o.At
		if len(o.Samples) > 0 {
			since = o.Samples[0].At.Add(-time.Duration(o.StepSeconds * float64(time.Second)))
		}
		return "/api/overview?" + url.Values{"since": {since.Format(time.RFC3339Nano)}}.Encode()
	}
	return n.whole(ask, func(_ string, own []byte, others map[string][]byte) (any, error) {
		var mine client.Overview
		if err := json.Unmarshal(own, &mine); err != nil {
			return nil, err
		}
		all := map[string]client.Overview{}
		for id, data := range others {
			var o client.Overview
			if data == nil {
				mine.Problems = append(mine.Problems, client.Problem{
					Level: client.LevelBad, Kind: "server", What: "The node " + id + " gave no answer.",
					Do: "Calls of its sessions wait until it answers, or is known to be dead.",
				})
			} else if json.Unmarshal(data, &o) == nil {
				all[id] = o
			}
		}
		return vitals.Together(mine, all), nil
	})
}

// story is about the session that the query of a request names.
func (n *Node) story(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if query.Get("session") == "" || !messages.IsKernelspec(query.Get("kernel")) {
			h.ServeHTTP(w, r) // which says what is wrong with it
			return
		}
		t := target{key: n.sessionKey(query.Get("session"), query.Get("cwd"), query.Get("kernel")), body: []byte{}}
		if name := query.Get("workspace"); name != "" {
			t.key = workspaceKey(name)
		}
		n.route(w, r, h, t)
	})
}
