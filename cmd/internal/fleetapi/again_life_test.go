package fleetapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/fleet/fleettest"
)

// TestALifeOfANode: what a client sends again is for the life of the node that it has asked, and not
// for that of the one which it is sent on to. A node says where it says how it is that it is one.
func TestALifeOfANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, w := fleettest.NewMemory(), newWires()
		a, b := join(t, m, w, "a"), join(t, m, w, "b")
		defer a.leave()
		defer b.leave()
		require.Equal(t, "1", b.run("e1", "k", 0).Body.String(), "the session is at b")
		at, lives := w.nodes["b.test"], []string{}
		w.mu.Lock()
		w.nodes["b.test"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			lives = append(lives, r.Header.Values(httpserver.HeaderServer)...)
			at.ServeHTTP(w, r)
		})
		w.mu.Unlock()
		require.Equal(t, "2", a.ask(http.MethodPost, "/api/executions", `{"id":"e2","session":"k"}`, 0, httpserver.HeaderServer, "a life of a").Body.String())
		require.Empty(t, lives)

		token := strings.Repeat("t", 32)
		h := httpserver.Handler(httpserver.Options{Token: token}, a.node.Wrap([]httpserver.Mount{
			{Pattern: "GET /api/health", Public: true, Scope: httpserver.Read, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})},
		})...)
		health := func(token string) []string {
			r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/api/health", http.NoBody)
			if token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			require.Equal(t, http.StatusOK, rec.Code, rec.Body)
			return rec.Result().Header.Values(HeaderNode)
		}
		require.Equal(t, []string{a.node.ID()}, health(token))
		require.Empty(t, health(""))
	})
}
