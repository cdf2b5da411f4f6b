package cli

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// carries takes requests, and answers none.
type carries struct{ got []*http.Request }

// RoundTrip implements [http.RoundTripper].
func (c *carries) RoundTrip(r *http.Request) (*http.Response, error) {
	c.got = append(c.got, r)
	return nil, http.ErrAbortHandler
}

// TestWhatATenantShowsStaysHere: what is sent on to another node has the token of the nodes, and nothing
// that opens what the tenant has; what opens one sandbox goes on.
func TestWhatATenantShowsStaysHere(t *testing.T) {
	t.Parallel()
	to := &carries{}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://a.test/jupyter/api/kernels?token=secret&x=1", http.NoBody)
	for name, value := range map[string]string{"Authorization": "token secret", "X-API-Key": "secret", "X-Access-Token": "of a sandbox", "Coppice-Tenant": "other"} {
		r.Header.Set(name, value)
	}
	_, err := asTenant{to, "of the nodes", "first"}.RoundTrip(r)
	require.ErrorIs(t, err, http.ErrAbortHandler)
	require.Len(t, to.got, 1)
	sent := to.got[0]
	require.Equal(t, "x=1", sent.URL.RawQuery)
	require.Equal(t, http.Header{"Authorization": {"Bearer of the nodes"}, "X-Access-Token": {"of a sandbox"}, "Coppice-Tenant": {"first"}}, sent.Header)
	require.Equal(t, "token=secret&x=1", r.URL.RawQuery, "the request itself is as it was")
	require.Equal(t, "secret", r.Header.Get("X-API-Key"))
}
