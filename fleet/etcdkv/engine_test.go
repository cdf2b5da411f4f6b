//go:build engines

package etcdkv_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/fleet/etcdkv"
	"github.com/coppice-run/coppice/fleet/fleettest"
)

// client is one of etcd's own, for what a test does to it.
func client(t *testing.T, endpoints ...string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Context: context.WithoutCancel(t.Context()), Endpoints: endpoints, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func TestDirectory(t *testing.T) {
	t.Parallel()
	e := fleettest.StartEtcd(t, 1, nil)
	var fleets atomic.Int64
	fleettest.Run(t, func(*testing.T) func(*testing.T) fleet.Directory {
		prefix := fmt.Sprintf("fleet%d/", fleets.Add(1))
		return func(t *testing.T) fleet.Directory {
			return open(t, etcdkv.Options{Endpoints: e.URLs(), Prefix: prefix})
		}
	})
}

// TestRace: of fifty that swap at once, one wins, a thousand times in the long run.
func TestRace(t *testing.T) {
	t.Parallel()
	e := fleettest.StartEtcd(t, 1, nil)
	o := etcdkv.Options{Endpoints: e.URLs()}
	fleettest.Race(t, []fleet.Directory{open(t, o), open(t, o), open(t, o)}, fleettest.Rounds(), 50)
}

// TestEtcdRestarts: nothing is lost, and everything goes on, when the server is killed and
// another one comes in its place.
func TestEtcdRestarts(t *testing.T) {
	t.Parallel()
	e := fleettest.StartEtcd(t, 1, nil)
	o := etcdkv.Options{Endpoints: e.URLs()}
	fleettest.Outage(t, open(t, o), open(t, o), e.Kill, func() { e.Start(t) })
}

// TestTheLeaderIsKilled: two of three go on without it, and it comes back.
func TestTheLeaderIsKilled(t *testing.T) {
	t.Parallel()
	e := fleettest.StartEtcd(t, 3, nil)
	leader := func() fleettest.EtcdMember {
		for _, m := range e.Members {
			s, err := client(t, m.URL).Status(t.Context(), m.URL)
			require.NoError(t, err)
			if s.Leader == s.Header.MemberId {
				return m
			}
		}
		require.FailNow(t, "there is no leader")
		return fleettest.EtcdMember{}
	}
	d := open(t, etcdkv.Options{Endpoints: e.URLs()})
	for range 2 {
		gone := leader()
		fleettest.Unbroken(t, d, gone.Kill)
		gone.Start(t)
	}
	fleettest.Outage(t, d, open(t, etcdkv.Options{Endpoints: e.URLs()}), func() {
		e.Members[0].Kill() // one alone has no majority
		e.Members[1].Kill()
	}, func() {
		e.Members[0].Launch(t)
		e.Members[1].Start(t)
		e.Members[0].Ready(t)
	})
}

// TestCompacted: a watch whose history was compacted while it was cut off ends with an error,
// and one that is begun again tells what there is.
func TestCompacted(t *testing.T) {
	t.Parallel()
	e := fleettest.StartEtcd(t, 1, nil)
	way := fleettest.NewProxy(t, e.Members[0].URL)
	cut, d := open(t, etcdkv.Options{Endpoints: []string{way.URL()}}), open(t, etcdkv.Options{Endpoints: e.URLs()})
	rev, err := d.Swap(t.Context(), "c.k", []byte("0"), "")
	require.NoError(t, err)
	told, ended := make(chan fleet.Entry, 100), make(chan error, 1)
	ctx, stop := context.WithTimeout(t.Context(), fleettest.Patience)
	defer stop()
	go func() { ended <- cut.Watch(ctx, "c.", func(e fleet.Entry) { told <- e }) }() // ends with the history
	require.Equal(t, "0", string((<-told).Value))
	require.Empty(t, (<-told).Key)

	way.Cut()
	for i := 1; i <= 5; i++ {
		rev, err = d.Swap(t.Context(), "c.k", fmt.Append(nil, i), rev)
		require.NoError(t, err)
	}
	c := client(t, e.URLs()...)
	now, err := c.Get(t.Context(), "any")
	require.NoError(t, err)
	_, err = c.Compact(t.Context(), now.Header.Revision, clientv3.WithCompactPhysical())
	require.NoError(t, err)
	way.Mend()
	require.ErrorContains(t, <-ended, "compacted")
	require.Empty(t, told, "nothing of it was told in part")
	go func() { ended <- cut.Watch(ctx, "c.", func(e fleet.Entry) { told <- e }) }() // ends with its context
	require.Equal(t, fleet.Entry{Key: "c.k", Value: []byte("5"), Rev: rev}, <-told)
	stop()
	require.Error(t, <-ended)
}

// TestCertificates: a cluster that wants certificates is reached with one, and what is wrong
// is said.
func TestCertificates(t *testing.T) {
	t.Parallel()
	certs := fleettest.NewCertificates(t)
	e := fleettest.StartEtcd(t, 1, &certs)
	pem, err := os.ReadFile(certs.CA)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	pair, err := tls.LoadX509KeyPair(certs.ClientCert, certs.ClientKey)
	require.NoError(t, err)
	d := open(t, etcdkv.Options{Endpoints: e.URLs(), TLS: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}})
	_, err = d.Swap(t.Context(), "k", nil, "")
	require.NoError(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), fleettest.Patience)
	defer cancel()
	_, err = etcdkv.Open(ctx, etcdkv.Options{Endpoints: e.URLs(), TLS: &tls.Config{MinVersion: tls.VersionTLS12}})
	require.ErrorContains(t, err, "certificate")
	_, err = etcdkv.Open(t.Context(), etcdkv.Options{})
	require.Error(t, err, "there is nobody to ask")
}
