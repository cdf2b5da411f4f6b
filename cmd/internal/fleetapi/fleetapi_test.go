package fleetapi

import (
	"compress/gzip"
	"encoding/json"
	"errors"
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

// A long list is one of all nodes, too, when the client takes it compressed.
func TestALongListOfAllNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		a, b := join(t, m, w, "a"), join(t, m, w, "b")
		defer a.leave()
		defer b.leave()
		const each = 200
		for _, s := range []*server{a, b} {
			s.mu.Lock()
			for i := range each {
				s.sessions[messages.SessionKey{Session: fmt.Sprint("a session of ", s.node.ID(), i), Cwd: "/w"}] = 1
			}
			s.mu.Unlock()
		}
		rec := a.ask(http.MethodGet, "/api/sessions", "", 0, "Accept-Encoding", "gzip")
		require.Equal(t, http.StatusOK, rec.Code)
		require.Equal(t, "gzip", rec.Header().Get("Content-Encoding"))
		z, err := gzip.NewReader(rec.Body)
		require.NoError(t, err)
		var all struct{ Sessions []struct{ Node string } }
		require.NoError(t, json.NewDecoder(z).Decode(&all))
		at := map[string]int{}
		for _, s := range all.Sessions {
			at[s.Node]++
		}
		require.Equal(t, map[string]int{a.node.ID(): each, b.node.ID(): each}, at)
	})
}

// TestOneSession: it is at the node that was asked first, whichever is asked later, and so
// is what was begun in it. Lists show all nodes', and each node can be named.
func TestOneSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		a, b := join(t, m, w, "a"), join(t, m, w, "b")
		defer a.leave()
		defer b.leave()
		for i, s := range []*server{a, b, b, a} {
			rec := s.run("e"+string(rune('0'+i)), "k", 0)
			require.Equal(t, http.StatusOK, rec.Code, rec.Body)
			require.Equal(t, string(rune('1'+i)), rec.Body.String())
			require.Equal(t, []string{a.node.ID()}, rec.Result().Header.Values(HeaderNode))
			require.Equal(t, []string{"1"}, rec.Result().Header.Values(HeaderEpoch))
		}
		require.Equal(t, "1", b.run("e0", "k", 0).Body.String(), "what has begun is not begun again")
		require.Equal(t, "3", b.ask(http.MethodGet, "/api/executions/e2", "", 0).Body.String())
		require.Equal(t, http.StatusNotFound, b.ask(http.MethodGet, "/api/executions/none", "", 0).Code)
		require.Equal(t, "1", b.run("f0", "l", 0).Body.String())
		require.JSONEq(t, `{"sessions":[{"cwd":"/w","session":"k","node":"`+a.node.ID()+`"},{"cwd":"/w","session":"l","node":"`+b.node.ID()+`"}]}`,
			a.ask(http.MethodGet, "/api/sessions", "", 0).Body.String())
		require.JSONEq(t, `{"sessions":[{"cwd":"/w","session":"l","node":"`+b.node.ID()+`"}]}`,
			a.ask(http.MethodGet, "/api/sessions", "", 0, HeaderNode, b.node.ID()).Body.String())
		require.Equal(t, "tools of a", a.ask(http.MethodGet, "/api/tools/", "", 0).Body.String())
		require.Equal(t, "tools of b", a.ask(http.MethodGet, "/api/tools/", "", 0, HeaderNode, b.node.ID()).Body.String())
		require.Equal(t, "lost", code(a.ask(http.MethodGet, "/api/tools/", "", 0, HeaderNode, "b-of-old")))
		require.Equal(t, "moved", code(b.ask(http.MethodPost, "/api/executions", `{"session":"k"}`, 0, HeaderNode, b.node.ID())))
		require.Equal(t, "bad_request", code(a.ask(http.MethodPost, "/api/executions", `{"session":"k"}`, 0, HeaderEpoch, "x")))
		require.Equal(t, "epoch_gone", code(b.run("e9", "k", 7)), "it was never in that one")
	})
}

// TestTheOwnerDies: what was sent to it is not begun again, and nothing is begun for who
// has not heard of the loss.
func TestTheOwnerDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		a, b, c := join(t, m, w, "a"), join(t, m, w, "b"), join(t, m, w, "c")
		defer b.leave()
		defer c.leave()
		defer a.leave()
		require.Equal(t, "1", b.run("e1", "k", 0).Body.String(), "the first is at b")
		require.Equal(t, "2", a.run("e2", "k", 0).Body.String())
		b.kill()
		began := time.Now()
		rec := a.run("e2", "k", 0)
		require.Equal(t, "epoch_needed", code(rec), rec.Body)
		require.Equal(t, "2", rec.Header().Get(HeaderEpoch))
		require.Less(t, time.Since(began), ttl+ttl/10+ttl/4, "it is known soon that its owner is dead")
		require.Equal(t, "epoch_needed", code(c.run("e2", "k", 0)), "wherever it is sent")
		require.Equal(t, "epoch_gone", code(c.run("e2", "k", 1)))
		require.Equal(t, http.StatusGone, a.ask(http.MethodGet, "/api/executions/e2", "", 0).Code)
		require.Equal(t, "lost", code(c.ask(http.MethodGet, "/api/executions/e2?session=k&cwd=%2Fw&epoch=1", "", 0)), "also where nobody has heard of it")
		require.Equal(t, "not_found", code(c.ask(http.MethodGet, "/api/executions/e2", "", 0)), "who does not say where it was learns no more")
		require.Equal(t, "1", c.run("e3", "k", 2).Body.String(), "it begins anew, for who knows")
		require.Equal(t, "2", a.run("e4", "k", 2).Body.String())
	})
}

// TestThePauseBeforeTheAnswer: a node that does not see its lease renewed between the end
// of a cell and its answer, until another has the session, answers that it is lost, ends
// what it had, and is a new node then.
func TestThePauseBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		a, b := join(t, m, w, "a"), join(t, m, w, "b")
		defer a.leave()
		defer b.leave()
		before := a.node.ID()
		reached, on := make(chan struct{}), make(chan struct{})
		a.between = func() { close(reached); <-on }
		old := make(chan *httptest.ResponseRecorder)
		go func() { old <- a.run("e1", "k", 0) }()
		<-reached
		a.link.Cut()
		w.mu.Lock()
		w.deaf[a.host] = true
		w.mu.Unlock()
		require.Equal(t, "lost", code(b.run("e1", "k", 0)), "what it was sent is lost with it")
		require.Equal(t, "epoch_needed", code(b.run("e2", "k", 0)))
		require.Equal(t, "1", b.run("e2", "k", 2).Body.String())
		close(on)
		synctest.Wait()
		a.link.Mend()
		require.Equal(t, "lost", (<-old).Body.String(), "the older answer stays inside")
		w.mu.Lock()
		delete(w.deaf, a.host)
		w.mu.Unlock()
		require.Eventually(t, func() bool { id := a.node.ID(); return id != "" && id != before }, time.Hour, time.Second)
		keys, _ := a.Live(t.Context())
		require.Empty(t, keys, "nothing of the life before is left")
		synctest.Wait()
		require.Equal(t, "2", a.run("e3", "k", 2).Body.String(), "it sends on what is another's")
	})
}

// TestSuspended: while the directory is away for three times as long as a lease, calls are
// refused with the reason, and nothing is ended.
func TestSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		a, b := join(t, m, w, "a"), join(t, m, w, "b")
		defer a.leave()
		defer b.leave()
		require.Equal(t, "1", a.run("e1", "k", 0).Body.String())
		a.link.Cut()
		b.link.Cut()
		time.Sleep(3 * ttl)
		for _, s := range []*server{a, b} {
			require.False(t, s.node.Ready())
			rec := s.run("e2", "k", 0)
			require.Equal(t, http.StatusServiceUnavailable, rec.Code, rec.Body)
			require.Equal(t, "suspended", code(rec))
			require.NotEmpty(t, rec.Header().Get("Retry-After"))
		}
		a.link.Mend()
		b.link.Mend()
		time.Sleep(ttl)
		require.True(t, a.node.Ready() && b.node.Ready())
		rec := b.run("e2", "k", 1)
		require.Equal(t, "2", rec.Body.String(), "the session was kept")
		require.Zero(t, a.ended)
	})
}

// TestCutOff: a node that alone cannot reach the directory does not say that its sessions live, as the
// others declare it dead meanwhile. While its lease lasts it says that nothing has ended, and in words
// that are the caller's.
func TestCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		a, b := join(t, m, w, "a"), join(t, m, w, "b")
		defer a.leave()
		defer b.leave()
		require.Equal(t, "1", a.run("e1", "k", 0).Body.String())
		a.link.Cut()
		frozen := a.run("e2", "other", 0)
		require.Equal(t, "suspended", code(frozen))
		require.Contains(t, frozen.Body.String(), "no session is ended for it: the directory of the fleet gives no answer")
		require.NotContains(t, frozen.Body.String(), "context deadline exceeded")
		time.Sleep(2 * ttl)
		require.Equal(t, "epoch_needed", code(b.run("e3", "k", 0)), "it is declared dead")
		cut := a.run("e4", "k", 0)
		require.Equal(t, "suspended", code(cut))
		require.Contains(t, cut.Body.String(), "whether the sessions of this node still live is not known")
		require.NotContains(t, cut.Body.String(), "no session is ended")
		a.link.Mend()
	})
}

// TestReleased: a session that has ended is given up, and the next one is of the next epoch,
// anywhere. A claim under which nothing was begun leaves nothing to tell.
func TestReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		a, b := join(t, m, w, "a"), join(t, m, w, "b")
		defer a.leave()
		defer b.leave()
		require.Equal(t, "1", a.run("e1", "k", 0).Body.String())
		time.Sleep(time.Minute)
		require.Equal(t, 1, a.node.owned(), "it has a kernel")
		require.Equal(t, http.StatusNoContent, b.ask(http.MethodDelete, "/api/sessions/k", "", 0).Code)
		time.Sleep(time.Second)
		require.Zero(t, a.node.owned())
		require.Empty(t, a.node.keys, "nothing is remembered of it")
		require.Equal(t, "epoch_needed", code(b.run("e2", "k", 0)))
		time.Sleep(time.Second)
		require.Zero(t, b.node.owned(), "nothing was begun")
		rec := b.run("e2", "k", 2)
		require.Equal(t, "1", rec.Body.String(), "who was told of the second is not told again")
		require.Equal(t, "3", rec.Header().Get(HeaderEpoch))
	})
}

// TestWhatIsToldFirst: the first execution of an epoch that has its place tells what was
// lost, whoever was refused before, and no later one does.
func TestWhatIsToldFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		a, b := join(t, m, w, "a"), join(t, m, w, "b")
		defer b.leave()
		defer a.leave()
		require.Equal(t, "1", a.run("e1", "k", 0).Body.String())
		a.kill()
		require.Equal(t, "epoch_gone", code(b.run("e2", "k", 1)))
		b.mu.Lock()
		b.full = true
		b.mu.Unlock()
		require.Equal(t, "overloaded", code(b.run("e2", "k", 2)))
		b.mu.Lock()
		b.full = false
		b.mu.Unlock()
		require.Equal(t, "1", b.run("e3", "k", 2).Body.String())
		require.Equal(t, "2", b.run("e4", "k", 2).Body.String())
		require.Len(t, b.news, 2)
		require.Contains(t, b.news[0], "what it had in memory in epoch 1 is gone")
		require.Empty(t, b.news[1])
	})
}

// TestEndedInOrder: whoever knows the epoch of a session that was idle for too long goes on,
// and is told; what was begun then is not begun again, and where that cannot be known any
// more, nothing is.
func TestEndedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		a, b, c := join(t, m, w, "a"), join(t, m, w, "b"), join(t, m, w, "c")
		defer b.leave()
		defer c.leave()
		defer a.leave()
		const told = "in epoch 2: what it had in memory in epoch 1 is gone: it was ended, idle for 5m0s"
		for _, key := range []string{"k", "l", "m", "n"} {
			require.Equal(t, "1", a.run("e1"+key, key, 0).Body.String())
			why := "it was ended, idle for 5m0s"
			if key == "n" {
				why = "" // it died
			}
			a.end(key, why)
		}
		time.Sleep(time.Second)
		require.Zero(t, a.node.owned())

		rec := b.run("e2k", "k", 1)
		require.Equal(t, "1", rec.Body.String())
		require.Equal(t, "2", rec.Header().Get(HeaderEpoch))
		require.Contains(t, b.news[0], told)
		require.Equal(t, "2", c.run("e3k", "k", 1).Body.String(), "another who knows the first")
		require.Contains(t, b.news[1], told)
		require.Equal(t, "3", c.run("e4k", "k", 2).Body.String())
		require.Empty(t, b.news[2], "who knows the second was told")

		require.Equal(t, "1", b.run("e1l", "l", 1).Body.String(), "it began in the first epoch")
		require.Empty(t, b.sessions[messages.SessionKey{Session: "l", Cwd: "/w"}])
		require.Equal(t, "1", a.run("e1l", "l", 1).Body.String(), "at the node itself")
		require.Equal(t, "epoch_needed", code(b.run("e2l", "l", 0)))
		require.Equal(t, "epoch_gone", code(b.run("e2n", "n", 1)))

		a.kill()
		time.Sleep(2 * ttl)
		require.Equal(t, "epoch_gone", code(b.run("e2m", "m", 1)))
		require.Equal(t, "1", b.run("e2m", "m", 2).Body.String())
	})
}

// TestForks are claimed: they are where the session is. One whose name is another node's is
// ended.
func TestForks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		a, b := join(t, m, w, "a"), join(t, m, w, "b")
		defer a.leave()
		defer b.leave()
		require.Equal(t, "1", a.run("e1", "k", 0).Body.String())
		require.Equal(t, http.StatusCreated, b.ask(http.MethodPost, "/api/sessions/k/fork", "", 0).Code)
		require.Equal(t, "8", b.run("e2", "k~1", 0).Body.String())
		require.Equal(t, "1", a.run("e3", "l", 0).Body.String())
		require.Equal(t, "1", b.run("e4", "l~1", 0).Body.String())
		require.Equal(t, "conflict", code(a.ask(http.MethodPost, "/api/sessions/l/fork", "", 0)))
		keys, _ := a.Live(t.Context())
		require.NotContains(t, keys, messages.SessionKey{Session: "l~1", Cwd: "/w"})
	})
}

// TestALifeThatIsOverIsLeft: a node that is closed while it still ends the sessions of a life that
// was declared over leaves nothing of that life behind, which synctest would find.
func TestALifeThatIsOverIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		a, b := join(t, m, w, "a"), join(t, m, w, "b")
		require.Equal(t, "1", a.run("e1", "k", 0).Body.String())
		a.mu.Lock()
		a.stays = errors.New("its kernel stays")
		a.mu.Unlock()
		a.link.Cut()
		time.Sleep(2 * ttl)
		a.link.Mend()
		time.Sleep(2 * ttl) // it has heard of its end by now, and ends its session again and again
		now, _ := a.node.now()
		require.Nil(t, now)
		a.leave()
		b.leave()
	})
}
