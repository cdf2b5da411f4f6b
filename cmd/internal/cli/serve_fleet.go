package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/dialect"
	"github.com/coppice-run/coppice/cmd/internal/fleetapi"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/cmd/internal/version"
	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/internal/loopback"
)

// Directories make those of fleets. What they stand on is large, so that a program has them
// that is a module of its own.
type Directories struct {
	// Program is the name of the program.
	Program string
	// Encrypted are the schemes of URLs of directories that are reached over TLS, with
	// certificates, so that they may be on other machines.
	Encrypted []string
	// Open opens the directory, and what of it runs in this process: close ends both. It
	// waits for others as long as ctx lasts. An error that matches ErrFleetUsage is about the
	// command line.
	Open func(ctx context.Context, o DirectoryOptions) (d fleet.Directory, close func() error, err error)
	// Sandboxes opens those of a front, and finds out that they can be made. Errors are as those
	// of Open.
	Sandboxes func(ctx context.Context, o SandboxOptions) (fleet.Sandboxes, error)
}

// DirectoryOptions say where a directory is.
type DirectoryOptions struct {
	// URLs are the servers of the directory.
	URLs []*url.URL
	// Embed is the place in URLs of the one that runs in this process, from 1; 0: none.
	Embed int
	// Synced says that whoever runs the servers vouches that each syncs its disk before it
	// acknowledges a write.
	Synced bool
	// Dir is the folder of that server.
	Dir string
	// Secret is what all nodes of the fleet know, and nobody else.
	Secret string
	// TTL is how long a lease of the nodes lasts, within which a server that is silent has to be
	// left for another one. 0: as long as by default.
	TTL    time.Duration
	Logger *slog.Logger
}

// ErrFleetUsage is matched by an error about the flags of a fleet.
var ErrFleetUsage = errors.New("the fleet cannot be")

// fleetFlags are those of a node of a fleet.
type fleetFlags struct {
	servers string
	embed   bool
	synced  bool
	node    int
	name    string
	url     string
	place   string
	front   bool
	ttl     time.Duration
	drain   time.Duration
	between between
	kept    fleetStore
	// tenantMost is how many sessions and workspaces one tenant has at all nodes together.
	tenantMost int
	labels     string
}

func (f *fleetFlags) add(cmd *cobra.Command, program string) {
	flags := cmd.Flags()
	flags.StringVar(&f.servers, "fleet", "", "be a node of the fleet whose directory is there: nats://127.0.0.1:4222, etcd://127.0.0.1:2379 or etcds://, several servers with commas between, or kubernetes://NAMESPACE; COPPICE_TOKEN is that of all nodes")
	flags.BoolVar(&f.embed, "fleet-embed", false, "run one of the servers of --fleet in this process: one alone, or each of three by the first three nodes; each of three also listens on its port + 2000, for the other two")
	flags.BoolVar(&f.synced, "fleet-synced", false, "the servers of --fleet are not those of --fleet-embed, and each syncs its disk before it acknowledges a write: jetstream { sync_interval: always }")
	flags.IntVar(&f.node, "fleet-node", 1, "which of the servers of --fleet this process runs, from 1")
	flags.StringVar(&f.name, "fleet-name", "", "what people know this node by (default: node)")
	flags.StringVar(&f.url, "fleet-url", "", "where other nodes reach this one (default: the address that it listens on)")
	flags.StringVar(&f.place, "fleet-placement", placeSpread, "where a session begins that is nowhere: "+placeSpread+", at the less loaded of two nodes that a hash of its name puts first, or "+placeHere+", at the one that was asked")
	flags.BoolVar(&f.front, "fleet-front", false, "have no sessions, and send calls on to the nodes that do")
	flags.Var((*console.Time)(&f.ttl), "fleet-ttl", "how long a node is silent before another takes its sessions over, the same for all nodes: seconds, or a time such as 15s (default: 15s)")
	flags.StringVar(&f.labels, "fleet-label", "", "labels of this node, for requests that say with Coppice-Labels what the node must have at which something begins: gpu=yes,volume=projects")
	flags.IntVar(&f.tenantMost, "fleet-tenant-sessions", 0, "with --listen, how many sessions and workspaces one tenant may have at all nodes together, the same for all nodes (0: any number, of which each node takes --tenant-sessions)")
	f.drain = drainTime
	flags.Var((*console.Time)(&f.drain), "drain-timeout", "how long calls that run may go on once this node is asked to end: seconds, or a time such as 30s")
	f.between.add(cmd)
	f.kept.add(cmd)
	cmd.Example += `
  COPPICE_TOKEN=... ` + program + ` serve --fleet nats://127.0.0.1:4222 --fleet-embed`
}

// Where sessions begin, for --fleet-placement.
const (
	placeSpread = "spread"
	placeHere   = "here"
)

// check looks at the flags of a server that is to be a node.
func (f serveFlags) checkFleet(a *app) ([]*url.URL, error) {
	for _, with := range []struct {
		flag  string
		given bool
	}{{"--e2b-debug", f.e2bDebug}, {"--keep-sessions", f.keep.wanted(a.Env)}} {
		if with.given {
			return nil, console.Usagef("%s serves what stays on one machine, and --fleet shares sessions between several: leave one of them out", with.flag)
		}
	}
	if err := f.fleet.kept.check(f.hibernate.wanted(a.Env)); err != nil {
		return nil, err
	}
	if len(a.Token("COPPICE_TOKEN")) < 16 {
		return nil, console.Usagef("all nodes of a fleet have one token: set COPPICE_TOKEN, of at least 16 characters, to the same for all of them")
	}
	var servers []*url.URL
	for text := range strings.SplitSeq(f.fleet.servers, ",") {
		u, err := url.Parse(strings.TrimSpace(text))
		if err != nil || u.Scheme == "" {
			return nil, console.Usagef("--fleet: %q is no server of a directory; one is like nats://127.0.0.1:4222", text)
		}
		if u.User != nil {
			return nil, console.Usagef("--fleet: leave the user and the password out of %s: whoever lists the processes of this machine sees them", u.Redacted())
		}
		if !slices.Contains(a.engines.Encrypted, u.Scheme) && u.Host != "" && !loopback.URL(u) {
			return nil, notHere("--fleet", text, "use 127.0.0.1, or a directory that is reached over TLS: etcds:// or kubernetes://")
		}
		servers = append(servers, u)
	}
	if f.fleet.place = cmp.Or(f.fleet.place, placeSpread); f.fleet.place != placeSpread && f.fleet.place != placeHere {
		return nil, console.Usagef("--fleet-placement must be %s or %s, not %q", placeSpread, placeHere, f.fleet.place)
	}
	if f.fleet.front && f.fleet.place == placeHere {
		return nil, console.Usagef("--fleet-front has no sessions, and --fleet-placement %s has them begin there: leave one of them out", placeHere)
	}
	if _, err := fleetapi.ParseLabels(f.fleet.labels); err != nil {
		return nil, console.Usagef("--fleet-label: %w", err)
	}
	if f.fleet.tenantMost < 0 {
		return nil, console.Usagef("--fleet-tenant-sessions must not be negative; use 0 for any number")
	}
	if f.fleet.tenantMost > 0 && f.listen.addr == "" {
		return nil, console.Usagef("--fleet-tenant-sessions is for --listen, which serves tenants")
	}
	if f.fleet.drain < 0 {
		return nil, console.Usagef("--drain-timeout must not be less than nothing, but is %s", f.fleet.drain)
	}
	if f.fleet.embed && len(servers) != 1 && len(servers) != 3 {
		return nil, console.Usagef("--fleet-embed: one server is in --fleet, or three are, not %d: a fleet goes on while most of them do", len(servers))
	}
	if f.fleet.embed && (f.fleet.node < 1 || f.fleet.node > len(servers)) {
		return nil, console.Usagef("--fleet-node: %d is none of the %d servers of --fleet", f.fleet.node, len(servers))
	}
	if err := cmp.Or(f.fleet.between.check(f.fleet.url), f.fleet.between.checkURL(f.fleet.url)); err != nil {
		return nil, err
	}
	if u, err := url.Parse(f.fleet.url); err == nil && f.fleet.between.addr == "" && u.Host != "" && !loopback.URL(u) {
		return nil, notHere("--fleet-url", f.fleet.url, "use 127.0.0.1, or --fleet-listen, which is over TLS")
	}
	return servers, nil
}

// notHere refuses what would go beyond this machine without TLS.
func notHere(flag, text, instead string) error {
	return console.Usagef("%s: %q is not on the loopback interface, and what is said there is not encrypted: %s", flag, text, instead)
}

// membership is a server's part in a fleet; nil: it is in none.
type membership struct {
	node      *fleetapi.Node
	directory fleet.Directory
	shut      func() error
	f         fleetFlags
	token     string // that of all nodes
	// records is where sessions are kept on disk; nil: none are.
	records *fleetapi.Records
	// far is where other machines reach the node; nil: they do not.
	far    *farNode
	served bool
	// at is where other nodes reach this one, once it has joined.
	at string
	// tenants is what tenants have in the fleet; nil: there are none.
	tenants *fleetTenants
	// asked is closed, once, by a request that the node be drained.
	asked chan struct{}
	ask   func()
}

// fleetGrace is how long a node may take to say that it leaves.
const fleetGrace = 5 * time.Second

// openFleet opens the directory of the fleet that the server is to be in, if any.
func (a *app) openFleet(ctx context.Context, f serveFlags, path string) (*membership, error) {
	if f.fleet.servers == "" {
		if f.fleet.between.addr != "" {
			return nil, console.Usagef("--fleet-listen is for a node of a fleet: say with --fleet where its directory is, or serve tenants with --listen")
		}
		return nil, f.fleet.kept.alone() // a server that is in no fleet
	}
	servers, err := f.checkFleet(a)
	if err != nil {
		return nil, err
	}
	o := DirectoryOptions{
		URLs: servers, Synced: f.fleet.synced, Dir: filepath.Join(filepath.Dir(path), "fleet"), Secret: a.Token("COPPICE_TOKEN"),
		TTL:    f.fleet.ttl,
		Logger: slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if f.fleet.embed {
		o.Embed = f.fleet.node
	}
	var far *farNode
	if f.fleet.between.addr != "" {
		if far, err = f.fleet.between.open(ctx, o.Logger); err != nil {
			return nil, err
		}
	}
	var records *fleetapi.Records
	if f.fleet.kept.dir != "" {
		if records, err = f.fleet.kept.open(ctx, filepath.Dir(path)); err != nil {
			return nil, err
		}
	}
	a.Err.Lines("coppice: looking for the directory of the fleet at " + f.fleet.servers)
	d, shut, err := a.engines.Open(ctx, o)
	switch {
	case errors.Is(err, ErrFleetUsage):
		return nil, console.UsageError{Err: err}
	case err != nil:
		return nil, fmt.Errorf("open the directory of the fleet: %w", err)
	}
	asked := make(chan struct{})
	m := &membership{directory: d, shut: shut, f: f.fleet, token: o.Secret, records: records, far: far, asked: asked, ask: sync.OnceFunc(func() { close(asked) })}
	if f.listen.addr != "" {
		m.tenants = newFleetTenants(m)
	}
	return m, nil
}

// attach makes the node that serves the sessions of a host.
func (m *membership) attach(host *coppice.Host, api *httpapi.API, metrics *metrics, logger *slog.Logger) {
	if m == nil {
		return
	}
	o := m.options(host, api, logger)
	o.Directory, o.Leave, o.Metrics = m.directory, m.ask, metrics.registry
	if m.tenants != nil {
		o.Seen = m.tenants.seen
	}
	if m.far != nil {
		o.Transport = m.far.transport
	}
	if m.records != nil {
		o.Records, o.Hibernate = m.records, hostSessions{host}.Hibernate
	}
	m.node = fleetapi.New(o)
}

// options are those of a node that serves the sessions of a host, but for what it shares with others.
func (m *membership) options(host *coppice.Host, api *httpapi.API, logger *slog.Logger) fleetapi.Options {
	labels, _ := fleetapi.ParseLabels(m.f.labels) // they were looked at before
	return fleetapi.Options{
		Labels: labels,
		Name:   cmp.Or(m.f.name, "node"), TTL: m.f.ttl, Version: version.Read().Version, Cwd: api.Cwd(),
		Spread: m.f.place != placeHere, Front: m.f.front,
		Kernel:   func(name string) string { return host.Session("", coppice.OnKernel(name)).Key().Kernel },
		Sessions: hostSessions{host}, Knows: api.Knows, Running: func() int { return api.Running() + host.Workspaces().Followed() }, Untold: api.Untold,
		Logger: logger,
	}
}

// spoken is a dialect with its parts of a server.
type spoken interface {
	dialect.Dialect
	Mounts() []httpserver.Mount
}

// wrap has requests go to the nodes that they belong to, and the server not be ready while
// its node is not.
func (m *membership) wrap(mounts []httpserver.Mount, o *httpserver.Options, dialects ...spoken) []httpserver.Mount {
	if m == nil {
		return mounts
	}
	o.Ready = m.node.Ready
	return m.tenants.forNodes(spread(m.node, mounts, dialects...))
}

// spread has requests go to the nodes that they belong to.
func spread(n *fleetapi.Node, mounts []httpserver.Mount, dialects ...spoken) []httpserver.Mount {
	for _, d := range dialects {
		for _, part := range d.Mounts() {
			for i := range mounts {
				if mounts[i].Pattern == part.Pattern {
					mounts[i] = n.Speak(d, mounts[i])
				}
			}
		}
	}
	return n.Wrap(mounts)
}

// join begins the life of the node, which others reach where the server listens, or where it
// does for other machines: with the mounts and the options of the server.
func (m *membership) join(ctx context.Context, server *httpserver.Server, o httpserver.Options, mounts []httpserver.Mount) error {
	if m == nil {
		return nil
	}
	m.at = cmp.Or(m.f.url, server.URL())
	if m.far != nil {
		if err := m.far.listen(ctx, m.f.between.addr, server.Token(), o, mounts); err != nil {
			return err
		}
		m.at = cmp.Or(m.f.url, m.far.server.URL())
	}
	return m.node.Join(ctx, m.at)
}

// serve serves other machines, if they are served, until ctx ends. What it returns is the
// context to serve with from then on.
func (m *membership) serve(ctx context.Context) (within context.Context, end func() error) {
	if m == nil || m.far == nil {
		return ctx, func() error { return nil }
	}
	within, end = m.far.serve(ctx)
	m.served = true
	return within, end
}

// close leaves the fleet. The sessions of the node have ended.
func (m *membership) close(a *app) {
	if m == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), fleetGrace)
	defer cancel()
	m.tenants.close()
	var err error
	if m.node != nil {
		err = m.node.Close(ctx)
	}
	if m.far != nil && m.far.server != nil && !m.served {
		err = errors.Join(err, m.far.server.Close())
	}
	if err = errors.Join(err, m.shut()); err != nil {
		a.Err.Lines("coppice: " + err.Error())
	}
}

// tellFleet says which node the server is.
func (a *app) tellFleet(m *membership) {
	if m != nil {
		a.Out.Lines("node " + m.node.ID() + " of the fleet at " + m.f.servers + ", reached at " + m.at)
	}
}
