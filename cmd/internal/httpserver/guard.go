package httpserver

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

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
		mount := s.mounts[pattern]
		v, known := s.visit(r, mount)
		r = r.WithContext(context.WithValue(r.Context(), visiting{}, v))
		if known {
			inbound.Known(r.Context())
		}
		wrong := cmp.Or(misplaced(r), elsewhere(w, r))
		switch {
		case !s.named(r.Host):
			s.refuse(w, r, http.StatusForbidden, Problem{Code: "forbidden", Message: "the request is for another host"})
		case !s.sameOrigin(r):
			s.refuse(w, r, http.StatusForbidden, Problem{Code: "forbidden", Message: "pages of other origins may not ask here"})
		case !straight(r.URL):
			s.refuse(w, r, http.StatusBadRequest, Problem{Code: "bad_request", Message: "the path goes up, or holds empty parts"})
		case !known && mount.Knows == nil && (!mount.Public || r.Header.Get("Authorization") != ""):
			w.Header().Set("WWW-Authenticate", "Bearer")
			s.refuse(w, r, http.StatusUnauthorized, Problem{Code: "unauthorized", Message: "the token is missing or wrong", Hint: "send it as: Authorization: Bearer TOKEN"})
		case pattern == "":
			s.nowhere(w, r)
		case known && s.entry != nil && !mount.Public && !v.pass.Scope.Allows(mount.Need(r)):
			s.refuse(w, r, http.StatusForbidden, lacking(v.pass.Scope, mount.Need(r)))
		case wrong != nil:
			s.refuse(w, r, wrong.Status, wrong.Problem)
		default:
			s.serve(served, w, r.WithContext(context.WithValue(r.Context(), route{}, pattern)), v)
		}
	})
}

// serve serves a request that may ask. When its token opens nothing any more, neither does
// the request go on: its context ends, and what waits for its client waits no more.
func (s *Server) serve(served http.Handler, w http.ResponseWriter, r *http.Request, v *visit) {
	if v.pass.Over == nil {
		served.ServeHTTP(w, r)
		return
	}
	ctx, end := context.WithCancelCause(r.Context())
	control := http.NewResponseController(w)
	ended := make(chan struct{})
	watched := make(chan struct{})
	go func() { // ends with the request, which waits for it
		defer close(watched)
		select {
		case <-v.pass.Over:
			end(ErrOver)
			past := time.Unix(1, 0) // errors: a connection that was taken over ends by the context
			_ = control.SetReadDeadline(past)
			_ = control.SetWriteDeadline(time.Now().Add(lastWords))
		case <-ended:
		}
	}()
	defer end(nil)
	defer func() { close(ended); <-watched }()
	served.ServeHTTP(w, r.WithContext(ctx))
}

// ErrOver is the cause of the end of a request's context whose token was revoked, or has
// expired.
var ErrOver = errors.New("the token of the request opens nothing any more")

// lastWords is how long a request has to say how it ends.
const lastWords = time.Second

// Trusted reports whether the request that ctx belongs to has the token, or what Mount.Knows
// takes for it: one to a public mount may be without. It is for handlers of a Server.
func Trusted(ctx context.Context) bool {
	return visitOf(ctx).known
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
	logger := s.logger
	if pass := PassOf(r.Context()); pass.ID != "" {
		logger = logger.With("token", pass.ID, "tenant", pass.Tenant)
	}
	logger.Warn("refused a request", "status", status, "method", r.Method, "path", at, "remote", r.RemoteAddr, "why", p.Message)
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
func (s *Server) sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		site := r.Header.Get("Sec-Fetch-Site")
		return site == "" || site == "same-origin" || site == "none"
	}
	u, err := url.Parse(origin)
	if err != nil || u.User != nil || u.Path != "" || u.RawQuery != "" {
		return false
	}
	if s.beyond != nil {
		return u.Scheme == "https" && strings.EqualFold(u.Host, r.Host)
	}
	return u.Scheme == "http" && loopback.URL(u) && u.Port() == port(r.Host)
}

// named reports whether a request is for this server, by its Host.
func (s *Server) named(host string) bool {
	if s.beyond == nil {
		return loopback.HostPort(host)
	}
	if bare, _, err := net.SplitHostPort(host); err == nil {
		host = bare
	}
	return s.beyond.Named(strings.Trim(host, "[]"))
}

// port is that of a Host header, "" when it has none.
func port(host string) string {
	if _, p, err := net.SplitHostPort(host); err == nil {
		return p
	}
	return ""
}

// visit looks at what a request to a mount shows.
func (s *Server) visit(r *http.Request, mount Mount) (v *visit, known bool) {
	v = &visit{entry: s.entry}
	r = r.WithContext(context.WithValue(r.Context(), visiting{}, v))
	opens := func(token string) bool { return s.opens(v, token) }
	v.known = s.knows(r, opens) || mount.Knows != nil && mount.Knows(r, opens)
	return v, v.known
}

// knows reports whether a request has a token.
func (s *Server) knows(r *http.Request, opens func(string) bool) bool {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && opens(given)
}

// opens reports whether something is a token, and notes what that lets in.
func (s *Server) opens(v *visit, given string) bool {
	if s.entry != nil {
		return v.take(s.entry.Opens(given))
	}
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(s.token)) // of one length, whatever came
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// lacking is the answer to a token whose scope is too small. What declares no scope is for no token.
func lacking(has, need Scope) Problem {
	p := Problem{Code: "scope", Message: "the token may not do this: its scope is " + string(has)}
	if need != "" {
		p.Hint = "ask the server's user for one that may: coppice token create --scope " + string(need)
	}
	return p
}
