package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/cmd/internal/access"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/internal/inbound"
	"github.com/coppice-run/coppice/internal/opportunity"
)

// between are the flags by which the nodes of a fleet reach each other from other machines.
// Whoever comes there shows a certificate of the fleet's authority, and its token.
type between struct {
	addr  string
	files access.Files
}

func (b *between) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&b.addr, "fleet-listen", "", "serve nodes and clients on other machines on this address too, over TLS: 0.0.0.0:7443; it takes --fleet-cert, --fleet-key and --fleet-ca, and --fleet-url says how others call it")
	flags.StringVar(&b.files.Cert, "fleet-cert", "", "the certificate of this node, as a server and as a client of other nodes, and those that it was signed with, as PEM; one that is renewed is read again")
	flags.StringVar(&b.files.Key, "fleet-key", "", "the key of --fleet-cert, of mode 0600")
	flags.StringVar(&b.files.ClientCA, "fleet-ca", "", "who has signed the certificates of nodes and of their clients, as PEM")
}

// check refuses flags that do not go together. at is --fleet-url. The error is a UsageError.
func (b *between) check(at string) error {
	given := []struct {
		name string
		is   bool
	}{{"--fleet-cert", b.files.Cert != ""}, {"--fleet-key", b.files.Key != ""}, {"--fleet-ca", b.files.ClientCA != ""}}
	var lack []string
	for _, one := range given {
		if b.addr == "" && one.is {
			return console.Usagef("%s is for --fleet-listen: without that, a node listens on the loopback interface alone", one.name)
		}
		if !one.is {
			lack = append(lack, one.name)
		}
	}
	if b.addr == "" {
		return nil
	}
	if len(lack) > 0 {
		return console.Usagef("--fleet-listen needs %s: on other machines a node serves those alone who have a certificate of the fleet's authority, and its token", strings.Join(lack, " and "))
	}
	host, _, err := net.SplitHostPort(b.addr)
	if err != nil {
		return console.Usagef("--fleet-listen: %q is not HOST:PORT; one is like 0.0.0.0:7443", b.addr)
	}
	if ip, err := netip.ParseAddr(host); at == "" && (host == "" || err == nil && ip.IsUnspecified()) {
		return console.Usagef("--fleet-listen: nobody can call a node at %s: say with --fleet-url how others do, by a name of its certificate: https://node-1.example.com:7443", b.addr)
	}
	return nil
}

// checkURL looks at --fleet-url. The error is a UsageError.
func (b *between) checkURL(at string) error {
	if at == "" {
		return nil
	}
	scheme, like := "http", "http://127.0.0.1:7788"
	if b.addr != "" {
		scheme, like = "https", "https://node-1.example.com:7443, as --fleet-listen speaks TLS"
	}
	u, err := url.Parse(at)
	if err != nil || u.Scheme != scheme || u.Host == "" || u.Path != "" || u.User != nil {
		return console.Usagef("--fleet-url: %q is not like %s", at, like)
	}
	return nil
}

// farNode is where other machines reach a node, and how it reaches those of other machines.
type farNode struct {
	certificate *access.Certificate
	transport   *http.Transport
	server      *httpserver.Server
}

// open reads the certificate of the node.
func (b *between) open(ctx context.Context, logger *slog.Logger) (*farNode, error) {
	certificate, err := access.LoadCertificate(ctx, b.files, logger)
	if err != nil {
		return nil, fmt.Errorf("serve --fleet-listen: %w", err)
	}
	n := &farNode{certificate: certificate}
	n.transport = &http.Transport{
		MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute, ExpectContinueTimeout: inbound.ContinueTimeout,
		// Each connection begins with the certificates as they are then.
		DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return reach(ctx, dialing, certificate.Client(), network, addr)
		},
	}
	return n, nil
}

// dialing is how long another node may take to be reached and to show its certificate. Whoever
// sends a request on may wait for longer: they ask again.
var dialing = opportunity.Budget{Opportunity: 10 * time.Second, Ceiling: time.Minute}

// reach connects to another node over TLS, within a budget. The error is of the kind by which
// it is known that nothing of a request was sent.
func reach(ctx context.Context, b opportunity.Budget, config *tls.Config, network, addr string) (net.Conn, error) {
	bound, done := opportunity.Within(ctx, b, nil)
	defer done()
	d := tls.Dialer{Config: config}
	conn, err := d.DialContext(bound, network, addr)
	if err == nil {
		return conn, nil
	}
	if spent, ok := errors.AsType[*opportunity.SpentError](context.Cause(bound)); ok {
		err = spent
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return nil, err
	}
	return nil, &net.OpError{Op: "dial", Net: network, Err: fmt.Errorf("TLS to %s: %w", addr, err)}
}

// listen takes the address. Requests wait until serve is called.
func (n *farNode) listen(ctx context.Context, addr, token string, o httpserver.Options, mounts []httpserver.Mount) error {
	o.Addr, o.Token = addr, token
	o.Beyond = &httpserver.Beyond{
		TLS: n.certificate.TLS(), Named: n.certificate.Named,
		Wrap: func(own http.Handler) http.Handler { return own },
	}
	server, err := httpserver.Listen(ctx, o, mounts...)
	switch {
	case errors.Is(err, httpserver.ErrAddress):
		return console.UsageError{Err: fmt.Errorf("--fleet-listen: %w", err)}
	case err != nil:
		return fmt.Errorf("serve --fleet-listen: %w", err)
	}
	n.server = server
	return nil
}

// serve serves until ctx ends; within ends with it, and when serving fails. end is called once
// ctx has ended, and returns when nothing is served any more.
func (n *farNode) serve(ctx context.Context) (within context.Context, end func() error) {
	within, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { // ends with within; end joins it
		err := n.server.Serve(within)
		stop()
		ended <- err
	}()
	return within, func() error {
		stop()
		n.transport.CloseIdleConnections()
		return <-ended
	}
}
