package kubelease_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/fleet/fleettest"
	"github.com/coppice-run/coppice/fleet/kubelease"
)

func TestMain(m *testing.M) {
	// The client of Kubernetes renews what it knows of credentials for as long as a program lives.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

func open(t *testing.T, o kubelease.Options) *kubelease.Directory {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), fleettest.Patience)
	defer cancel()
	d, err := kubelease.Open(ctx, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// TestAServerIsFrozen: a connection whose server stands still is left for another one well within a
// lease, as there may be another server behind the address.
func TestAServerIsFrozen(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	var frozen atomic.Value // the connection of which nothing is answered any longer
	frozen.Store("")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
			_, _ = fmt.Fprint(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`)
			return
		case !r.URL.Query().Has("dryRun") && (frozen.CompareAndSwap("", r.RemoteAddr) || frozen.Load() == r.RemoteAddr):
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
			return
		}
		_, _ = fmt.Fprint(w, `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"uid":"uid","resourceVersion":"8"}}`)
	}))
	defer s.Close()
	d := open(t, kubelease.Options{Config: &rest.Config{Host: s.URL}, Lease: lease})
	begun := time.Now()
	_, err := d.Swap(t.Context(), "k", nil, "uid/7")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "the API server gave no answer")
	_, err = d.Swap(t.Context(), "k", nil, "uid/7")
	require.NoError(t, err)
	require.Less(t, time.Since(begun), lease)
}

// TestOnce: what a server has put off, or given up in the middle, is not sent again.
func TestOnce(t *testing.T) {
	t.Parallel()
	var writes atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`)
		case r.URL.Query().Has("dryRun"):
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1"}`)
		default:
			writes.Add(1)
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusGatewayTimeout)
		}
	}))
	defer s.Close()
	d := open(t, kubelease.Options{Config: &rest.Config{Host: s.URL, Timeout: time.Minute}})
	for _, prev := range []fleet.Revision{"", "uid/7"} {
		_, err := d.Swap(t.Context(), "k", nil, prev)
		require.Error(t, err)
		require.NotErrorIs(t, err, fleet.ErrConflict)
	}
	require.Error(t, d.Remove(t.Context(), "k", "uid/7"))
	require.EqualValues(t, 3, writes.Load(), "each once")
}
