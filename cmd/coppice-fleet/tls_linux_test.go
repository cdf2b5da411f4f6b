package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/fleet/fleettest"
)

// farNodes are nodes that reach each other over TLS, with one certificate.
func farNodes(t *testing.T) (n *nodes, certs fleettest.Certificates, ports []int) {
	t.Helper()
	n, certs, ports = newNodes(t), fleettest.NewCertificates(t), freePorts(t, 2)
	next := 0
	n.more = func() []string {
		at := fmt.Sprintf("127.0.0.1:%d", ports[next])
		next++
		return []string{"--fleet-listen", at, "--fleet-cert", certs.Cert, "--fleet-key", certs.Key, "--fleet-ca", certs.CA}
	}
	return n, certs, ports
}

// TestTheOwnerIsKilledOverTLS is TestTheOwnerIsKilled with nodes that may be on several
// machines.
func TestTheOwnerIsKilledOverTLS(t *testing.T) {
	t.Parallel()
	n, _, _ := farNodes(t)
	theOwnerIsKilled(t, n)
}

// TestStrangers: who comes from another machine shows a certificate of the fleet's authority,
// and its token.
func TestStrangers(t *testing.T) {
	t.Parallel()
	n, certs, ports := farNodes(t)
	one := n.node("a")
	other := fleettest.NewCertificates(t)
	ask := func(with *fleettest.Certificates, token string) (*http.Response, error) {
		pem, err := os.ReadFile(certs.CA)
		require.NoError(t, err)
		c := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS13}
		c.RootCAs.AppendCertsFromPEM(pem)
		if with != nil {
			pair, err := tls.LoadX509KeyPair(with.ClientCert, with.ClientKey)
			require.NoError(t, err)
			// What the server asks for is not what it is shown, if that is another's.
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/api/sessions", ports[0]), nil)
		require.NoError(t, err)
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := client.Do(req)
		if err == nil {
			require.NoError(t, resp.Body.Close())
		}
		return resp, err
	}
	_, err := ask(nil, token)
	require.ErrorContains(t, err, "certificate required")
	_, err = ask(&other, token)
	require.ErrorContains(t, err, "unknown certificate authority")
	for shown, want := range map[string]int{"": http.StatusUnauthorized, "another token of a fleet": http.StatusUnauthorized, token: http.StatusOK} {
		resp, err := ask(&certs, shown)
		require.NoError(t, err)
		require.Equal(t, want, resp.StatusCode, shown)
	}
	require.Equal(t, http.StatusOK, one.get("/api/sessions").status, "it listens on the loopback interface as well")
}
