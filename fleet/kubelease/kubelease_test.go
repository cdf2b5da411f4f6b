package kubelease_test

import (
	"context"
	"fmt"
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
