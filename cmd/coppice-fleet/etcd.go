package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/coppice-run/coppice/cmd/internal/cli"
	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/fleet/etcdkv"
)

// openEtcd opens a directory over etcd. etcds:// is over TLS; ca, cert and key are the files
// for it, and prefix is what the keys of the fleet begin with.
func openEtcd(ctx context.Context, o cli.DirectoryOptions) (fleet.Directory, error) {
	if err := haveServers(o, "2379"); err != nil {
		return nil, err
	}
	given, err := parameters(o, "ca", "cert", "key", "prefix")
	if err != nil {
		return nil, err
	}
	with := etcdkv.Options{Prefix: given.Get("prefix"), Lease: o.TTL}
	scheme := "http"
	if o.URLs[0].Scheme == "etcds" {
		scheme = "https"
		if with.TLS, err = certificates(given.Get("ca"), given.Get("cert"), given.Get("key")); err != nil {
			return nil, err
		}
	} else if given.Has("ca") || given.Has("cert") || given.Has("key") {
		return nil, usage("certificates are for etcds://, and etcd:// is not encrypted")
	}
	for _, u := range o.URLs {
		with.Endpoints = append(with.Endpoints, scheme+"://"+u.Host)
	}
	return await(ctx, o, func(try context.Context) (*etcdkv.Directory, error) { return etcdkv.Open(try, with) }, func(err error) bool {
		return errors.Is(err, rpctypes.ErrPermissionDenied) || errors.Is(err, rpctypes.ErrUserEmpty) || errors.Is(err, rpctypes.ErrInvalidAuthToken) ||
			// gRPC has made a text of it.
			strings.Contains(err.Error(), "tls: ") || strings.Contains(err.Error(), "x509: ")
	})
}

// certificates reads those of etcds://: ca is who has signed the servers', "" for those that
// the machine trusts; cert and key are this program's own, "" for none.
func certificates(ca, cert, key string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("read ca of --fleet: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read ca of --fleet: there is no certificate as PEM in %s", ca)
		}
	}
	if (cert == "") != (key == "") {
		return nil, usage("cert and key of etcds:// go together")
	}
	if cert == "" {
		return c, nil
	}
	if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
		return nil, fmt.Errorf("read cert and key of --fleet: %w", err)
	}
	// They are read for each connection, as they are renewed.
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
		return &pair, err
	}
	return c, nil
}
