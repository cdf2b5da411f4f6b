//go:build linux

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/test/external"
	"github.com/coppice-run/coppice/test/proc"
)

// What points the command at a server that somebody else runs. An Enterprise
// Gateway starts no kernels for root.
const (
	gatewayURL   = "PI_PYTHON_GATEWAY_URL"
	gatewayToken = "PI_PYTHON_GATEWAY_TOKEN"
	kernelUser   = "KERNEL_USERNAME"
)

// TestScriptsOnExternalServers runs the scripts that run cells with the kernels
// of servers that are there, with their default settings.
func TestScriptsOnExternalServers(t *testing.T) {
	names := elsewhere
	if full {
		names = append([]string{"run", "failures", "signals"}, names...)
	}
	for _, kind := range external.Kinds(external.KernelGateway) {
		t.Run(string(kind), func(t *testing.T) {
			server := external.Start(t, kind, external.Options{BasePath: "/some/base"})
			p := params(t, map[string]string{gatewayURL: server.URL + "/", gatewayToken: server.Token, kernelUser: "somebody"})
			for _, name := range names {
				p.Files = append(p.Files, filepath.Join(scriptDir, name+".txtar"))
			}
			t.Run("scripts", func(t *testing.T) { testscript.Run(t, p) })
			require.True(t, eventually(func() bool { return len(proc.WithEnv("HOME", server.Dir)) == 1 }), "kernels are left behind")
			require.NotContains(t, server.Log(), server.Token)
		})
	}
}

// TestWrongExternalServers runs the scripts about servers that cannot be used, and
// about one that speaks https: SECURE is its address, CERT its certificate.
func TestWrongExternalServers(t *testing.T) {
	server := external.Start(t, external.KernelGateway, external.Options{})
	cert, key := certificate(t)
	secure := external.Start(t, external.KernelGateway, external.Options{CertFile: cert, KeyFile: key, BasePath: "/base"})
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	nobody, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, nobody.Close())
	p := params(t, map[string]string{
		"SERVER": server.URL, "SERVER_TOKEN": server.Token, "SECURE": secure.URL, "SECURE_TOKEN": secure.Token, "CERT": cert,
		"SILENT": "http://" + silent.Addr().String(), "NOBODY": "http://" + nobody.Addr().String(),
	})
	p.Dir = filepath.Join(scriptDir, "external")
	t.Run("scripts", func(t *testing.T) { testscript.Run(t, p) })
	for _, s := range []*external.Server{server, secure} {
		require.NotContains(t, s.Log(), "wrong-secret")
		require.NotContains(t, s.Log(), s.Token)
	}
}

// certificate makes a certificate for 127.0.0.1 that nobody has signed.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "127.0.0.1"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, private.Public(), private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	return cert, key
}
