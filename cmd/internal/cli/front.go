package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/access"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	fronts "github.com/coppice-run/coppice/cmd/internal/fleetapi/front"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/cmd/internal/version"
	"github.com/coppice-run/coppice/fleet"
)

// SandboxOptions say where the sandboxes of a front are.
type SandboxOptions struct {
	// URL is that of --sandboxes.
	URL *url.URL
	// Server asks the server at a URL which life of it answers.
	Server func(ctx context.Context, at string) (life string, err error)
	Logger *slog.Logger
}

// frontFlags are those of a front of sandboxes.
type frontFlags struct {
	sandboxes string
	addr      string
	host      string
	patience  time.Duration
	json      bool
	between   between
	// inner is what sandboxes know the front by; without files it is what clients do.
	inner access.Files
}

// sandboxToken is the variable that has what sandboxes are shown.
const sandboxToken = "COPPICE_SANDBOX_TOKEN"

func (a *app) frontCommand() *cobra.Command {
	var f frontFlags
	cmd := console.Command{
		Use:   "front",
		Short: "Give each workspace a sandbox of its own, and send calls on to it",
		Long: `Serve the HTTP API of "coppice serve" without a session of its own: each workspace, and
each session that is in none, has a sandbox for itself, which agent-sandbox makes in a cluster
of Kubernetes. Its pod runs "coppice serve --listen". What is in one sandbox shares neither a
process nor, where the pod has a virtual machine, a kernel with what is in another.

The first call of a name has its sandbox made; DELETE of the workspace, or of the session, ends
it. Any number of fronts may run: they own nothing. docs/fleet.md has what a call is told.

Clients show the token of COPPICE_TOKEN, and on other machines a certificate of --fleet-ca.
The sandboxes are shown --sandbox-cert and the token of ` + sandboxToken + `, which no client knows.`,
		Example: `  COPPICE_TOKEN=... ` + sandboxToken + `=... ` + a.engines.Program + ` front --sandboxes 'kubernetes://agents?template=coppice' \
      --fleet-listen 0.0.0.0:7443 --fleet-cert front.pem --fleet-key front-key.pem --fleet-ca ca.pem`,
		Run: func(ctx context.Context, _ []string) error { return a.front(ctx, f) },
	}.Make()
	flags := cmd.Flags()
	flags.StringVar(&f.sandboxes, "sandboxes", "", "where sandboxes are made, and of which SandboxTemplate: kubernetes://NAMESPACE?template=NAME, with kubeconfig, context, fleet, lifetime and port")
	flags.StringVar(&f.addr, "addr", httpserver.DefaultAddr, "the loopback address to listen on; port 0 takes a free one")
	flags.StringVar(&f.host, "sandbox-name", "coppice-sandbox", "the name in the certificate of sandboxes")
	f.patience = 2 * time.Minute
	flags.Var((*console.Time)(&f.patience), "patience", "how long a call waits for a sandbox to be there: seconds, or a time such as 2m")
	flags.BoolVar(&f.json, "json", false, "print where it listens as one JSON object")
	f.between.add(cmd)
	flags.StringVar(&f.inner.Cert, "sandbox-cert", "", "the certificate that sandboxes are shown, as PEM (default: --fleet-cert)")
	flags.StringVar(&f.inner.Key, "sandbox-key", "", "the key of --sandbox-cert, of mode 0600")
	flags.StringVar(&f.inner.ClientCA, "sandbox-ca", "", "who has signed the certificates of sandboxes, and of fronts as their clients, as PEM: best an authority that signs for nobody else")
	return cmd
}

// check looks at the flags. The error is a UsageError.
func (f *frontFlags) check(a *app) (*url.URL, error) {
	if err := a.CheckToken("COPPICE_TOKEN", sandboxToken); err != nil {
		return nil, err
	}
	u, err := url.Parse(f.sandboxes)
	switch {
	case f.sandboxes == "" || err != nil || u.Scheme == "":
		return nil, console.Usagef("--sandboxes: %q is not like kubernetes://NAMESPACE?template=NAME", f.sandboxes)
	case u.User != nil:
		return nil, console.Usagef("--sandboxes: leave the user and the password out of %s: whoever lists the processes of this machine sees them", u.Redacted())
	case f.between.addr == "":
		return nil, console.Usagef("a front needs --fleet-listen, --fleet-cert, --fleet-key and --fleet-ca: by its certificate sandboxes know it, and clients on other machines")
	case len(a.Token("COPPICE_TOKEN")) < 16:
		return nil, console.Usagef("all fronts have one token: set COPPICE_TOKEN, of at least 16 characters")
	case a.Token(sandboxToken) == "":
		return nil, console.Usagef("set %s to the token that sandboxes take: coppice token create --tokens FILE --tenant front makes it, and the file that they are given", sandboxToken)
	case a.Token(sandboxToken) == a.Token("COPPICE_TOKEN"):
		return nil, console.Usagef("%s is what sandboxes are shown, whose code may learn it: it has to be another one than COPPICE_TOKEN", sandboxToken)
	case (f.inner.Cert == "") != (f.inner.Key == "") || (f.inner.Cert == "") != (f.inner.ClientCA == ""):
		return nil, console.Usagef("--sandbox-cert, --sandbox-key and --sandbox-ca go together")
	case f.patience <= 0:
		return nil, console.Usagef("--patience must be longer than nothing, not %s", f.patience)
	}
	return u, f.between.check("https://" + f.between.addr)
}

func (a *app) front(ctx context.Context, f frontFlags) error {
	at, err := f.check(a)
	if err != nil {
		return err
	}
	path, err := client.RecordPath(client.FindOptions{Env: a.Env})
	if err != nil {
		return err
	}
	if r, there, err := client.ReadRecord(path); err == nil && there && r.Runs() {
		return fmt.Errorf("another server runs: process %d at %s; end it, or give this one a folder of its own with COPPICE_HOME", r.PID, r.URL)
	}
	logger := slog.New(slog.NewTextHandler(a.Err, nil))
	far, err := f.between.open(ctx, logger)
	if err != nil {
		return err
	}
	inner := far
	if f.inner.Cert != "" {
		if inner, err = (&between{files: f.inner}).open(ctx, logger); err != nil {
			return err
		}
	}
	transport := inner.named(f.host)
	defer transport.CloseIdleConnections()
	sandboxes, err := a.engines.Sandboxes(ctx, SandboxOptions{
		URL: at, Logger: logger, Server: func(ctx context.Context, at string) (string, error) {
			return fronts.AskServer(ctx, transport, f.host, at)
		},
	})
	switch {
	case errors.Is(err, ErrFleetUsage):
		return console.UsageError{Err: err}
	case err != nil:
		return fmt.Errorf("open the sandboxes: %w", err)
	}
	err = a.serveFront(ctx, f, path, sandboxes, far, transport, logger)
	return errors.Join(err, sandboxes.Close())
}

// serveFront serves until ctx ends.
func (a *app) serveFront(ctx context.Context, f frontFlags, path string, sandboxes fleet.Sandboxes, far *farNode, transport *http.Transport, logger *slog.Logger) error {
	m := newMetrics(version.Read())
	front := fronts.New(fronts.Options{
		Sandboxes: sandboxes, Transport: transport, Host: f.host, Token: a.Token(sandboxToken), Patience: f.patience, Metrics: m.registry, Logger: logger,
	})
	mounts := append(
		front.Mounts(),
		httpserver.Mount{Pattern: "GET /metrics", Handler: promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true}), Scope: httpserver.Read},
		httpserver.Mount{Pattern: "GET /api/health", Public: true, Scope: httpserver.Read, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			httpserver.JSON(w, http.StatusOK, client.Health{Status: "ok"})
		})},
	)
	o := httpserver.Options{Addr: f.addr, Token: a.Token("COPPICE_TOKEN"), Logger: logger, Instrument: m.instrument}
	server, err := httpserver.Listen(ctx, o, mounts...)
	if errors.Is(err, httpserver.ErrAddress) {
		return console.UsageError{Err: err}
	}
	if err != nil {
		return err
	}
	if err := far.listen(ctx, f.between.addr, o.Token, o, mounts); err != nil {
		return errors.Join(err, server.Close())
	}
	record := server.Record("")
	if err := httpserver.WriteRecord(path, record); err != nil {
		return errors.Join(err, server.Close(), far.server.Close())
	}
	defer func() {
		if err := httpserver.RemoveRecord(path, record); err != nil && !errors.Is(err, os.ErrNotExist) {
			a.Err.Lines("coppice: " + err.Error())
		}
	}()
	if err := a.tellFront(f, path, server, far); err != nil {
		return errors.Join(err, server.Close(), far.server.Close())
	}
	within, end := far.serve(ctx)
	return errors.Join(server.Serve(within), end())
}

// tellFront says where a front listens.
func (a *app) tellFront(f frontFlags, path string, server *httpserver.Server, far *farNode) error {
	if f.json {
		return a.WriteJSON(map[string]any{"url": server.URL(), "listen_url": far.server.URL(), "token_file": path, "pid": os.Getpid()})
	}
	a.Out.Lines("sending calls on to sandboxes at "+server.URL()+", and at "+far.server.URL()+" for other machines", "the token is in "+path)
	return nil
}

// named is what calls servers that have a certificate for one name, whatever their addresses are.
func (n *farNode) named(host string) *http.Transport {
	t := n.transport.Clone()
	t.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		config := n.certificate.Client()
		config.ServerName = host
		return reach(ctx, dialing, config, network, addr)
	}
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS13, ServerName: host}
	return t
}
