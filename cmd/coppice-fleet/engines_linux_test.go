//go:build engines

package main

import (
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/cli"
	"github.com/coppice-run/coppice/fleet/fleettest"
)

// onEtcd are nodes whose directory is three members of etcd.
func onEtcd(t *testing.T) *nodes {
	t.Helper()
	e := fleettest.StartEtcd(t, 3, nil)
	return &nodes{
		t: t, work: t.TempDir(), servers: strings.ReplaceAll(strings.Join(e.URLs(), ","), "http://", "etcd://"),
		stop: e.Kill, start: func() { e.Start(t) },
	}
}

// onEtcdTLS are nodes whose directory wants a certificate of them.
func onEtcdTLS(t *testing.T) *nodes {
	t.Helper()
	c := fleettest.NewCertificates(t)
	e := fleettest.StartEtcd(t, 1, &c)
	files := url.Values{"ca": {c.CA}, "cert": {c.ClientCert}, "key": {c.ClientKey}, "prefix": {"a fleet/"}}
	return &nodes{
		t: t, work: t.TempDir(), servers: strings.Replace(e.Members[0].URL, "https://", "etcds://", 1) + "?" + files.Encode(),
		stop: e.Kill, start: func() { e.Start(t) },
	}
}

// onKubernetes are nodes whose directory is an API server of Kubernetes.
func onKubernetes(t *testing.T) *nodes {
	t.Helper()
	k := fleettest.StartKubernetes(t)
	at := url.URL{Scheme: "kubernetes", Host: "default", RawQuery: url.Values{"kubeconfig": {k.Config(t, k.Token, "default")}}.Encode()}
	return &nodes{t: t, work: t.TempDir(), servers: at.String(), stop: k.Kill, start: func() { k.Start(t) }}
}

// TestTheOwnerIsKilledOnEtcd is TestTheOwnerIsKilled on three members.
func TestTheOwnerIsKilledOnEtcd(t *testing.T) {
	t.Parallel()
	theOwnerIsKilled(t, onEtcd(t))
}

// TestTheOwnerIsKilledOnEtcdTLS is the same over TLS.
func TestTheOwnerIsKilledOnEtcdTLS(t *testing.T) {
	t.Parallel()
	theOwnerIsKilled(t, onEtcdTLS(t))
}

// TestTheOwnerIsKilledOnKubernetes is the same with Lease objects.
func TestTheOwnerIsKilledOnKubernetes(t *testing.T) {
	t.Parallel()
	theOwnerIsKilled(t, onKubernetes(t))
}

// TestEtcdIsAway is TestTheEngineIsAway with etcd.
func TestEtcdIsAway(t *testing.T) {
	t.Parallel()
	full(t)
	theEngineIsAway(t, onEtcd(t))
}

// TestKubernetesIsAway is the same with an API server.
func TestKubernetesIsAway(t *testing.T) {
	t.Parallel()
	full(t)
	theEngineIsAway(t, onKubernetes(t))
}

// TestRefused: what a real engine refuses is said at once, with what is missing.
func TestRefused(t *testing.T) {
	t.Parallel()
	k := fleettest.StartKubernetes(t)
	certs := fleettest.NewCertificates(t)
	e := fleettest.StartEtcd(t, 1, &certs)
	secure := strings.Replace(e.Members[0].URL, "https://", "etcds://", 1)
	config := func(token, namespace string) string {
		return url.Values{"kubeconfig": {k.Config(t, token, namespace)}}.Encode()
	}
	for name, tc := range map[string]struct{ at, want string }{
		"a namespace that is not there":    {"kubernetes://nowhere?" + config(k.Token, ""), `namespaces "nowhere" not found`},
		"that of the context":              {"kubernetes://?" + config(k.Token, "nowhere-else"), `namespaces "nowhere-else" not found`},
		"a token that is not known":        {"kubernetes://default?" + config("none", ""), "Unauthorized"},
		"a server that nobody vouches for": {secure, "certificate"},
		"no certificate of one's own":      {secure + "?" + url.Values{"ca": {certs.CA}}.Encode(), "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, err := url.Parse(tc.at)
			require.NoError(t, err)
			_, _, err = open(t.Context(), cli.DirectoryOptions{URLs: []*url.URL{u}, Logger: slog.New(slog.DiscardHandler)})
			require.ErrorContains(t, err, tc.want)
		})
	}
}
