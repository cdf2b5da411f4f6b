package cli

import (
	"log/slog"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/e2b"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
)

// dialect makes what serves E2B's SDKs, and the parts of the server that it is; those are
// there only when they were asked for.
func (f serveFlags) dialect(host *coppice.Host, logger *slog.Logger) (*e2b.API, []httpserver.Mount) {
	api := e2b.New(e2b.Options{Host: host, Logger: logger})
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
