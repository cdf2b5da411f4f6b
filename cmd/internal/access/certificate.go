package access

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/file"
)

// ErrCertificate is matched by the error for a certificate that cannot be used.
var ErrCertificate = errors.New("the certificate cannot be used")

// maxPEM bounds a file of certificates or keys, in bytes.
const maxPEM = 4 << 20

// Files are those that a server's TLS is made of.
type Files struct {
	// Cert has the certificate and those that it was signed with, Key its key, for the
	// server's user alone. Required.
	Cert, Key string
	// ClientCA has the certificates that those of clients have to be signed with. "": clients
	// need none.
	ClientCA string
}

// Certificate is that of a server, as it is on disk now. Any goroutine may use it.
type Certificate struct {
	files  Files
	logger *slog.Logger

	mu     sync.Mutex
	seen   []fs.FileInfo // of the files that config was made of; guarded by mu
	config *tls.Config   // guarded by mu
	leaf   *x509.Certificate
	why    string // why the files as they are cannot be used; guarded by mu
}

// LoadCertificate reads the files. The error matches ErrCertificate or ErrOpenToOthers.
func LoadCertificate(ctx context.Context, f Files, logger *slog.Logger) (*Certificate, error) {
	c := &Certificate{files: f, logger: logger}
	if err := c.loadLocked(ctx); err != nil {
		return nil, err
	}
	if now := time.Now(); now.After(c.leaf.NotAfter) {
		return nil, fmt.Errorf("%w: that in %s has expired on %s; renew it", ErrCertificate, f.Cert, c.leaf.NotAfter.Format(time.DateOnly))
	}
	return c, nil
}

// TLS is the configuration of a server. Each connection begins with the files as they are
// then; while those cannot be used, with what was there before.
func (c *Certificate) TLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.now(), nil },
	}
}

// Client is the configuration of who shows this certificate to servers that have to have one
// which Files.ClientCA has signed. It is of the files as they are now, and for one connection.
func (c *Certificate) Client() *tls.Config {
	now := c.now()
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: now.Certificates, RootCAs: now.ClientCAs, NextProtos: now.NextProtos}
}

// Named reports whether the certificate is for a host.
func (c *Certificate) Named(host string) bool {
	c.mu.Lock()
	leaf := c.leaf
	c.mu.Unlock()
	return leaf.VerifyHostname(host) == nil
}

// now is the configuration, of the files as they are now.
func (c *Certificate) now() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unchangedLocked() {
		return c.config
	}
	if err := c.loadLocked(context.Background()); err != nil {
		if why := err.Error(); why != c.why {
			c.why = why
			c.logger.Error("the certificate on disk cannot be used; the one before still is", "err", err)
		}
		return c.config
	}
	c.why = ""
	c.logger.Info("the certificate was read again", "until", c.leaf.NotAfter)
	return c.config
}

// paths are the files that there are.
func (f Files) paths() []string {
	if f.ClientCA == "" {
		return []string{f.Cert, f.Key}
	}
	return []string{f.Cert, f.Key, f.ClientCA}
}

func (c *Certificate) unchangedLocked() bool {
	for i, path := range c.files.paths() {
		info, err := os.Stat(path)
		if err != nil || !same(info, c.seen[i]) {
			return false
		}
	}
	return true
}

// loadLocked reads the files. c.mu is held, or c is no one else's yet.
func (c *Certificate) loadLocked(ctx context.Context) error {
	var seen []fs.FileInfo
	for _, path := range c.files.paths() { // before they are read: what changes meanwhile is read again
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrCertificate, err)
		}
		seen = append(seen, info)
	}
	cert, err := file.Read(ctx, c.files.Cert, maxPEM)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCertificate, err)
	}
	key, _, err := readPrivate(ctx, c.files.Key)
	if err != nil {
		return fmt.Errorf("%w: read its key: %w", ErrCertificate, err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("%w: %s with the key %s: %w", ErrCertificate, c.files.Cert, c.files.Key, err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true, Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}
	if c.files.ClientCA != "" {
		data, err := file.Read(ctx, c.files.ClientCA, maxPEM)
		if err != nil {
			return fmt.Errorf("%w: read those that clients' are signed with: %w", ErrCertificate, err)
		}
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		if !config.ClientCAs.AppendCertsFromPEM(data) {
			return fmt.Errorf("%w: %s holds no certificate", ErrCertificate, c.files.ClientCA)
		}
	}
	c.seen, c.config, c.leaf = seen, config, pair.Leaf
	return nil
}
