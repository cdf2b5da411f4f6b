package fleetapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/fleet/fleettest"
)

// TestDrain: what a node that is draining answers, and what it gives up when.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		a, b := join(t, m, w, "a"), join(t, m, w, "b")
		defer b.leave()
		defer a.leave()
		require.Equal(t, "1", a.run("e1", "k", 0).Body.String())
		require.Equal(t, "1", a.run("i1", "idle", 0).Body.String())
		reached, on := make(chan struct{}), make(chan struct{})
		a.between = func() { close(reached); <-on }
		last := make(chan *httptest.ResponseRecorder)
		go func() { last <- b.run("e2", "k", 0) }()
		<-reached
		drained := make(chan error)
		go func() { drained <- a.node.Drain(t.Context()) }()
		time.Sleep(time.Second)
		require.False(t, a.node.Ready())

		rec := a.run("n1", "new", 0)
		require.Equal(t, "draining", code(rec), rec.Body)
		require.Contains(t, rec.Body.String(), "ask node "+b.node.ID()+" at http://b.test")
		require.NotEmpty(t, rec.Header().Get("Retry-After"))
		require.Equal(t, "draining", code(a.run("e3", "k", 1)), "its last call runs")
		require.Equal(t, "draining", code(b.run("e3", "k", 1)))
		require.Equal(t, "draining", code(a.ask(http.MethodPost, "/api/sessions/k/fork", "", 0)))
		require.Equal(t, "draining", code(a.ask(http.MethodPost, "/api/executions", `{"id":"w","session":"k","workspace":"w"}`, 0)))
		require.Equal(t, "1", a.run("e1", "k", 0).Body.String(), "what has begun is known")
		require.Equal(t, "1", a.run("i1", "idle", 0).Body.String(), "also when its session is given up")
		require.Equal(t, "epoch_needed", code(b.run("i2", "idle", 0)), "nothing ran in it")
		require.Equal(t, "1", b.run("i2", "idle", 2).Body.String())
		require.Equal(t, "2", a.run("i3", "idle", 2).Body.String(), "it sends on what is another's")
		require.Equal(t, "1", b.run("n1", "new", 0).Body.String(), "the one that was named takes it")

		close(on)
		require.Equal(t, "2", (<-last).Body.String(), "what ran has its result")
		require.NoError(t, <-drained)
		require.Zero(t, a.node.owned())
		began := time.Now()
		require.Equal(t, "epoch_needed", code(b.run("e4", "k", 0)))
		require.Equal(t, "1", b.run("e4", "k", 2).Body.String())
		require.Less(t, time.Since(began), time.Second, "no lease has to end")
		require.Contains(t, b.run("n2", "new", 0).Body.String(), "2")
	})
}

// TestDrainInVain: a drain has an end, also while the directory is away, and what it has
// not come to is then for others to find.
func TestDrainInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		a, b := join(t, m, w, "a"), join(t, m, w, "b")
		defer b.leave()
		reached, on := make(chan struct{}), make(chan struct{})
		a.between = func() { close(reached); <-on }
		last := make(chan *httptest.ResponseRecorder)
		go func() { last <- a.run("e1", "k", 0) }()
		<-reached
		a.link.Cut()
		ctx, cancel := context.WithTimeout(t.Context(), ttl/2)
		defer cancel()
		require.ErrorIs(t, a.node.Drain(ctx), context.DeadlineExceeded)
		a.link.Mend()
		close(on)
		<-last
		a.leave()
		require.Equal(t, "epoch_needed", code(b.run("e2", "k", 0)), "at once: the node has left")
	})
}

// TestWhatADrainingNodeRefused is found where it was begun then, by who had sent it to the node that
// was draining, too.
func TestWhatADrainingNodeRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		a, b, front := join(t, m, w, "a"), join(t, m, w, "b"), joinAs(t, m, w, "front", nil, true)
		defer front.leave()
		defer b.leave()
		defer a.leave()
		first, other := a, b
		if front.run("e1", "k", 0).Result().Header.Get(HeaderNode) == b.node.ID() {
			first, other = b, a
		}
		require.Equal(t, "1", front.ask(http.MethodGet, "/api/executions/e1", "", 0).Body.String())
		first.node.mu.Lock()
		first.node.draining = true
		first.node.mu.Unlock()
		require.Equal(t, "draining", code(front.run("e2", "k", 1)))
		first.end("k", "it was ended")
		time.Sleep(time.Second)
		synctest.Wait()
		require.NoError(t, first.node.member.Drain(t.Context()))
		synctest.Wait() // the front has heard of it
		begun := front.run("e2", "k", 1)
		require.Equal(t, other.node.ID(), begun.Result().Header.Get(HeaderNode), begun.Body.String())
		require.Equal(t, "1", front.ask(http.MethodGet, "/api/executions/e2", "", 0).Body.String())

		front.node.place("e2", first.node.ID()) // as it may be known from before
		require.Equal(t, "1", front.ask(http.MethodGet, "/api/executions/e2", "", 0).Body.String())
		front.node.place("e3", first.node.ID())
		require.Equal(t, http.StatusNotFound, front.ask(http.MethodGet, "/api/executions/e3", "", 0).Code)
	})
}
