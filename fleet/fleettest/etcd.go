package fleettest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
)

// Etcd is a cluster of real members, each a process. It ends with the test.
type Etcd struct{ Members []EtcdMember }

// EtcdMember is one of them.
type EtcdMember struct {
	*Process
	URL string
}

// StartEtcd starts members on the loopback interface, and returns when they answer. With
// certificates they want one of their clients.
func StartEtcd(t *testing.T, members int, with *Certificates) *Etcd {
	t.Helper()
	path := program(t, "COPPICE_TEST_ETCD")
	at, scheme := ports(t, 2*members), "http"
	var secure []string
	if with != nil {
		scheme = "https"
		secure = []string{"--client-cert-auth", "--trusted-ca-file", with.CA, "--cert-file", with.Cert, "--key-file", with.Key}
	}
	cluster := make([]string, members)
	for i := range cluster {
		cluster[i] = fmt.Sprintf("m%d=http://%s", i, at[2*i+1])
	}
	e := &Etcd{}
	for i := range members {
		url, peer := scheme+"://"+at[2*i], "http://"+at[2*i+1]
		args := append([]string{
			path, "--name", fmt.Sprintf("m%d", i), "--data-dir", t.TempDir(), "--log-level", "error",
			"--listen-client-urls", url, "--advertise-client-urls", url,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", strings.Join(cluster, ","),
			// A busy machine is no reason to elect another leader.
			"--heartbeat-interval", "300", "--election-timeout", "3000",
		}, secure...)
		p := &Process{name: "etcd m" + fmt.Sprint(i), args: args, ready: answers(t, url+"/health", "", with)}
		t.Cleanup(func() { p.finish(t) })
		p.Launch(t)
		e.Members = append(e.Members, EtcdMember{Process: p, URL: url})
	}
	for _, m := range e.Members {
		m.Ready(t)
	}
	return e
}

// URLs are where clients come.
func (e *Etcd) URLs() []string {
	var urls []string
	for _, m := range e.Members {
		urls = append(urls, m.URL)
	}
	return urls
}

// Kill ends all members.
func (e *Etcd) Kill() {
	for _, m := range e.Members {
		m.Kill()
	}
}

// Start starts all members again, and returns when they answer.
func (e *Etcd) Start(t *testing.T) {
	t.Helper()
	for _, m := range e.Members {
		m.Launch(t)
	}
	for _, m := range e.Members {
		m.Ready(t)
	}
}

// answers returns what reports whether a URL answers with 200. A token is shown, if any.
func answers(t *testing.T, url, token string, with *Certificates) func(context.Context) bool {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	if with != nil {
		pem, err := os.ReadFile(with.CA)
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.LoadX509KeyPair(with.ClientCert, with.ClientKey)
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	client := &http.Client{Transport: transport}
	return func(ctx context.Context) bool {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := client.Do(req)
		if err != nil {
			return false
		}
		_ = resp.Body.Close() // its status is enough
		return resp.StatusCode == http.StatusOK
	}
}
