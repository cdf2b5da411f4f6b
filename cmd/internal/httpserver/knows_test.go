package httpserver_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
)

// TestAMountThatKnows has its token in a header of its own, and refuses in its own form;
// what guards all mounts guards it too.
func TestAMountThatKnows(t *testing.T) {
	t.Parallel()
	own := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !httpserver.Trusted(r.Context()) {
			w.WriteHeader(http.StatusTeapot)
		}
	})
	h := httpserver.Handler(httpserver.Options{Token: "sesame"}, httpserver.Mount{
		Pattern: "/own/", Handler: own, Knows: func(r *http.Request, opens func(string) bool) bool { return opens(r.Header.Get("X-Key")) },
	}, httpserver.Mount{Pattern: "/other/", Handler: own})
	for name, tc := range map[string]struct {
		path    string
		headers []string
		want    int
	}{
		"its own header":                     {"/own/x", []string{"X-Key", "sesame"}, 200},
		"the header of all":                  {"/own/x", []string{"Authorization", "Bearer sesame"}, 200},
		"Authorization for something else":   {"/own/x", []string{"X-Key", "sesame", "Authorization", "Basic dXNlcjo="}, 200},
		"none":                               {"/own/x", nil, 418},
		"a wrong one":                        {"/own/x", []string{"X-Key", "other"}, 418},
		"its header where it does not count": {"/other/x", []string{"X-Key", "sesame"}, 401},
		"another origin":                     {"/own/x", []string{"X-Key", "sesame", "Origin", "http://example.org"}, 403},
		"upwards":                            {"/own/%2e%2e/x", []string{"X-Key", "sesame"}, 400},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1"+tc.path, http.NoBody)
		for i := 0; i < len(tc.headers); i += 2 {
			r.Header.Set(tc.headers[i], tc.headers[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, tc.want, w.Code, name)
	}
}
