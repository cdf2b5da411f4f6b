package httpserver_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
)

// A long answer is compressed for those who take that, and is the same for all.
func TestLongAnswersAreCompressed(t *testing.T) {
	t.Parallel()
	long := map[string]any{"sessions": strings.Split(strings.Repeat("a session of many,", 1000), ",")}
	want, err := json.Marshal(long)
	require.NoError(t, err)
	ask := func(v any, accepts ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		r.Header["Accept-Encoding"] = accepts
		w := httptest.NewRecorder()
		httpserver.Answer(w, r, http.StatusOK, v)
		require.Equal(t, "application/json", w.Header().Get("Content-Type"))
		require.Equal(t, "Accept-Encoding", w.Header().Get("Vary"))
		return w
	}
	for _, accepts := range [][]string{{"gzip"}, {"br, GZip;q=0.5"}, {"deflate", "gzip, br"}, {"gzip; q=1"}} {
		for range 2 { // a compressor is used again
			w := ask(long, accepts...)
			require.Equal(t, "gzip", w.Header().Get("Content-Encoding"), accepts)
			require.Less(t, w.Body.Len(), len(want)/10)
			z, err := gzip.NewReader(w.Body)
			require.NoError(t, err)
			got, err := io.ReadAll(z)
			require.NoError(t, err)
			require.Equal(t, string(want)+"\n", string(got))
		}
	}
	for _, accepts := range [][]string{nil, {""}, {"identity"}, {"gzip;q=0"}, {"gzip; q=0.0, br"}, {"xgzip"}, {"gzip;q=nonsense"}, {"*"}} {
		w := ask(long, accepts...)
		require.Empty(t, w.Header().Get("Content-Encoding"), accepts)
		require.Equal(t, string(want)+"\n", w.Body.String())
	}
	require.Empty(t, ask("short", "gzip").Header().Get("Content-Encoding"))
	require.Equal(t, http.StatusInternalServerError, statusOf(t, func() {}))
}

// statusOf is the status of an answer that cannot be written.
func statusOf(t *testing.T, v any) int {
	t.Helper()
	w := httptest.NewRecorder()
	httpserver.Answer(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody), http.StatusOK, v)
	return w.Code
}
