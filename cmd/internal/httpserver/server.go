package httpserver

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// DefaultAddr is where the server listens unless told otherwise.
const DefaultAddr = "127.0.0.1:7788"

// Options make a server. The zero value of a field is its default.
type Options struct {
	// Addr is a loopback address with a port; port 0 takes a free one. "":
	// DefaultAddr.
	Addr string
	// Token opens the server. "": a new one.
	Token string
	// Grace is how long requests have to end when the server does. 0: 10 s.
	Grace time.Duration
}

// Mount is a part of the server.
type Mount struct {
	// Pattern is one of http.ServeMux: "/api/tools/".
	Pattern string
	Handler http.Handler
}

// Server listens, and serves when Serve is called.
type Server struct {
	l     net.Listener
	token string
	grace time.Duration
	mux   *http.ServeMux
}

// ErrAddress is matched by the error for an address that is not on the loopback
// interface.
var ErrAddress = errors.New("the address is not on the loopback interface")

// Listen takes the address. Requests wait until Serve is called.
func Listen(ctx context.Context, o Options, mounts ...Mount) (*Server, error) {
	if o.Addr == "" {
		o.Addr = DefaultAddr
	}
	host, _, err := net.SplitHostPort(o.Addr)
	if err != nil {
		return nil, fmt.Errorf("%w: %q: %w; use an address such as %s", ErrAddress, o.Addr, err, DefaultAddr)
	}
	if !loopback(host) {
		return nil, fmt.Errorf("%w: %q; use an address such as %s", ErrAddress, o.Addr, DefaultAddr)
	}
	if o.Token == "" {
		b := make([]byte, 32)
		_, _ = rand.Read(b) // never fails: crypto/rand ends the program instead
		o.Token = hex.EncodeToString(b)
	}
	if o.Grace <= 0 {
		o.Grace = 10 * time.Second
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", o.Addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", o.Addr, err)
	}
	s := &Server{l: l, token: o.Token, grace: o.Grace, mux: http.NewServeMux()}
	for _, m := range mounts {
		s.mux.Handle(m.Pattern, m.Handler)
	}
	return s, nil
}

// loopback reports whether a host is a name or an address of the loopback
// interface.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && addr.Unmap().IsLoopback()
}

// URL is where the server listens.
func (s *Server) URL() string { return "http://" + s.l.Addr().String() }

// Token opens the server.
func (s *Server) Token() string { return s.token }

// Close gives the address up, for a server that never served.
func (s *Server) Close() error { return s.l.Close() }

// Serve serves until ctx ends, and returns nil then. Requests that have not
// ended after the grace are cut off.
func (s *Server) Serve(ctx context.Context) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	server := &http.Server{
		Handler: s.guard(s.mux), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		BaseContext: func(net.Listener) context.Context { return life },
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(s.l) }() // ends with Shutdown or Close, below
	select {
	case err := <-failed:
		return fmt.Errorf("serve %s: %w", s.URL(), err)
	case <-ctx.Done():
	}
	end() // long requests, such as streams, end by this
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.grace)
	defer cancel()
	err := server.Shutdown(last)
	if err != nil {
		err = errors.Join(fmt.Errorf("end the server: %w", err), server.Close())
	}
	if end := <-failed; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}

// guard lets through who knows the token and came here on purpose.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		switch {
		case !loopback(host):
			Error(w, http.StatusForbidden, "forbidden", "the request is for another host", "")
		case !sameOrigin(r):
			Error(w, http.StatusForbidden, "forbidden", "pages of other origins may not ask here", "")
		case !s.knows(r):
			w.Header().Set("WWW-Authenticate", "Bearer")
			Error(w, http.StatusUnauthorized, "unauthorized", "the token is missing or wrong", "send it as: Authorization: Bearer TOKEN")
		default:
			w.Header().Set("X-Content-Type-Options", "nosniff")
			next.ServeHTTP(w, r)
		}
	})
}

func sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host == r.Host
}

func (s *Server) knows(r *http.Request) bool {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && subtle.ConstantTimeCompare([]byte(given), []byte(s.token)) == 1
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
}

// JSON answers a request with one value.
func JSON(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "the answer could not be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // who has gone cannot be told
}
