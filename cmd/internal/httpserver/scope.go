package httpserver

import (
	"context"
	"errors"
	"net/http"
	"slices"
)

// Scope is what a token is good for. Each one holds those before it.
type Scope string

// The scopes. The zero value is none: what declares it is answered to no one who comes by
// an [Entry].
const (
	// Read looks at things.
	Read Scope = "read"
	// Run runs code, and changes sessions, workspaces and what is in them.
	Run Scope = "run"
	// Admin is for what concerns the server and all of its tenants.
	Admin Scope = "admin"
)

// scopes are all of them, the smallest first.
var scopes = []Scope{Read, Run, Admin}

// Scopes returns all scopes, the smallest first.
func Scopes() []Scope { return slices.Clone(scopes) }

// Allows reports whether a token with this scope may do what takes another one.
func (s Scope) Allows(need Scope) bool {
	has, wants := slices.Index(scopes, s), slices.Index(scopes, need)
	return wants >= 0 && has >= wants
}

// Pass is what a token lets in.
type Pass struct {
	// ID names the token, and Tenant whom it belongs to. Neither opens anything.
	ID, Tenant string
	Scope      Scope
	// Over is closed when the token opens nothing any more. nil: it never is.
	Over <-chan struct{}
}

// Entry knows many tokens, in place of Options.Token. Any goroutine may call it.
type Entry interface {
	// Opens looks for a token. It takes a time that tells nothing of those that there are.
	Opens(token string) (Pass, bool)
	// Vouch is Opens for what was made for the holder of a token (an access token of one
	// sandbox, a signed address), by the ID of that.
	Vouch(id string) (Pass, bool)
	// Issuers are the IDs that Vouch takes.
	Issuers() []string
}

// visit is what is known of a request: its context has it. It belongs to the goroutine of
// the guard until a handler is called, and does not change afterwards.
type visit struct {
	entry Entry
	pass  Pass
	known bool
}

// visiting is the key under which a request's context has its visit.
type visiting struct{}

func visitOf(ctx context.Context) *visit {
	v, _ := ctx.Value(visiting{}).(*visit)
	if v == nil {
		return &visit{}
	}
	return v
}

// PassOf is what let a request in, the zero Pass where the server has one token for
// everything. ctx is that of the request.
func PassOf(ctx context.Context) Pass { return visitOf(ctx).pass }

// Issuers are the IDs of tokens for which something may have been made that a request
// shows, for Mount.Knows: "" alone where the server has one token for everything.
func Issuers(ctx context.Context) []string {
	if v := visitOf(ctx); v.entry != nil {
		return v.entry.Issuers()
	}
	return []string{""}
}

// Vouch lets a request in that has shown what was made for the token of an ID, for
// Mount.Knows; false: that token opens nothing any more.
func Vouch(ctx context.Context, id string) bool {
	v := visitOf(ctx)
	if v.entry == nil {
		return id == ""
	}
	return v.take(v.entry.Vouch(id))
}

// take notes what lets the request in.
func (v *visit) take(p Pass, ok bool) bool {
	if ok {
		v.pass = p
	}
	return ok
}

// Routes is a mux for the inside of a Mount, whose routes declare their scopes. Make it
// with NewRoutes.
type Routes struct {
	mux    *http.ServeMux
	scopes map[string]Scope
}

// NewRoutes returns routes without any.
func NewRoutes() *Routes { return &Routes{http.NewServeMux(), map[string]Scope{}} }

// HandleFunc adds one, as http.ServeMux does.
func (r *Routes) HandleFunc(pattern string, need Scope, f http.HandlerFunc) {
	r.mux.HandleFunc(pattern, f)
	r.scopes[pattern] = need
}

// ServeHTTP serves a request by its route.
func (r *Routes) ServeHTTP(w http.ResponseWriter, req *http.Request) { r.mux.ServeHTTP(w, req) }

// Declared is the scope of each route, by its pattern.
func (r *Routes) Declared() map[string]Scope { return r.scopes }

// Of is the scope of the route that a request takes.
func (r *Routes) Of(req *http.Request) Scope {
	_, pattern := r.mux.Handler(req)
	return r.scopes[pattern]
}

// Below is Of for requests whose paths have a prefix that the routes do not have.
func (r *Routes) Below(prefix string) func(*http.Request) Scope {
	return func(req *http.Request) (need Scope) {
		http.StripPrefix(prefix, http.HandlerFunc(func(_ http.ResponseWriter, inner *http.Request) {
			need = r.Of(inner)
		})).ServeHTTP(nowhere{}, req)
		return need
	}
}

// nowhere is written to by what has no answer.
type nowhere struct{}

// Header is that of an http.ResponseWriter.
func (nowhere) Header() http.Header { return http.Header{} }

// Write takes everything.
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader does nothing.
func (nowhere) WriteHeader(int) {}

// Over reports whether a request was ended because its token opens nothing any more.
func Over(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrOver) }
