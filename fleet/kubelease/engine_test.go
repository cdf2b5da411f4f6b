//go:build engines

package kubelease_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/fleet/fleettest"
	"github.com/coppice-run/coppice/fleet/kubelease"
)

// config is that of whoever has a token.
func config(k *fleettest.Kubernetes, token string) *rest.Config {
	return &rest.Config{Host: k.URL, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAFile: k.CA}}
}

// TestDirectory runs the suite, and races, against one API server: a start of one takes long.
func TestDirectory(t *testing.T) {
	t.Parallel()
	k := fleettest.StartKubernetes(t)
	t.Run("suite", func(t *testing.T) {
		var fleets atomic.Int64
		fleettest.Run(t, func(*testing.T) func(*testing.T) fleet.Directory {
			name := fmt.Sprintf("fleet-%d", fleets.Add(1))
			return func(t *testing.T) fleet.Directory {
				return open(t, kubelease.Options{Config: config(k, k.Token), Fleet: name})
			}
		})
	})
	o := kubelease.Options{Config: config(k, k.Token)}
	t.Run("race", func(t *testing.T) {
		// Of fifty that swap a Lease at once one wins, a thousand times in the long run.
		fleettest.Race(t, []fleet.Directory{open(t, o), open(t, o), open(t, o)}, fleettest.Rounds(), 50)
	})
	t.Run("more than a page", func(t *testing.T) { pages(t, open(t, o)) })
	t.Run("rights", func(t *testing.T) { rights(t, k) })
}

// TestKubernetesRestarts: nothing is lost, and everything goes on, when the API server is
// killed, or its etcd, and another one comes in its place.
func TestKubernetesRestarts(t *testing.T) {
	t.Parallel()
	k := fleettest.StartKubernetes(t)
	o := kubelease.Options{Config: config(k, k.Token)}
	fleettest.Outage(t, open(t, o), open(t, o), k.Kill, func() { k.Start(t) })
	o.Fleet = "another"
	fleettest.Outage(t, open(t, o), open(t, o), k.Etcd.Kill, func() {
		k.Etcd.Start(t)
		k.Ready(t)
	})
}

// pages lists more objects than one answer has.
func pages(t *testing.T, d *kubelease.Directory) {
	const many = 1100
	for i := range many {
		_, err := d.Swap(t.Context(), fmt.Sprintf("page.%d", i), nil, "")
		require.NoError(t, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := map[string]bool{}
	err := d.Watch(ctx, "page.", func(e fleet.Entry) {
		if e.Key == "" {
			cancel()
			return
		}
		seen[e.Key] = true
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, seen, many)
}

// rights: what is missing is said when the directory is opened.
func rights(t *testing.T, k *fleettest.Kubernetes) {
	for name, tc := range map[string]struct {
		o    kubelease.Options
		is   error
		want string
	}{
		"no namespace": {kubelease.Options{Config: config(k, k.Token), Namespace: "not-there"}, nil, `"not-there" not found`},
		"who is this":  {kubelease.Options{Config: config(k, "another token")}, nil, "Unauthorized"},
		"no rights": {
			kubelease.Options{Config: as(k, "somebody")},
			kubelease.ErrForbidden,
			"to get, list, watch, create, update, delete leases of coordination.k8s.io",
		},
		"no server": {kubelease.Options{Config: &rest.Config{Host: "http://127.0.0.1:1"}}, nil, "connection refused"},
		"not known": {kubelease.Options{Config: &rest.Config{Host: k.URL}}, nil, "certificate"},
		"no config": {kubelease.Options{}, nil, "no configuration"},
		"no name":   {kubelease.Options{Config: config(k, k.Token), Fleet: "A b"}, nil, "the name of a fleet"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := kubelease.Open(t.Context(), tc.o)
			require.ErrorContains(t, err, tc.want)
			if tc.is != nil {
				require.ErrorIs(t, err, tc.is)
			}
		})
	}
}

// as is the administrator, who acts as somebody that nothing was granted to.
func as(k *fleettest.Kubernetes, user string) *rest.Config {
	c := config(k, k.Token)
	c.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	return c
}
