package cli

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/e2b"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/hibernate"
)

// startServer starts the host of a server. One that serves E2B's SDKs keeps sessions on
// disk as a whole, for sandboxes that are paused, where its backend can, unless it keeps them
// otherwise: whether it does is known when that was chosen.
func (a *app) startServer(ctx context.Context, f serveFlags, o coppice.Options) (host *console.Host, keeps bool, err error) {
	kept := f.member == nil || f.member.records != nil // in a fleet, where all nodes have it
	if o.Hibernate == "" && kept && (f.e2b || f.e2bDebug) && f.Backend != "gateway" {
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
	o := e2b.Options{Host: host, Keeps: keeps, Logger: logger}
	if f.member != nil {
		o.Secret, o.Elsewhere = f.member.sandboxes()
	}
	api := e2b.New(o)
	if !f.e2b {
		return api, nil
	}
	return api, api.Mounts()
}

// sandboxes is what the tokens of the fleet's sandboxes are made of, and who lists those of the
// other nodes.
func (m *membership) sandboxes() (secret []byte, elsewhere func(context.Context) []string) {
	sum := hmac.New(sha256.New, []byte(m.token))
	_, _ = sum.Write([]byte("sandboxes of a fleet")) // a hash takes all
	return sum.Sum(nil), func(ctx context.Context) []string { return m.node.Workspaces(ctx, m.token) }
}

// debug serves the sandbox of E2B_DEBUG, if it was asked for, at its addresses. end ends that,
// and waits for it.
func (f serveFlags) debug(ctx context.Context, api *e2b.API, logger *slog.Logger) (end func() error, err error) {
	if !f.e2bDebug {
		return func() error { return nil }, nil
	}
	life, cancel := context.WithCancel(ctx)
	var failed []chan error
	end = func() error {
		cancel()
		var err error
		for _, one := range failed {
			err = errors.Join(err, <-one)
		}
		return err
	}
	for _, addr := range e2b.DebugAddrs {
		server, err := httpserver.Listen(ctx, httpserver.Options{Addr: addr, Logger: logger}, api.Debug())
		if err != nil {
			return nil, errors.Join(fmt.Errorf("serve --e2b-debug: %w", err), end())
		}
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(life) }() // ends with life; end joins it
		failed = append(failed, ended)
	}
	logger.Warn("everyone on this machine can run code as you: --e2b-debug asks for no token", "at", e2b.DebugAddrs)
	return end, nil
}
