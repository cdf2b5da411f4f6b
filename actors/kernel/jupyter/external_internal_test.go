package jupyter

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/messages"
)

func endpoints(t *testing.T, urls ...string) []*Endpoint {
	t.Helper()
	ends := make([]*Endpoint, len(urls))
	for i, u := range urls {
		client, err := jupyter.NewClient(jupyter.Options{URL: u})
		require.NoError(t, err)
		t.Cleanup(client.Close)
		ends[i] = &Endpoint{Client: client}
	}
	return ends
}

// Sessions are spread over the servers, and one that is gone moves its own alone.
func TestPlace(t *testing.T) {
	t.Parallel()
	ends := endpoints(t, "http://a:1", "http://b:1", "https://c/base")
	const sessions = 3000
	homes, count := map[string]*Endpoint{}, map[*Endpoint]int{}
	of := func(i int) messages.SessionKey {
		return messages.SessionKey{Session: fmt.Sprint("s", i), Cwd: "/w"}
	}
	for i := range sessions {
		e, err := place(ends, of(i))
		require.NoError(t, err)
		homes[of(i).ID()] = e
		count[e]++
	}
	for _, e := range ends {
		require.InDelta(t, sessions/3, count[e], sessions/20, e.Client.URL())
	}
	other := endpoints(t, "https://c/base", "http://a:1", "http://b:1")
	e, err := place(other, of(7))
	require.NoError(t, err)
	require.Equal(t, homes[of(7).ID()].Client.URL(), e.Client.URL(), "their order is of no matter")

	ends[1].gone.Store(true)
	for i := range sessions {
		e, err := place(ends, of(i))
		require.NoError(t, err)
		if home := homes[of(i).ID()]; home != ends[1] {
			require.Same(t, home, e)
		} else {
			require.NotSame(t, home, e)
		}
	}
	ends[0].gone.Store(true)
	ends[2].gone.Store(true)
	_, err = place(ends, of(0))
	require.EqualError(t, err, "External gateways http://a:1, http://b:1, https://c/base are all gone")
}

// Of several servers one that is not there is left out until it is back; one that
// refuses the token is an error.
func TestFirstLook(t *testing.T) {
	t.Parallel()
	var status atomic.Int64
	status.Store(http.StatusOK)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(status.Load()))
		_, _ = w.Write([]byte(`{"kernelspecs":{}}`))
	}))
	t.Cleanup(server.Close)
	nobody := httptest.NewServer(nil)
	nobody.Close()
	ends := endpoints(t, server.URL, nobody.URL)
	require.NoError(t, firstLook(t.Context(), ends))
	require.False(t, ends[0].gone.Load())
	require.True(t, ends[1].gone.Load())

	err := firstLook(t.Context(), ends[1:])
	require.ErrorContains(t, err, "External gateway at "+nobody.URL+" is not reachable: ")
	twice := endpoints(t, nobody.URL, nobody.URL+"/x")
	require.ErrorContains(t, firstLook(t.Context(), twice), "; External gateway at "+nobody.URL+"/x is not")

	status.Store(http.StatusForbidden)
	require.EqualError(t, firstLook(t.Context(), ends), "External gateway at "+server.URL+" requires authentication. Set PI_PYTHON_GATEWAY_TOKEN.")
	status.Store(http.StatusBadGateway)
	require.EqualError(t, firstLook(t.Context(), ends[:1]), "External gateway at "+server.URL+" returned status 502")

	ends[0].gone.Store(true)
	look(t.Context(), ends, true)
	require.True(t, ends[0].gone.Load(), "it is not back yet")
	status.Store(http.StatusOK)
	look(t.Context(), ends, true)
	require.False(t, ends[0].gone.Load())
	require.True(t, ends[1].gone.Load())
}
