package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/coppice-run/coppice/cmd/internal/cli"
	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/fleet/natskv"
	"github.com/coppice-run/coppice/fleet/natskv/embed"
)

// routes is how far the port at which servers that run here find each other is from that of
// their clients.
const routes = 2000

// openNATS opens a directory over NATS JetStream, and runs the server of it that is to run in
// this process. Such servers sync their disks always; whoever names others has to vouch that
// they do.
func openNATS(ctx context.Context, o cli.DirectoryOptions) (d fleet.Directory, stop func() error, err error) {
	if err := haveServers(o, "4222"); err != nil {
		return nil, nil, err
	}
	if _, err := parameters(o); err != nil {
		return nil, nil, err
	}
	end := func() {}
	if o.Embed > 0 {
		s, err := serve(ctx, o)
		if err != nil {
			return nil, nil, err
		}
		end = s.Stop
	}
	bucket, err := connect(ctx, o)
	if err != nil {
		end()
		return nil, nil, err
	}
	return bucket, func() error {
		err := bucket.Close()
		end()
		return err
	}, nil
}

// serve runs one of the servers.
func serve(ctx context.Context, o cli.DirectoryOptions) (*embed.Server, error) {
	port := func(u *url.URL) (int, error) {
		n, err := strconv.Atoi(u.Port())
		if err != nil || n < 1 || n+routes > 65535 {
			return 0, fmt.Errorf("%w: the port of %s must be from 1 to %d: %d more is for the servers among themselves", cli.ErrFleetUsage, u.Host, 65535-routes, routes)
		}
		return n, nil
	}
	me := o.URLs[o.Embed-1]
	n, err := port(me)
	if err != nil {
		return nil, err
	}
	so := embed.Options{Dir: o.Dir, Host: me.Hostname(), Port: n, Token: secret(o), Name: "coppice-" + strconv.Itoa(o.Embed)}
	if len(o.URLs) > 1 {
		so.ClusterPort = n + routes
		for _, u := range o.URLs {
			other, err := port(u)
			if err != nil {
				return nil, err
			}
			if u != me {
				so.Peers = append(so.Peers, net.JoinHostPort(u.Hostname(), strconv.Itoa(other+routes)))
			}
		}
	}
	s, err := embed.Start(ctx, so)
	if err != nil {
		return nil, fmt.Errorf("run the server of the directory at %s: %w", me.Host, err)
	}
	return s, nil
}

// secret is what opens the servers: another one than the token, which it does not tell.
func secret(o cli.DirectoryOptions) string {
	mac := hmac.New(sha256.New, []byte(o.Secret))
	_, _ = mac.Write([]byte("the directory of the fleet")) // it never fails
	return hex.EncodeToString(mac.Sum(nil))
}

// connect opens the bucket, as soon as servers can be reached that have it or can make it.
func connect(ctx context.Context, o cli.DirectoryOptions) (*natskv.Directory, error) {
	names := make([]string, 0, len(o.URLs))
	for _, u := range o.URLs {
		names = append(names, u.String())
	}
	with := natskv.Options{
		Synced: o.Synced || o.Embed > 0, Lease: o.TTL,
		Connect: []nats.Option{nats.Token(secret(o)), nats.ReconnectWait(250 * time.Millisecond)},
	}
	if own := o.Embed - 1; own >= 0 {
		// The server of this process stands still when the node does, and no sooner.
		names = slices.Concat(names[own:], names[:own])
		with.Connect = append(with.Connect, nats.DontRandomize())
	}
	with.URL = strings.Join(names, ",")
	if len(o.URLs) >= 3 { // whichever node makes the bucket
		with.Replicas = 3
	}
	d, err := await(ctx, o, func(try context.Context) (*natskv.Directory, error) { return trusted(try, with) }, func(err error) bool {
		return errors.Is(err, natskv.ErrUnsafe) || errors.Is(err, nats.ErrAuthorization)
	})
	if !with.Synced && errors.Is(err, natskv.ErrUnsafe) {
		return nil, fmt.Errorf("%w: the servers at %s are none of --fleet-embed, and one that does not sync its disk always forgets who has which session: run them with jetstream { sync_interval: always } and add --fleet-synced, or have nodes run them with --fleet-embed", cli.ErrFleetUsage, with.URL)
	}
	return d, err
}

// trusted opens the bucket. Where nobody vouches for its servers, they have to be such as this
// program runs: those want the secret of the fleet, which none else knows.
func trusted(ctx context.Context, o natskv.Options) (*natskv.Directory, error) {
	if !o.Synced {
		nc, err := nats.Connect(o.URL, o.Connect...)
		if err != nil {
			return nil, fmt.Errorf("connect to NATS: %w", err)
		}
		o.Synced = nc.AuthRequired()
		nc.Close()
	}
	return natskv.Open(ctx, o)
}
