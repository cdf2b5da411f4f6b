package main

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/coppice-run/coppice/cmd/internal/cli"
	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/fleet/agentsandbox"
)

// openSandboxes opens the sandboxes of kubernetes://NAMESPACE?template=NAME. kubeconfig and context
// say which cluster, fleet which of several fleets of a namespace, lifetime after how long a sandbox
// is deleted, and port where its server listens.
func openSandboxes(ctx context.Context, o cli.SandboxOptions) (fleet.Sandboxes, error) {
	if o.URL.Scheme != "kubernetes" {
		return nil, usage("%s:// makes no sandboxes that this program knows: it knows kubernetes://NAMESPACE?template=NAME", o.URL.Scheme)
	}
	of := cli.DirectoryOptions{URLs: []*url.URL{o.URL}, Logger: o.Logger}
	given, err := parameters(of, "kubeconfig", "context", "fleet", "template", "lifetime", "port")
	if err != nil {
		return nil, err
	}
	with := agentsandbox.Options{Template: given.Get("template"), Fleet: given.Get("fleet"), Server: o.Server}
	if with.Template == "" {
		return nil, usage("--sandboxes names the SandboxTemplate: kubernetes://NAMESPACE?template=NAME")
	}
	if text := given.Get("lifetime"); text != "" {
		if with.Lifetime, err = time.ParseDuration(text); err != nil || with.Lifetime < time.Second {
			return nil, usage("lifetime=%s of --sandboxes is no time of a second or more, such as 24h", text)
		}
	}
	if text := given.Get("port"); text != "" {
		if with.Port, err = strconv.Atoi(text); err != nil || with.Port < 1 || with.Port > 65535 {
			return nil, usage("port=%s of --sandboxes is no port", text)
		}
	}
	if with.Config, with.Namespace, err = cluster(of, given); err != nil {
		return nil, err
	}
	return agentsandbox.Open(ctx, with)
}
