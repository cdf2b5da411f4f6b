package fleettest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// Certificates are files of a certificate authority, of a server of it on the loopback
// interface, which is a client, too, of a client of it, and of a server of the name Sandbox, which
// is no client. They go with the test.
type Certificates struct {
	CA, Cert, Key           string
	ClientCert, ClientKey   string
	SandboxCert, SandboxKey string
}

// Sandbox is the name of the server that is no client.
const Sandbox = "coppice-sandbox"

// NewCertificates makes them.
func NewCertificates(t *testing.T) Certificates {
	t.Helper()
	dir := t.TempDir()
	now := time.Now()
	template := func(serial int64, name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
			NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
			BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature,
		}
	}
	ca := template(1, "the authority of a test")
	ca.IsCA, ca.KeyUsage = true, x509.KeyUsageCertSign
	caCert, caKey, caPEM, _ := sign(t, ca, nil, nil)
	server := template(2, "a server of a test")
	server.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	server.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	_, _, cert, key := sign(t, server, caCert, caKey)
	client := template(3, "a client of a test")
	client.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	_, _, clientCert, clientKey := sign(t, client, caCert, caKey)
	sandbox := template(4, "a sandbox of a test")
	sandbox.DNSNames, sandbox.ExtKeyUsage = []string{Sandbox}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	_, _, sandboxCert, sandboxKey := sign(t, sandbox, caCert, caKey)
	return Certificates{
		CA:   write(t, caPEM, dir, "ca.pem"),
		Cert: write(t, cert, dir, "cert.pem"), Key: write(t, key, dir, "key.pem"),
		ClientCert: write(t, clientCert, dir, "client.pem"), ClientKey: write(t, clientKey, dir, "client-key.pem"),
		SandboxCert: write(t, sandboxCert, dir, "sandbox.pem"), SandboxKey: write(t, sandboxKey, dir, "sandbox-key.pem"),
	}
}

// sign makes a certificate, by itself where there is no authority.
func sign(t *testing.T, c, by *x509.Certificate, with *ecdsa.PrivateKey) (made *x509.Certificate, key *ecdsa.PrivateKey, certPEM, keyPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if by == nil {
		by, with = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by, key.Public(), with)
	if err != nil {
		t.Fatal(err)
	}
	if made, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return made, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})
}
