package fleetapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/fleetapi/about"
	"github.com/coppice-run/coppice/fleet/fleettest"
	"github.com/coppice-run/coppice/messages"
)

// makeWorkspace makes one, which is a session of no name.
func (s *server) makeWorkspace(w http.ResponseWriter, r *http.Request) {
	var in struct{ Name string }
	if json.NewDecoder(r.Body).Decode(&in) != nil || in.Name == "" {
		http.Error(w, "no name", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[about.WorkspaceKey(in.Name)]++
	w.WriteHeader(http.StatusCreated)
}

// inWorkspace tells what was sent, and how often the workspace was asked for.
func (s *server) inWorkspace(w http.ResponseWriter, r *http.Request) {
	data, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[about.WorkspaceKey(r.PathValue("workspace"))] == 0 {
		http.Error(w, "no such workspace", http.StatusNotFound)
		return
	}
	_, _ = fmt.Fprintf(w, "%s at %s", data, s.host)
}

func (s *server) endWorkspace(_ http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	delete(s.sessions, about.WorkspaceKey(r.PathValue("workspace")))
	s.mu.Unlock()
	s.changed(messages.SessionKey{}, "")
}

// TestOneWorkspace is at one node, whichever is asked, with all that is in it, and begins anew
// at another one when its node is dead.
func TestOneWorkspace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		a, b := join(t, m, w, "a"), join(t, m, w, "b")
		defer b.leave()
		defer a.leave()
		require.Equal(t, http.StatusNotFound, b.ask(http.MethodPut, "/api/workspaces/w/files", "x", 0).Code)
		require.Equal(t, http.StatusBadRequest, b.ask(http.MethodPost, "/api/workspaces", `{"name":""}`, 0).Code)
		require.Zero(t, b.node.owned())

		require.Equal(t, http.StatusCreated, a.ask(http.MethodPost, "/api/workspaces", `{"name":"w"}`, 0).Code)
		rec := b.ask(http.MethodPut, "/api/workspaces/w/files", "some text", 0)
		require.Equal(t, "some text at a.test", rec.Body.String())
		require.Equal(t, []string{a.node.ID()}, rec.Result().Header.Values(HeaderNode))
		require.Equal(t, http.StatusCreated, b.ask(http.MethodPost, "/api/workspaces", `{"name":"w"}`, 0).Code, "it is the same")
		rec = b.ask(http.MethodPost, "/api/executions", `{"id":"e1","session":"k","workspace":"w"}`, 0)
		require.Equal(t, a.node.ID(), rec.Result().Header.Get(HeaderNode))
		require.Equal(t, "1", rec.Body.String())
		require.Equal(t, 1, a.node.owned(), "what is in it has no key of its own")
		require.Contains(t, b.ask(http.MethodGet, "/api/sessions", "", 0).Body.String(), a.node.ID())

		a.kill()
		killed := time.Now()
		require.Equal(t, http.StatusNotFound, b.ask(http.MethodPut, "/api/workspaces/w/files", "y", 0).Code, "it is gone")
		require.Greater(t, time.Since(killed), ttl, "which is known when its node is known to be dead")
		require.Equal(t, http.StatusCreated, b.ask(http.MethodPost, "/api/workspaces", `{"name":"w"}`, 0).Code)
		require.Equal(t, "y at b.test", b.ask(http.MethodPut, "/api/workspaces/w/files", "y", 0).Body.String())
		require.Equal(t, "epoch_needed", code(b.ask(http.MethodPost, "/api/executions", `{"id":"e2","session":"k","workspace":"w"}`, 0)))
		require.Equal(t, "1", b.ask(http.MethodPost, "/api/executions", `{"id":"e2","session":"k","workspace":"w"}`, 2).Body.String())

		require.Equal(t, http.StatusOK, b.ask(http.MethodDelete, "/api/workspaces/w", "", 0).Code)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Zero(t, b.node.owned(), "its claim is released")
	})
}
