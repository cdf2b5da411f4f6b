package cli

import (
	"context"
	"log/slog"
	"path/filepath"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/cmd/internal/jupyterapi"
	"github.com/coppice-run/coppice/cmd/internal/version"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/messages"
)

// kernels makes what serves Jupyter's clients, and the parts of the server that it is; those
// are there only when they were asked for.
func (f serveFlags) kernels(host *coppice.Host, cwd string, logger *slog.Logger) (*jupyterapi.API, []httpserver.Mount) {
	o := jupyterapi.Options{Host: host, Cwd: cwd, Version: version.Read().Version, Logger: logger}
	// A node of a fleet leaves its sessions to the others, who know none of its kernels.
	if with := host.Options(); f.jupyter && f.member == nil && (with.KeepSessions || with.Hibernate != "" && with.Hibernate != hibernate.Never) {
		o.Left = filepath.Join(host.Dir(), "jupyter.json")
	}
	if f.member != nil {
		o.Own = func(ctx context.Context, key messages.SessionKey) (func(), error) { return f.member.node.Own(ctx, key) }
	}
	api := jupyterapi.New(o)
	if !f.jupyter {
		return api, nil
	}
	return api, api.Mounts()
}
