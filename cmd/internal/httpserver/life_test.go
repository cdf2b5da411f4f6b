package httpserver_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
)

// TestLife: who asks learns which life of the server answers, and a request that is for another
// one is not served.
func TestLife(t *testing.T) {
	t.Parallel()
	served := 0
	h := httpserver.Handler(httpserver.Options{Token: "sesame"}, httpserver.Mount{
		Pattern: "POST /x", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }),
	})
	ask := func(method, path string, lives ...string) *http.Response {
		r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1"+path, http.NoBody)
		r.Header.Set("Authorization", "Bearer sesame")
		for _, life := range lives {
			r.Header.Add(httpserver.HeaderServer, life)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result()
	}
	require.Empty(t, ask("POST", "/x").Header.Values(httpserver.HeaderServer), "nobody has asked")
	resp := ask("GET", "/readyz", httpserver.AnyServer)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	life := resp.Header.Get(httpserver.HeaderServer)
	require.NotEmpty(t, life)
	require.Equal(t, http.StatusOK, ask("POST", "/x", life).StatusCode)
	require.Equal(t, 2, served)
	for _, other := range [][]string{{"another"}, {""}, {life, life}} {
		resp := ask("POST", "/x", other...)
		require.Equal(t, http.StatusGone, resp.StatusCode)
		require.Equal(t, life, resp.Header.Get(httpserver.HeaderServer))
	}
	require.Equal(t, 2, served, "nothing was done")
}
