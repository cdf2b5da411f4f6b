package httpserver

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/coppice-run/coppice/internal/inbound"
	"github.com/coppice-run/coppice/internal/loopback"
	"github.com/coppice-run/coppice/internal/opportunity"
)

// DefaultAddr is where the server listens unless told otherwise.
const DefaultAddr = "127.0.0.1:7788"

// Options make a server. The zero value of a field is its default.
type Options struct {
	// Addr is a loopback address with a port; port 0 or none takes a free one. "":
	// DefaultAddr.
	Addr string
	// Token opens the server. "": a new one.
	Token string
	// Grace is how long requests have to end when the server does. 0: 10 s.
	Grace time.Duration
	// BodyTime is how long a request may take from its first byte until its body is
	// there, whatever reads it. 0: a minute.
	BodyTime time.Duration
	// Ending is called when the server is to end, before its requests learn of it, so
	// that streams can still say how what they show has ended. ctx ends with the
	// grace. nil: nothing is.
	Ending func(ctx context.Context)
	// Ready says whether GET /readyz answers that requests are taken, besides that the
	// server does not end. It must not block. nil: it always is.
	Ready func() bool
	// Socket is the path of a Unix socket to listen on as well, in a folder that
	// is for this user alone. "": none.
	Socket string
	// Inherited are listeners to go on with; Addr and Socket do not count then. nil: there are
	// none.
	Inherited *Inherited
	// Instrument wraps what serves requests, for measuring; those that are refused
	// before they come to a mount do not pass it. nil: nothing.
	Instrument func(http.Handler) http.Handler
	// Logger hears of each request that was refused. nil: it is not logged.
	Logger *slog.Logger
	// Entry knows the tokens that open the server, in place of Token: each has a scope, and
	// opens the mounts whose scope that holds. nil: Token opens everything.
	Entry Entry
	// Beyond lets the server listen elsewhere than on the loopback interface. nil: it
	// refuses that.
	Beyond *Beyond
}

// Beyond is what a server needs that other machines reach. All fields are required.
type Beyond struct {
	// TLS is how the wire is kept.
	TLS *tls.Config
	// Named reports whether a request's Host, without its port, is a name of this server.
	Named func(host string) bool
	// Wrap returns what serves requests, by what serves those of the server's own mounts.
	Wrap func(own http.Handler) http.Handler
}

// Mount is a part of the server.
type Mount struct {
	// Pattern is one of http.ServeMux: "/api/tools/".
	Pattern string
	Handler http.Handler
	// Public answers without the token: for what holds nothing, such as the files
	// of a page that then asks for the token, or that asks [Trusted] what it may say.
	// Host and origin are looked at all the same, and a wrong token is refused.
	Public bool
	// Knows looks for what opens the server where a protocol of others has it, besides
	// Authorization: Bearer; opens reports whether something is the token. It has to compare in a
	// time that tells nothing. All requests come to such a mount's handler, which answers
	// those in the form of that protocol that are not [Trusted]. Host and origin are looked
	// at all the same. nil: the token comes as Authorization alone.
	Knows func(r *http.Request, opens func(token string) bool) bool
	// Scope is what a token needs for it that comes by Options.Entry. Public mounts need
	// none, and those of Routes have theirs.
	Scope Scope
	// Routes are the routes inside, of a handler that has its own, and Prefix is what their
	// paths lack. nil: Scope is that of all.
	Routes *Routes
	Prefix string

	own bool // it is there in every server
}

// Need is the scope that a request to this mount takes.
func (m Mount) Need(r *http.Request) Scope {
	if m.Routes != nil {
		return m.Routes.Below(m.Prefix)(r)
	}
	return m.Scope
}

// Server listens, and serves when Serve is called.
type Server struct {
	l       *listener
	socket  *listener // nil: there is none
	token   string
	grace   time.Duration
	body    time.Duration
	ending  func(context.Context)
	logger  *slog.Logger
	mux     *http.ServeMux
	mounts  map[string]Mount // by pattern
	entry   Entry            // nil: token opens everything
	beyond  *Beyond          // nil: it listens on the loopback interface
	leaving leaving

	instrument func(http.Handler) http.Handler
}

// What a server fails with.
var (
	// ErrAddress is matched by the error for an address that is not one of the
	// loopback interface.
	ErrAddress = errors.New("the address cannot be used")
	// ErrCut is matched by the error for requests that did not end within the grace.
	ErrCut = errors.New("requests were cut off")
)

// Listen takes the address. Requests wait until Serve is called. The error matches
// ErrAddress or ErrSocket, or is the system's.
func Listen(ctx context.Context, o Options, mounts ...Mount) (*Server, error) {
	if o.Addr == "" {
		o.Addr = DefaultAddr
	}
	host, port, err := net.SplitHostPort(o.Addr)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %q is not HOST:PORT, as 127.0.0.1:7788 is; port 0 takes a free one", ErrAddress, o.Addr)
	case o.Beyond == nil && !loopback.Host(host):
		return nil, notLoopback(o.Addr)
	}
	if _, err := net.DefaultResolver.LookupPort(ctx, "tcp", port); err != nil {
		return nil, fmt.Errorf("%w: %q has no port from 0 to 65535; port 0 takes a free one", ErrAddress, o.Addr)
	}
	s := newServer(o, mounts)
	if o.Inherited != nil {
		err = s.adopt(*o.Inherited)
	} else {
		err = s.listen(ctx, o)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func notLoopback(addr string) error {
	return fmt.Errorf("%w: %q is not a loopback address; use 127.0.0.1:PORT; coppice serve --listen serves other machines, with TLS and tokens", ErrAddress, addr)
}

// Handler is what a server with these options serves, for one that the caller has.
// It does not bound its connections. Addr, Socket, Grace and Ending do not count.
func Handler(o Options, mounts ...Mount) http.Handler { return newServer(o, mounts).guard() }

// Part is a server without a listener, for one that hands requests on to it. Of Options,
// those of Handler count.
func Part(o Options, mounts ...Mount) *Server { return newServer(o, mounts) }

// Knows reports whether a request shows what opens a mount of the server.
func (s *Server) Knows(r *http.Request) bool {
	_, pattern := s.mux.Handler(r)
	_, known := s.visit(r, s.mounts[pattern])
	return known
}

// Has reports whether one of the mounts that the server was given takes a request.
func (s *Server) Has(r *http.Request) bool {
	_, pattern := s.mux.Handler(r)
	return pattern != "" && !s.mounts[pattern].own
}

func newServer(o Options, mounts []Mount) *Server {
	if o.Token == "" {
		b := make([]byte, 32)
		_, _ = rand.Read(b) // never fails: crypto/rand ends the program instead
		o.Token = hex.EncodeToString(b)
	}
	if o.Grace <= 0 {
		o.Grace = 10 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{token: o.Token, grace: o.Grace, body: o.BodyTime, ending: o.Ending, logger: o.Logger, mux: http.NewServeMux(), mounts: map[string]Mount{}, entry: o.Entry, beyond: o.Beyond, instrument: o.Instrument}
	for _, m := range append(s.leaving.mounts(o.Ready), mounts...) {
		s.mux.Handle(m.Pattern, m.Handler)
		s.mounts[m.Pattern] = m
	}
	return s
}

// URL is where the server listens.
func (s *Server) URL() string {
	if s.beyond != nil {
		return "https://" + s.l.Addr().String()
	}
	return "http://" + s.l.Addr().String()
}

// Socket is the path of the Unix socket, "" when there is none.
func (s *Server) Socket() string {
	if s.socket == nil {
		return ""
	}
	return s.socket.Addr().String()
}

// Token opens the server.
func (s *Server) Token() string { return s.token }

// ignoreClosed leaves out that the server was closed.
func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Handler is what Serve serves, but for the bounds of its connections.
func (s *Server) Handler() http.Handler {
	if s.beyond != nil && s.beyond.Wrap != nil {
		return s.beyond.Wrap(s.guard())
	}
	return s.guard()
}

// Close gives the address up, for a server that never served.
func (s *Server) Close() error {
	err := s.l.Close()
	if s.socket != nil {
		err = errors.Join(err, s.socket.Close())
	}
	return err
}

// Serve serves until ctx ends, and returns nil then. Requests that have not
// ended after the grace are cut off; the error matches ErrCut then.
func (s *Server) Serve(ctx context.Context) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	server := &http.Server{
		Handler: s.Handler(), MaxHeaderBytes: maxHeader,
		ErrorLog:    slog.NewLogLogger(s.logger.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return life },
	}
	connections := inbound.Guard(server, inbound.Limits{Body: s.body})
	listeners := s.own()
	if s.beyond != nil {
		// The bounds of connections are for HTTP/1, where one carries one request at a time.
		server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	}
	failed := make(chan error, len(listeners))
	for _, l := range listeners {
		in := connections.Listener(l)
		if s.beyond != nil {
			in = tls.NewListener(in, s.beyond.TLS)
		}
		go func() { failed <- server.Serve(in) }() // ends with Shutdown or Close, below
	}
	select {
	case err := <-failed:
		err = fmt.Errorf("serve %s: %w", s.URL(), errors.Join(err, server.Close()))
		for range len(listeners) - 1 {
			err = errors.Join(err, ignoreClosed(<-failed))
		}
		return err
	case <-ctx.Done():
	}
	last, done := opportunity.Within(context.WithoutCancel(ctx), opportunity.Budget{Opportunity: s.grace}, nil)
	defer done()
	s.leaving.Store(true)
	if s.ending != nil {
		s.ending(last)
	}
	end() // long requests, such as streams, end by this
	connections.End()
	err := server.Shutdown(last)
	if err != nil {
		if last.Err() != nil {
			err = context.Cause(last) // how long they had
		}
		err = errors.Join(fmt.Errorf("end the server: %w: %w", ErrCut, err), server.Close())
	}
	for range listeners {
		err = errors.Join(err, ignoreClosed(<-failed))
	}
	return err
}

// Error answers a request with an error in the form that all parts of the
// server use.
func Error(w http.ResponseWriter, status int, code, message, hint string) {
	JSON(w, status, map[string]any{"error": Problem{Code: code, Message: message, Hint: hint}})
}

// Problem is the "error" of an answer.
type Problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	// Epoch is the one that a session of a fleet is in, where that is the problem.
	Epoch uint64 `json:"epoch,omitempty"`
}
