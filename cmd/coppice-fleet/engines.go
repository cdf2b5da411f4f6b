package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/coppice-run/coppice/cmd/internal/cli"
	"github.com/coppice-run/coppice/fleet"
)

// encrypted are the directories that are reached over TLS, with certificates that say who
// is who, so that they may be on other machines.
var encrypted = []string{"etcds", "kubernetes"}

// open opens the directory of a fleet, whose URLs say what it stands on.
func open(ctx context.Context, o cli.DirectoryOptions) (d fleet.Directory, stop func() error, err error) {
	kind := o.URLs[0].Scheme
	for _, u := range o.URLs {
		if u.Scheme != kind {
			return nil, nil, usage("the servers of a directory are of one kind, and not at %s:// and at %s://", kind, u.Scheme)
		}
	}
	if kind == "nats" {
		return openNATS(ctx, o)
	}
	switch {
	case o.Embed > 0:
		return nil, nil, usage("--fleet-embed runs servers of NATS: leave it out with %s://", kind)
	case o.Synced:
		return nil, nil, usage("--fleet-synced vouches for servers of NATS: leave it out with %s://", kind)
	}
	switch kind {
	case "etcd", "etcds":
		d, err = openEtcd(ctx, o)
	case "kubernetes":
		d, err = openKubernetes(ctx, o)
	default:
		err = usage("%s:// is no directory that this program knows: it knows nats://HOST:PORT, etcd://HOST:PORT, etcds://HOST:PORT and kubernetes://NAMESPACE", kind)
	}
	if err != nil {
		return nil, nil, err
	}
	return d, d.Close, nil
}

// usage is an error about the command line.
func usage(format string, args ...any) error {
	return fmt.Errorf("%w: %w", cli.ErrFleetUsage, fmt.Errorf(format, args...))
}

// haveServers wants each URL to be a server's; such servers are usually at a port.
func haveServers(o cli.DirectoryOptions, port string) error {
	for _, u := range o.URLs {
		if u.Hostname() == "" || u.Port() == "" || u.Path != "" {
			return usage("%q is no server of a directory; one is like %s://127.0.0.1:%s", u.Redacted(), u.Scheme, port)
		}
	}
	return nil
}

// parameters takes what stands behind the '?' of the first URL, where alone it may be, and
// which has to be some of those names.
func parameters(o cli.DirectoryOptions, names ...string) (url.Values, error) {
	var values url.Values
	for i, u := range o.URLs {
		given, err := url.ParseQuery(u.RawQuery)
		if err != nil {
			return nil, usage("what stands behind the '?' of %s: %w", u.Redacted(), err)
		}
		if i == 0 {
			values = given
		} else if len(given) > 0 {
			return nil, usage("what stands behind the '?' is said once, with the first server: not with %s", u.Redacted())
		}
	}
	for name := range values {
		if !slices.Contains(names, name) {
			return nil, usage("%q is none of what may stand behind the '?' of %s://: %q", name, o.URLs[0].Scheme, names)
		}
	}
	return values, nil
}

// await tries to open a directory until it is there. What is final is not tried again; what
// else is in the way is told once, as the first nodes of a fleet wait for each other.
func await[D fleet.Directory](ctx context.Context, o cli.DirectoryOptions, try func(context.Context) (D, error), final func(error) bool) (D, error) {
	var none D
	told := ""
	for {
		once, cancel := context.WithTimeout(ctx, 5*time.Second)
		d, err := try(once)
		cancel()
		if err == nil {
			return d, nil
		}
		if final(err) || ctx.Err() != nil {
			return none, err
		}
		if told != err.Error() {
			told = err.Error()
			o.Logger.Warn("the directory of the fleet cannot be used yet; the first nodes wait for each other", "error", err)
		}
		select {
		case <-ctx.Done():
			return none, ctx.Err()
		case <-time.After(250 * time.Millisecond):
		}
	}
}
