package fleetapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/fleet/fleettest"
	"github.com/coppice-run/coppice/messages"
)

func TestPick(t *testing.T) {
	t.Parallel()
	require.Empty(t, pick(nil))
	require.Equal(t, "a", pick([]candidate{{"a", 1, 9}}))
	require.Equal(t, "b", pick([]candidate{{"a", 1, 0}, {"b", 3, 5}, {"c", 2, 5}}), "alike: the heavier")
	require.Equal(t, "c", pick([]candidate{{"a", 1, 0}, {"b", 3, 5}, {"c", 2, 4}}), "the less loaded of two, not the least loaded")
	// Keys are spread, and few move when a node comes.
	moved, at := 0, map[string]int{}
	const keys = 3000
	for i := range keys {
		key := fmt.Sprint("key", i)
		var nodes []candidate
		for _, id := range []string{"a", "b", "c"} {
			nodes = append(nodes, candidate{id, weight(id, key), 0})
		}
		was := pick(nodes)
		at[was]++
		if pick(append(nodes, candidate{"d", weight("d", key), 0})) != was {
			moved++
		}
	}
	for id, n := range at {
		require.InDelta(t, keys/3, n, keys/15, id)
	}
	require.InDelta(t, keys/4, moved, keys/20)
}

// spread has nodes place sessions, and those of them that are fronts have none.
func spread(fronts int, all ...*server) {
	for i, s := range all {
		s.node.o.Spread, s.node.o.Front = true, i < fronts
	}
}

// TestASpreadSession begins at the node that all choose, whichever is asked, and at another one
// when that is not there.
func TestASpreadSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		a, b := join(t, m, w, "a"), join(t, m, w, "b")
		defer a.leave()
		defer b.leave()
		spread(0, a, b)
		at := map[string]int{}
		for i := range 20 {
			name := fmt.Sprint("s", i)
			asked := []*server{a, b}[i%2]
			want := asked.node.choose(messages.SessionKey{Session: name, Cwd: "/w"}.ID(), where{})
			rec := asked.run("e"+name, name, 0)
			require.Equal(t, http.StatusOK, rec.Code, rec.Body)
			got := rec.Result().Header.Get(HeaderNode)
			require.Equal(t, want, got)
			at[got]++
			require.Equal(t, got, []*server{b, a}[i%2].run("f"+name, name, 0).Result().Header.Get(HeaderNode), "it stays there")
		}
		require.Len(t, at, 2)
		require.Equal(t, "1", b.ask(http.MethodPost, "/api/executions", `{"id":"x","session":"named"}`, 0, HeaderNode, b.node.ID()).Body.String())
		require.Equal(t, b.node.ID(), a.run("y", "named", 0).Result().Header.Get(HeaderNode))

		w.mu.Lock() // it does not answer, and is not known to be dead
		delete(w.nodes, b.host)
		w.mu.Unlock()
		for i := range 20 {
			rec := a.run(fmt.Sprint("g", i), fmt.Sprint("t", i), 0)
			require.Equal(t, http.StatusOK, rec.Code, rec.Body)
			require.Equal(t, a.node.ID(), rec.Result().Header.Get(HeaderNode))
		}
		w.mu.Lock()
		w.nodes[b.host] = b.h
		w.mu.Unlock()
	})
}

// TestAFront has no sessions.
func TestAFront(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		front := joinAs(t, m, w, "front", nil, true)
		defer front.leave()
		require.Equal(t, "no_node", code(front.run("e", "k", 0)))
		a := join(t, m, w, "a")
		defer a.leave()
		spread(0, a)
		for i := range 5 {
			rec := front.run(fmt.Sprint("e", i), "k", 0)
			require.Equal(t, http.StatusOK, rec.Code, rec.Body)
			require.Equal(t, fmt.Sprint(i+1), rec.Body.String())
			require.Equal(t, []string{a.node.ID()}, rec.Result().Header.Values(HeaderNode))
		}
		require.Equal(t, a.node.ID(), a.run("f", "l", 0).Result().Header.Get(HeaderNode), "no node chooses it")
		require.Equal(t, "no_sessions", code(front.ask(http.MethodPost, "/api/executions", `{"session":"n"}`, 0, HeaderNode, front.node.ID())))
		require.Zero(t, front.node.owned())
	})
}

// TestSessionsOfTwoKernelspecs are two, with an owner each; the one that sessions have without
// naming it is the same under its name.
func TestSessionsOfTwoKernelspecs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		a, b := join(t, m, w, "a"), join(t, m, w, "b")
		defer a.leave()
		defer b.leave()
		run := func(s *server, id, kernel string, epoch int) *httptest.ResponseRecorder {
			return s.ask(http.MethodPost, "/api/executions", fmt.Sprintf(`{"id":%q,"session":"k","kernel":%q}`, id, kernel), epoch)
		}
		first := run(a, "e1", "", 0)
		require.Equal(t, "1", first.Body.String())
		other := run(b, "e2", "ir", 0)
		require.Equal(t, "1", other.Body.String())
		require.NotEqual(t, first.Header().Get(HeaderNode), other.Header().Get(HeaderNode))
		require.Equal(t, "2", run(b, "e3", "python3", 1).Body.String())
		require.Equal(t, "2", run(a, "e4", "ir", 1).Body.String())
		time.Sleep(4 * ttl) // neither is given up while it has its kernel
		require.Equal(t, "3", run(a, "e5", "ir", 1).Body.String())
		require.Equal(t, "3", run(b, "e6", "", 1).Body.String())
		gone := a.ask(http.MethodDelete, "/api/sessions/k?kernel=ir", "", 1)
		require.Less(t, gone.Code, 300, gone.Body)
		require.Equal(t, other.Header().Get(HeaderNode), gone.Header().Get(HeaderNode))
	})
}

// TestWhoJoinsKnowsTheOthers: the first request may come as soon as a node is there.
func TestWhoJoinsKnowsTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		a := join(t, m, w, "a")
		defer a.leave()
		b := join(t, m, w, "b")
		defer b.leave()
		require.Len(t, b.node.others(), 1)
	})
}

// TestLabels: what asks for labels begins at a node that has them, whatever else would be chosen, and
// stays there.
func TestLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		a := join(t, m, w, "a")
		defer a.leave()
		b := joinLabelled(t, m, w, "b", map[string]string{"gpu": "yes", "zone": "a"})
		defer b.leave()
		for i, from := range []*server{a, b, a, b} {
			rec := from.ask(http.MethodPost, "/api/executions", fmt.Sprintf(`{"id":"e%d","session":"s%d"}`, i, i), 0, HeaderLabels, "zone=a, gpu=yes")
			require.Equal(t, http.StatusOK, rec.Code, rec.Body)
			require.Equal(t, b.node.ID(), rec.Result().Header.Get(HeaderNode))
		}
		require.Equal(t, "2", a.run("f", "s0", 1).Body.String(), "it is there")
		rec := a.ask(http.MethodPost, "/api/executions", `{"id":"g","session":"t"}`, 0, HeaderLabels, "gpu=no")
		require.Equal(t, "no_node", code(rec))
		require.Contains(t, rec.Body.String(), "--fleet-label")
		require.Equal(t, "bad_request", code(a.ask(http.MethodPost, "/api/executions", `{"id":"g","session":"t"}`, 0, HeaderLabels, "gpu")))
	})
}
