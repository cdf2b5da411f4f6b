package httpserver

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/coppice-run/coppice/internal/inbound"
	"github.com/coppice-run/coppice/internal/loopback"
)

// maxHeader bounds the head of a request, in bytes.
const maxHeader = 64 << 10

// maxLogged bounds what a log holds of a request's path, in bytes.
const maxLogged = 200

// guard lets through who knows the token and came here on purpose. What it
// refuses it logs, once, and without what the request carried.
func (s *Server) guard() http.Handler {
	served := http.Handler(s.mux)
	if s.instrument != nil {
		served = s.instrument(served)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		_, pattern := s.mux.Handler(r)
		known, foreign := s.knows(r), s.knowing[pattern]
		if !known && foreign != nil {
			known = foreign(r, s.opens)
		}
		if known {
			inbound.Known(r.Context())
		}
		switch {
		case !loopback.HostPort(r.Host):
			s.refuse(w, r, http.StatusForbidden, Problem{"forbidden", "the request is for another host", ""})
		case !sameOrigin(r):
			s.refuse(w, r, http.StatusForbidden, Problem{"forbidden", "pages of other origins may not ask here", ""})
		case !straight(r.URL):
			s.refuse(w, r, http.StatusBadRequest, Problem{"bad_request", "the path goes up, or holds empty parts", ""})
		case !known && foreign == nil && (!s.public[pattern] || r.Header.Get("Authorization") != ""):
			w.Header().Set("WWW-Authenticate", "Bearer")
			s.refuse(w, r, http.StatusUnauthorized, Problem{"unauthorized", "the token is missing or wrong", "send it as: Authorization: Bearer TOKEN"})
		case pattern == "":
			s.nowhere(w, r)
		default:
			served.ServeHTTP(w, r.WithContext(context.WithValue(context.WithValue(r.Context(), trusted{}, known), route{}, pattern)))
		}
	})
}

// trusted is the key under which a request's context says that it has the token.
type trusted struct{}

// Trusted reports whether the request that ctx belongs to has the token, or what Mount.Knows
// takes for it: one to a public mount may be without. It is for handlers of a Server.
func Trusted(ctx context.Context) bool {
	known, _ := ctx.Value(trusted{}).(bool)
	return known
}

// route is the key under which a request's context has the pattern of its mount.
type route struct{}

// Route is the pattern of the mount that serves the request which ctx belongs to. Of
// those there is a fixed number, unlike of paths.
func Route(ctx context.Context) string {
	pattern, _ := ctx.Value(route{}).(string)
	return pattern
}

// refuse answers no, and logs that. It closes the connection: who may not ask has
// nothing more to say, and a body that is on its way is not waited for.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, status int, p Problem) {
	at := r.URL.Path
	if len(at) > maxLogged {
		at = at[:maxLogged] + "…"
	}
	s.logger.Warn("refused a request", "status", status, "method", r.Method, "path", at, "remote", r.RemoteAddr, "why", p.Message)
	w.Header().Set("Connection", "close")
	Error(w, status, p.Code, p.Message, p.Hint)
}

// nowhere answers a request that no part serves: 404, or 405 with the methods
// that there are.
func (s *Server) nowhere(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := s.mux.Handler(other); pattern != "" && method != r.Method {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		Error(w, http.StatusNotFound, "not_found", "there is nothing at this path", "GET /api/openapi.json lists the paths")
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	Error(w, http.StatusMethodNotAllowed, "method_not_allowed", "the path does not take "+r.Method, "use "+strings.Join(allowed, " or "))
}

// straight reports whether a path is as it would be after cleaning: it does not
// go up, also not in an escaped part.
func straight(u *url.URL) bool {
	escaped := u.EscapedPath()
	if !strings.HasPrefix(escaped, "/") || strings.ContainsRune(u.Path, 0) {
		return false
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(escaped[1:], "/"), "/") {
		plain, err := url.PathUnescape(part)
		if err != nil || part == "" && escaped != "/" {
			return false
		}
		for step := range strings.FieldsFuncSeq(plain, func(r rune) bool { return r == '/' || r == '\\' }) {
			if step == ".." || step == "." {
				return false
			}
		}
	}
	return path.Clean(escaped) == strings.TrimSuffix(escaped, "/") || escaped == "/"
}

// sameOrigin reports whether a request comes from a page of this server, or from no
// page. The names of the loopback interface are one machine: a page that was opened as
// http://localhost:PORT may ask 127.0.0.1:PORT, though a browser takes them for two
// sites. A request whose Host is another name has been refused before.
//
// http.CrossOriginProtection does not do: it lets every GET pass, which here reads what
// sessions show, and pages that came over TLS.
func sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		site := r.Header.Get("Sec-Fetch-Site")
		return site == "" || site == "same-origin" || site == "none"
	}
	u, err := url.Parse(origin)
	return err == nil && u.Scheme == "http" && u.User == nil && u.Path == "" && u.RawQuery == "" && loopback.URL(u) && u.Port() == port(r.Host)
}

// port is that of a Host header, "" when it has none.
func port(host string) string {
	if _, p, err := net.SplitHostPort(host); err == nil {
		return p
	}
	return ""
}

// knows reports whether a request has the token.
func (s *Server) knows(r *http.Request) bool {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return s.opens(given) && ok
}

// opens reports whether something is the token.
func (s *Server) opens(given string) bool {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(s.token)) // of one length, whatever came
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
