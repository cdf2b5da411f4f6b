package mcpserver

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxBody bounds a request, in bytes.
const maxBody = 16 << 20

// Handler serves m over streamable HTTP to who has the token. It takes requests
// for loopback hosts only, and from no other origin. Each request says by its
// version whether the connection has sessions of the protocol. The paths are the
// caller's.
func Handler(m *Server, token string, o Options) http.Handler {
	of := func(stateless bool) http.Handler {
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return m.Server }, &mcp.StreamableHTTPOptions{
			Stateless: stateless, SessionTimeout: time.Hour, MaxRequestBodyBytes: maxBody, PropagateRequestCancellation: true, Logger: o.Logger,
		})
	}
	stateful, stateless := of(false), of(true)
	want := sha256.Sum256([]byte("Bearer " + token))
	guarded := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if !loopback(r.Host) {
			refuse(w, o, r, http.StatusForbidden, "the Host header names no loopback address")
			return
		}
		if token == "" || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="coppice"`)
			refuse(w, o, r, http.StatusUnauthorized, "the bearer token is missing or wrong: send the header Authorization: Bearer TOKEN")
			return
		}
		if r.Header.Get("Mcp-Protocol-Version") >= statelessProtocol && r.Header.Get("Mcp-Session-Id") == "" {
			stateless.ServeHTTP(w, r)
			return
		}
		stateful.ServeHTTP(w, r)
	})
	return http.NewCrossOriginProtection().Handler(guarded)
}

func refuse(w http.ResponseWriter, o Options, r *http.Request, code int, why string) {
	if o.Logger != nil {
		o.Logger.Warn("refused a request", "status", code, "method", r.Method, "remote", r.RemoteAddr, "why", why)
	}
	http.Error(w, why, code)
}

// loopback reports whether a Host header names this machine by a name that only
// this machine has.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
