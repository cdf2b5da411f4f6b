package mcpserver

import (
	"context"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
)

// Path is where Listen's server has the protocol.
const Path = "/mcp"

// maxBody bounds a request, in bytes.
const maxBody = 16 << 20

// closeTimeout is how long calls have to end at the end of the server.
const closeTimeout = 5 * time.Second

// Listen takes a loopback address for m: 127.0.0.1:0 takes a free port. What it returns
// serves the protocol over streamable HTTP at Path to those who have the token, as package
// httpserver says; at the end running calls have 5 s. The error is
// [httpserver.Listen]'s.
func Listen(ctx context.Context, addr string, m *Server, token string, o Options) (*httpserver.Server, error) {
	elsewhere := func(w http.ResponseWriter, _ *http.Request) {
		httpserver.Error(w, http.StatusNotFound, "not_found", "there is nothing at this path", "the protocol is served at "+Path)
	}
	ho := httpserver.Options{Addr: addr, Token: token, Grace: closeTimeout, Logger: o.Logger}
	return httpserver.Listen(ctx, ho, Mount(m, o),
		// Clients look here and there for how to get a token. That there is no such
		// place they may know without one.
		httpserver.Mount{Pattern: "/", Handler: http.HandlerFunc(elsewhere), Public: true, Scope: httpserver.Read})
}

// Mount is the protocol as a part of a server, at Path.
func Mount(m *Server, o Options) httpserver.Mount {
	return httpserver.Mount{Pattern: Path, Handler: protocol(m, o), Scope: httpserver.Run}
}

// Handler is what Listen's server has at Path, guarded as there, at any path: for a
// server of the caller's.
func Handler(m *Server, token string, o Options) http.Handler {
	return httpserver.Handler(httpserver.Options{Token: token, Logger: o.Logger}, httpserver.Mount{Pattern: "/", Handler: protocol(m, o), Scope: httpserver.Run})
}

// protocol serves m over streamable HTTP to everybody. Each request says by its version
// whether the connection has sessions of the protocol.
func protocol(m *Server, o Options) http.Handler {
	of := func(stateless bool) http.Handler {
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return m.Server }, &mcp.StreamableHTTPOptions{
			Stateless: stateless, SessionTimeout: time.Hour, MaxRequestBodyBytes: maxBody, PropagateRequestCancellation: true, Logger: o.Logger,
		})
	}
	stateful, stateless := of(false), of(true)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= statelessProtocol && r.Header.Get("Mcp-Session-Id") == "" {
			stateless.ServeHTTP(w, r)
			return
		}
		stateful.ServeHTTP(w, r)
	})
}
