package e2b

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/coppice-run/coppice/cmd/internal/dialect"
	"github.com/coppice-run/coppice/cmd/internal/e2b/answer"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/messages"
)

var _ dialect.Dialect = (*API)(nil)

// Streams reports whether a request is about the inside of a sandbox.
func (a *API) Streams(r *http.Request) bool { return opensInside(below(r.URL.Path)) }

// below is a path without the base.
func below(path string) string {
	if rest, ok := strings.CutPrefix(path, Base); ok && strings.HasPrefix(rest, "/") {
		return rest
	}
	return path
}

// About says which sandbox a request is about. One that makes a sandbox notes its name.
func (a *API) About(r *http.Request, body []byte) dialect.About {
	if !httpserver.Trusted(r.Context()) {
		return dialect.About{} // the handler refuses it
	}
	path := below(r.URL.Path)
	if opensInside(path) {
		return dialect.About{Workspace: a.meant(r), Begins: does(inner(r, path)) == starts}
	}
	versioned := strings.TrimPrefix(path, "/v2")
	kind, rest, _ := strings.Cut(strings.TrimPrefix(versioned, "/"), "/")
	id, what, _ := strings.Cut(rest, "/")
	switch {
	case r.Method == http.MethodPost && versioned == "/sandboxes":
		return a.aboutNew(r, body)
	case r.Method == http.MethodGet && versioned == "/sandboxes":
		return dialect.About{Merge: merge(r.URL.Query())}
	case kind == "sandboxes" && id != "":
		about := dialect.About{Workspace: id}
		if what == "fork" {
			about.Made = forkedOf
		}
		return about
	case r.Method == http.MethodGet && path == "/snapshots":
		return dialect.About{Merge: merge(r.URL.Query())}
	case r.Method == http.MethodDelete && kind == "templates" && id != "" && what == "":
		return dialect.About{Near: aliasPath(id)}
	case r.Method == http.MethodGet && strings.HasPrefix(path, "/templates/aliases/"):
		return dialect.About{Near: aliasPath(strings.TrimPrefix(path, "/templates/aliases/"))}
	default:
		return dialect.About{}
	}
}

// aliasPath is where one asks whether a node has an environment.
func aliasPath(name string) string { return Base + "/templates/aliases/" + url.PathEscape(name) }

// inner is a request as the inside of a sandbox has it.
func inner(r *http.Request, path string) *http.Request {
	return &http.Request{Method: r.Method, URL: &url.URL{Path: path}}
}

// aboutNew says where a sandbox is made: anywhere, or at the node that has the snapshot which it
// is made of. One that cannot be read is refused where it came.
func (a *API) aboutNew(r *http.Request, body []byte) dialect.About {
	var n newSandbox
	if len(body) > 0 && json.Unmarshal(body, &n) != nil {
		return dialect.About{}
	}
	if !given.MatchString(r.Header.Get(nameHeader)) {
		r.Header.Set(nameHeader, a.name(r.Header.Get("Idempotency-Key")))
	}
	about := dialect.About{Workspace: r.Header.Get(nameHeader), Makes: true}
	if n.Template != "" && !slices.Contains(templates, n.Template) {
		about.Near = aliasPath(n.Template)
	}
	return about
}

// forkedOf are the sandboxes that a fork has made, by its answer.
func forkedOf(body []byte) []messages.SessionKey {
	var list []forked
	_ = json.Unmarshal(body, &list) // it is that of this server
	var keys []messages.SessionKey
	for _, one := range list {
		if one.Sandbox != nil {
			keys = append(keys, messages.SessionKey{Workspace: one.Sandbox.ID})
		}
	}
	return keys
}

// merge makes one page of the first pages of all nodes.
func merge(q url.Values) func(http.ResponseWriter, []dialect.Page) {
	return func(w http.ResponseWriter, pages []dialect.Page) {
		o, err := queryOf(q) // a node has answered to it
		if err != nil {
			answer.Error(w, http.StatusBadRequest, err.Error())
			return
		}
		type entry struct {
			place string
			text  json.RawMessage
		}
		var all []entry
		more := false
		for _, p := range pages {
			var texts []json.RawMessage
			places := strings.Split(p.Header.Get(placesHeader), ",")
			if json.Unmarshal(p.Body, &texts) != nil || len(texts) == 0 || len(places) != len(texts) {
				continue
			}
			more = more || p.Header.Get(nextHeader) != ""
			for i, text := range texts {
				at, _ := base64.RawURLEncoding.DecodeString(places[i]) // it is that of a node
				all = append(all, entry{string(at), text})
			}
		}
		slices.SortStableFunc(all, func(x, y entry) int {
			if o.ascending {
				return strings.Compare(x.place, y.place)
			}
			return strings.Compare(y.place, x.place)
		})
		page := []json.RawMessage{}
		for _, e := range all[:min(len(all), o.limit)] {
			page = append(page, e.text)
		}
		if n := len(page); n > 0 && (more || len(all) > n) {
			w.Header().Set(nextHeader, base64.RawURLEncoding.EncodeToString([]byte(all[n-1].place)))
		}
		answer.JSON(w, http.StatusOK, page)
	}
}

// Refuse answers in the form of E2B's errors. What is said about the inside of a sandbox that
// is lost is what is said of one that has ended.
func (a *API) Refuse(w http.ResponseWriter, r *http.Request, no *httpserver.Refusal) {
	if no.Status == http.StatusGone {
		if opensInside(below(r.URL.Path)) {
			answer.Ended(w, a.meant(r))
			return
		}
		answer.Error(w, http.StatusNotFound, no.Message)
		return
	}
	no.SayWhen(w)
	why := no.Message
	if no.Hint != "" {
		why += ": " + no.Hint
	}
	answer.Error(w, no.Status, why)
}
