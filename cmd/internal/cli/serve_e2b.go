package cli

import (
	"context"
	"errors"
	"log/slog"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/e2b"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/hibernate"
)

// startServer starts the host of a server. One that serves E2B's SDKs keeps sessions on
// disk as a whole, for sandboxes that are paused, where its backend can, unless it keeps them
// otherwise: whether it does is known when that was chosen.
func (a *app) startServer(ctx context.Context, f serveFlags, o coppice.Options) (host *console.Host, keeps bool, err error) {
	if o.Hibernate == "" && f.e2b && f.Backend != "gateway" {
		with := o
		with.Hibernate = hibernate.Lossless
		if host, err = a.StartHost(ctx, f.HostFlags, coppice.GatewayOptions{}, with); !errors.Is(err, coppice.ErrOptions) {
			return host, err == nil, err
		}
	}
	host, err = a.StartHost(ctx, f.HostFlags, coppice.GatewayOptions{}, o)
	return host, err == nil && o.Hibernate == hibernate.Lossless, err
}

// dialect makes what serves E2B's SDKs, and the parts of the server that it is; those are
// there only when they were asked for.
func (f serveFlags) dialect(host *coppice.Host, keeps bool, logger *slog.Logger) (*e2b.API, []httpserver.Mount) {
	api := e2b.New(e2b.Options{Host: host, Keeps: keeps, Logger: logger})
	if !f.e2b {
		return api, nil
	}
	return api, api.Mounts()
}

// tellE2B prints what E2B's SDKs have to find in their environment. The key is the token
// of the server: only a terminal is given it.
func (a *app) tellE2B(r client.Record, path string) {
	at := r.URL + e2b.Base
	a.Out.Lines("for E2B's SDKs:", "  export E2B_API_URL="+at, "  export E2B_SANDBOX_URL="+at)
	if a.Out.Terminal {
		a.Out.Lines("  export E2B_API_KEY=" + r.Token)
	} else {
		a.Out.Lines("  and E2B_API_KEY: the token in " + path)
	}
}
