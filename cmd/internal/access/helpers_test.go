package access_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/access"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
)

// pair is a certificate with its key, as PEM.
type pair struct {
	cert, key []byte
	parsed    *x509.Certificate
	private   *ecdsa.PrivateKey
}

// issue makes a certificate; by nil signs itself.
func issue(t *testing.T, name string, by *pair, until time.Time) *pair {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(t, err)
	c := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: until,
		DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: by == nil,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := c, private
	if by != nil {
		parent, signer = by.parsed, by.private
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &private.PublicKey, signer)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	text, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return &pair{
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text}), parsed, private,
	}
}

// write writes a pair into a folder.
func (p *pair) write(t *testing.T, dir string) access.Files {
	t.Helper()
	f := access.Files{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	require.NoError(t, os.WriteFile(f.Cert, p.cert, 0o644)) //nolint:gosec // everybody may read it
	require.NoError(t, os.WriteFile(f.Key, p.key, 0o600))
	return f
}

// client trusts a certificate alone, and shows one of its own if that is not nil.
func client(t *testing.T, trusted, own *pair) *http.Client {
	t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS13}
	config.RootCAs.AddCert(trusted.parsed)
	if own != nil {
		shown, err := tls.X509KeyPair(own.cert, own.key)
		require.NoError(t, err)
		config.Certificates = []tls.Certificate{shown}
	}
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// server is one that serves parts which only say whose they are.
type server struct {
	t      *testing.T
	url    string
	file   access.File
	tokens *access.Tokens
	client *http.Client
	audit  string
	asked  chan struct{} // for the end
	closed chan string   // tenants whose parts were closed
}

func serve(t *testing.T, change func(*access.Options)) *server {
	t.Helper()
	cert := issue(t, "localhost", nil, time.Now().Add(time.Hour))
	dir := t.TempDir()
	certificate, err := access.LoadCertificate(t.Context(), cert.write(t, dir), quiet)
	require.NoError(t, err)
	s := &server{t: t, client: client(t, cert, nil), audit: filepath.Join(dir, "access.jsonl"), asked: make(chan struct{}), closed: make(chan string, 16)}
	s.file, s.tokens = tokens(t)
	audit, err := access.OpenAudit(s.audit, quiet)
	require.NoError(t, err)
	o := access.Options{
		Addr: "127.0.0.1:0", Certificate: certificate, Tokens: s.tokens, May: func(string, []string) error { return nil },
		Start: s.start, Shutdown: func() { close(s.asked) }, Audit: audit, Logger: quiet,
		Public: []httpserver.Mount{{Pattern: "GET /{$}", Public: true, Scope: httpserver.Read, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}},
	}
	if change != nil {
		change(&o)
	}
	l, err := access.Listen(t.Context(), o)
	require.NoError(t, err)
	s.url = l.URL()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, audit.Close())
	})
	return s
}
