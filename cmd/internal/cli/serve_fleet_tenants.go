package cli

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/access"
	"github.com/coppice-run/coppice/cmd/internal/fleetapi"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/internal/inbound"
)

// fleetTenants is what the tenants of a server have in a fleet: each is a fleet of its own, in a part
// of the directory, whose nodes are the parts that it has of the servers. What is sent on between these
// goes to where the servers reach each other, with the token of the nodes and the name of the tenant:
// the tenant's own token was looked at where the request came. Any goroutine may call its methods.
//
// A part begins with the first request of its tenant, and then wakes those of the other servers.
type fleetTenants struct {
	m         *membership
	transport http.RoundTripper
	idle      func() // closes the connections that are not used
	// server has the parts; nil: it is not there yet.
	server atomic.Pointer[access.Server]

	ctx    context.Context //nolint:containedctx // of the goroutines that wake others
	stop   context.CancelFunc
	waking sync.WaitGroup

	mu     sync.Mutex
	nodes  map[string]*fleetapi.Node // by tenant; guarded by mu
	others []fleet.Node              // guarded by mu
	woken  map[wake]bool             // guarded by mu
}

// wake is that a node has been asked to begin its part of a tenant.
type wake struct{ tenant, node string }

func newFleetTenants(m *membership) *fleetTenants {
	t := &fleetTenants{m: m, nodes: map[string]*fleetapi.Node{}, woken: map[wake]bool{}}
	t.ctx, t.stop = context.WithCancel(context.Background())
	own := &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute, ExpectContinueTimeout: inbound.ContinueTimeout}
	t.transport, t.idle = own, own.CloseIdleConnections
	if m.far != nil {
		t.transport = m.far.transport
	}
	return t
}

// close ends what wakes others. The parts have ended. A nil one has nothing.
func (t *fleetTenants) close() {
	if t == nil {
		return
	}
	t.stop()
	t.waking.Wait()
	t.idle()
}

// secret is made of the token of the nodes, for one use of one tenant.
func (t *fleetTenants) secret(use, tenant string) []byte {
	m := hmac.New(sha256.New, []byte(t.m.token))
	_, _ = m.Write([]byte(use + "\x00" + tenant)) // a hash takes all
	return m.Sum(nil)
}

// name is what a tenant is called in the directory and in folders: nobody without the token of the
// nodes can make it.
func (t *fleetTenants) name(tenant string) string {
	return hex.EncodeToString(t.secret("tenant", tenant))[:32]
}

// work is the working directory of a tenant: its path is the same at all nodes that have the same
// --cwd, as the keys of sessions have it.
func (t *fleetTenants) work(cwd, tenant string) (string, error) {
	dir, err := filepath.Abs(cwd)
	if err != nil {
		return "", fmt.Errorf("find the folder of tenants: %w", err)
	}
	return filepath.Join(dir, "tenants", t.name(tenant)), nil
}

// records is where a tenant's sessions are kept on disk; nil: none are.
func (t *fleetTenants) records(ctx context.Context, tenant, home string) (*fleetapi.Records, error) {
	if t.m.records == nil {
		return nil, nil //nolint:nilnil // there are none
	}
	kept := t.m.f.kept
	kept.dir = filepath.Join(kept.dir, "tenants", t.name(tenant))
	return kept.open(ctx, home)
}

// node makes the node that a tenant has here, which takes part from [fleetTenants.join] on.
func (t *fleetTenants) node(tenant string, host *coppice.Host, api *httpapi.API, records *fleetapi.Records, m *metrics, logger *slog.Logger) *fleetapi.Node {
	o := t.m.options(host, api, logger)
	o.Directory, o.Transport = fleet.Within(t.m.directory, t.name(tenant)), asTenant{t.transport, t.m.token, tenant}
	o.Metrics, o.Most = m.registry, t.m.f.tenantMost
	if records != nil {
		o.Records, o.Hibernate = records, hostSessions{host}.Hibernate
	}
	return fleetapi.New(o)
}

// join has the node of a tenant take part, and leave returns when it has no part any more, once its
// sessions have ended.
func (t *fleetTenants) join(tenant string, n *fleetapi.Node) (leave func() error, err error) {
	ctx, cancel := context.WithTimeout(t.ctx, t.ttl())
	defer cancel()
	if err := n.Join(ctx, t.m.at); err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.nodes[tenant] = n
	t.wakeLocked()
	t.mu.Unlock()
	return func() error {
		t.mu.Lock()
		delete(t.nodes, tenant)
		t.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), fleetGrace)
		defer cancel()
		return n.Close(ctx)
	}, nil
}

// ttl is how long a lease of the fleet lasts.
func (t *fleetTenants) ttl() time.Duration { return cmp.Or(t.m.f.ttl, fleetapi.DefaultTTL) }

// seen hears which other nodes there are.
func (t *fleetTenants) seen(others []fleet.Node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.others = others
	there := map[string]bool{}
	for _, n := range others {
		there[n.ID] = true
	}
	maps.DeleteFunc(t.woken, func(at wake, _ bool) bool { return !there[at.node] })
	t.wakeLocked()
}

// wakeLocked has all other nodes begin their parts of the tenants that have one here. t.mu is held.
func (t *fleetTenants) wakeLocked() {
	for tenant := range t.nodes {
		for _, n := range t.others {
			at := wake{tenant, n.ID}
			if t.woken[at] || t.ctx.Err() != nil {
				continue
			}
			t.woken[at] = true
			t.waking.Go(func() { // ends with t.ctx, which close waits for
				if t.wake(tenant, n) != nil && t.ctx.Err() == nil {
					t.mu.Lock()
					delete(t.woken, at) // when something changes
					t.mu.Unlock()
				}
			})
		}
	}
}

// wake asks a node for what a tenant has there, so that it begins.
func (t *fleetTenants) wake(tenant string, n fleet.Node) error {
	ctx, cancel := context.WithTimeout(t.ctx, 2*t.ttl()) // it is asked again
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, n.URL+"/api/health", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := asTenant{t.transport, t.m.token, tenant}.RoundTrip(r)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers with status %d", resp.StatusCode)
	}
	return nil
}

// drain drains the nodes of all tenants.
func (t *fleetTenants) drain(ctx context.Context) error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	nodes := maps.Clone(t.nodes)
	t.mu.Unlock()
	errs := make(chan error, len(nodes))
	for tenant, n := range nodes {
		go func() { // ends with ctx at the latest; joined below
			if err := n.Drain(ctx); err != nil {
				errs <- fmt.Errorf("the tenant %s: %w", tenant, err)
				return
			}
			errs <- nil
		}()
	}
	var all error
	for range nodes {
		all = errors.Join(all, <-errs)
	}
	return all
}

// forNodes has what another node has sent on for a tenant served by the part of that. It is inside of
// what looks at the token of the nodes.
func (t *fleetTenants) forNodes(mounts []httpserver.Mount) []httpserver.Mount {
	if t == nil {
		return mounts
	}
	for i, m := range mounts {
		own := m.Handler
		mounts[i].Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			server := t.server.Load()
			switch {
			case r.Header.Get(access.TenantHeader) == "" || !httpserver.Trusted(r.Context()):
				own.ServeHTTP(w, r)
			case server == nil:
				httpserver.Error(w, http.StatusServiceUnavailable, "unavailable", "tenants are not served here yet", "send it again")
			default:
				server.ForNodes(w, r)
			}
		})
	}
	return mounts
}

// nodesToken is that of all nodes, "" outside of a fleet.
func (m *membership) nodesToken() string {
	if m == nil {
		return ""
	}
	return m.token
}

// asTenant sends requests to other nodes for a tenant. What opens all that the tenant has is looked at
// where they came, and goes no further.
type asTenant struct {
	http.RoundTripper
	token, tenant string
}

// RoundTrip implements [http.RoundTripper].
func (a asTenant) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Del("X-Api-Key")
	if query := r.URL.Query(); query.Has("token") {
		query.Del("token")
		u := *r.URL
		u.RawQuery, r.URL = query.Encode(), &u
	}
	r.Header.Set("Authorization", "Bearer "+a.token)
	r.Header.Set(access.TenantHeader, a.tenant)
	return a.RoundTripper.RoundTrip(r)
}
