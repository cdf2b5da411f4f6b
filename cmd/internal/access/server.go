package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
)

// TenantHeader names the tenant that a request of an admin is about; without it, it is
// about the admin's own.
const TenantHeader = "Coppice-Tenant"

// Part is what a tenant has of a server: a host of its own, and what serves that.
type Part struct {
	// Mounts are its doors. Each declares its scope.
	Mounts []httpserver.Mount
	// Instrument is that of httpserver.Options.
	Instrument func(http.Handler) http.Handler
	// Sessions is how many sessions live.
	Sessions func(ctx context.Context) (int, error)
	// Ending is that of httpserver.Options.
	Ending func(ctx context.Context)
	// Close ends it, and everything of its host.
	Close func() error
}

// Options make a Server. All fields are required but those that say so.
type Options struct {
	// Addr is where it listens.
	Addr        string
	Certificate *Certificate
	Tokens      *Tokens
	// Start makes the part of a tenant, when its first request comes.
	Start func(ctx context.Context, tenant string) (*Part, error)
	// May refuses a tenant that cannot be served beside the others that there are.
	May func(tenant string, all []string) error
	// Public are the mounts that need no token, such as the page of the live view. Parts have
	// them too.
	Public []httpserver.Mount
	// Admin are mounts for admins, besides those of the Server.
	Admin []httpserver.Mount
	// Nodes is the token of the other nodes of a fleet, for [Server.ForNodes]. "": there are none.
	Nodes string
	// Shutdown asks the program to end. It must not block.
	Shutdown func()
	// Audit notes each request that a token let in. nil: nothing does.
	Audit *Audit
	// Logger hears what was refused, and what failed with no one to tell.
	Logger *slog.Logger
}

// Server serves tenants. Make it with Listen.
type Server struct {
	o    Options
	http *httpserver.Server
	// admin has what is for admins, and admins serves it.
	admin  *httpserver.Server
	admins http.Handler

	mu    sync.Mutex
	parts map[string]*part // guarded by mu
	over  bool             // no part is started any more; guarded by mu
}

// part is that of one tenant. Its fields do not change once ready is closed.
type part struct {
	ready chan struct{}
	*Part

	server *httpserver.Server
	serves http.Handler
	nodes  http.Handler // serves what other nodes send on
	err    error
}

// Listen takes the address. The error is that of httpserver.Listen.
func Listen(ctx context.Context, o Options) (*Server, error) {
	s := &Server{o: o, parts: map[string]*part{}}
	s.admin = httpserver.Part(httpserver.Options{
		Entry: o.Tokens, Logger: o.Logger, Beyond: &httpserver.Beyond{Named: o.Certificate.Named},
		Instrument: func(next http.Handler) http.Handler { return o.Audit.note("", next) },
	}, append(s.mounts(), o.Admin...)...)
	s.admins = s.admin.Handler()
	server, err := httpserver.Listen(ctx, httpserver.Options{
		Addr: o.Addr, Entry: o.Tokens, Logger: o.Logger, Ending: s.ending,
		Beyond: &httpserver.Beyond{TLS: o.Certificate.TLS(), Named: o.Certificate.Named, Wrap: s.wrap},
	}, o.Public...)
	if err != nil {
		return nil, err
	}
	s.http = server
	return s, nil
}

// URL is where it listens.
func (s *Server) URL() string { return s.http.URL() }

// Close gives the address up, for a server that never served.
func (s *Server) Close() error { return s.http.Close() }

// Serve serves until ctx ends, and ends the parts of all tenants then. The error is that of
// httpserver.Server.Serve, or of their ends.
func (s *Server) Serve(ctx context.Context) error {
	err := s.http.Serve(ctx)
	s.mu.Lock()
	s.over = true
	parts := s.parts
	s.mu.Unlock()
	var wait sync.WaitGroup
	errs := make([]error, 0, len(parts))
	var mu sync.Mutex
	for name, p := range parts {
		wait.Go(func() { // Close of a Part is bounded; joined below
			<-p.ready
			if p.Part == nil {
				return
			}
			if err := p.Close(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("end the tenant %s: %w", name, err))
			}
		})
	}
	wait.Wait()
	return errors.Join(append(errs, err)...)
}

// ending lets the streams of tenants say how they end.
func (s *Server) ending(ctx context.Context) {
	var wait sync.WaitGroup
	for _, p := range s.running() {
		wait.Go(func() { p.Ending(ctx) }) // ends with ctx at the latest; joined below
	}
	wait.Wait()
}

// running are the parts that were started, by tenant.
func (s *Server) running() map[string]*part {
	s.mu.Lock()
	defer s.mu.Unlock()
	up := make(map[string]*part, len(s.parts))
	for name, p := range s.parts {
		select {
		case <-p.ready:
			if p.err == nil {
				up[name] = p
			}
		default:
		}
	}
	return up
}

// wrap serves each request by the part of its tenant; own serves what needs none, and
// refuses those that show nothing.
func (s *Server) wrap(own http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.admin.Has(r) {
			s.admins.ServeHTTP(w, r)
			return
		}
		tenant, known := s.whose(r)
		switch {
		case !known || r.URL.Path == "/healthz" || r.URL.Path == "/readyz":
			own.ServeHTTP(w, r)
			return
		case tenant == "":
			s.unknown(w)
			return
		}
		p, err := s.part(r.Context(), tenant)
		if err != nil {
			s.o.Logger.Error("a tenant cannot be served", "tenant", tenant, "err", err)
			httpserver.Error(w, http.StatusServiceUnavailable, "unavailable", "the sessions of the tenant could not be started", "the log of the server says why")
			return
		}
		p.serves.ServeHTTP(w, r)
	})
}

// unknown answers for a tenant that there is not, for whoever asks.
func (s *Server) unknown(w http.ResponseWriter) {
	httpserver.Error(w, http.StatusNotFound, "not_found", "there is no such tenant", "")
}

// whose is the tenant of a request that shows something which opens a part; "": there is
// none of that name, or it is none of its business.
func (s *Server) whose(r *http.Request) (tenant string, known bool) {
	for _, given := range shown(r) {
		p, ok := s.o.Tokens.Opens(given)
		if !ok {
			continue
		}
		named := r.Header.Values(TenantHeader)
		switch {
		case len(named) == 0 || len(named) == 1 && named[0] == p.Tenant:
			return p.Tenant, true
		case len(named) == 1 && p.Scope == httpserver.Admin && s.has(named[0]):
			return named[0], true
		}
		return "", true
	}
	if r.Header.Get("E2b-Sandbox-Id") == "" && r.URL.Query().Get("signature") == "" {
		return "", false
	}
	for name, p := range s.running() { // each has a secret of its own for what it gives away
		if p.server.Knows(r) {
			return name, true
		}
	}
	return "", false
}

// shown is what a request may have a token in.
func shown(r *http.Request) []string {
	_, authorization, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	var list []string
	for _, one := range []string{strings.TrimSpace(authorization), r.Header.Get("X-API-Key"), r.Header.Get("X-Access-Token"), r.URL.Query().Get("token")} {
		if one != "" {
			list = append(list, one)
		}
	}
	return list
}

// has reports whether there is a tenant of a name.
func (s *Server) has(name string) bool {
	return slices.Contains(s.o.Tokens.Tenants(), name)
}

// part returns that of a tenant, which it starts if that was not done.
func (s *Server) part(ctx context.Context, tenant string) (*part, error) {
	if err := s.o.May(tenant, s.o.Tokens.Tenants()); err != nil {
		return nil, err
	}
	s.mu.Lock()
	p := s.parts[tenant]
	mine := p == nil && !s.over
	if mine {
		p = &part{ready: make(chan struct{})}
		s.parts[tenant] = p
	}
	s.mu.Unlock()
	if p == nil {
		return nil, errors.New("the server ends")
	}
	if mine {
		s.start(context.WithoutCancel(ctx), tenant, p)
	}
	select {
	case <-p.ready:
		return p, p.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// start starts a part, which others wait for. One that cannot be started is tried again
// with the next request.
func (s *Server) start(ctx context.Context, tenant string, p *part) {
	defer close(p.ready)
	p.Part, p.err = s.o.Start(ctx, tenant)
	if p.err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.parts, tenant)
		return
	}
	s.o.Logger.Info("the sessions of a tenant were started", "tenant", tenant)
	p.server = httpserver.Part(httpserver.Options{
		Entry: of{s.o.Tokens, tenant}, Logger: s.o.Logger,
		Beyond: &httpserver.Beyond{Named: s.o.Certificate.Named},
		Instrument: func(next http.Handler) http.Handler {
			if p.Instrument != nil {
				next = p.Instrument(next)
			}
			return s.o.Audit.note(tenant, next)
		},
	}, p.Mounts...)
	p.serves = p.server.Handler()
	// Who asks has been let in where they came, by their own token and its scope.
	p.nodes = httpserver.Handler(httpserver.Options{
		Token: s.o.Nodes, Logger: s.o.Logger, Instrument: p.Instrument,
		Beyond: &httpserver.Beyond{Named: func(string) bool { return true }, Wrap: func(own http.Handler) http.Handler { return own }},
	}, p.Mounts...)
}

// ForNodes serves what another node of a fleet has sent on for the tenant that [TenantHeader] names.
// Whoever calls it has seen that it is one. Such a request carries the token of the nodes in place of
// the tenant's.
func (s *Server) ForNodes(w http.ResponseWriter, r *http.Request) {
	tenant := r.Header.Get(TenantHeader)
	if s.o.Nodes == "" || !s.has(tenant) {
		s.unknown(w)
		return
	}
	p, err := s.part(r.Context(), tenant)
	if err != nil {
		s.o.Logger.Error("a tenant cannot be served", "tenant", tenant, "err", err)
		httpserver.Error(w, http.StatusServiceUnavailable, "unavailable", "the sessions of the tenant could not be started", "the log of the server says why")
		return
	}
	p.nodes.ServeHTTP(w, r)
}
