package jupyterapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/coppice-run/coppice/cmd/internal/dialect"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/messages"
)

var _ dialect.Dialect = (*API)(nil)

// Streams reports whether a request is about something else than kernels and documents, or is a
// connection to a kernel.
func (a *API) Streams(r *http.Request) bool {
	kind, _, what := parts(r)
	return kind == "" || what == "channels"
}

// parts are those of a path about kernels or documents; kind is "" for another one.
func parts(r *http.Request) (kind, id, what string) {
	rest, _ := strings.CutPrefix(r.URL.Path, Base+"/api/")
	kind, rest, _ = strings.Cut(rest, "/")
	if kind != "kernels" && kind != "sessions" {
		return "", "", ""
	}
	id, what, _ = strings.Cut(rest, "/")
	return kind, id, what
}

// About says at which node the kernel or the document of a request is. A token in its query is
// in its header then, for the other nodes.
func (a *API) About(r *http.Request, body []byte) dialect.About {
	if !httpserver.Trusted(r.Context()) {
		return dialect.About{} // the handler refuses it
	}
	if token := r.URL.Query().Get("token"); token != "" && r.Header.Get("Authorization") == "" {
		r.Header.Set("Authorization", "token "+token)
	}
	kind, id, what := parts(r)
	switch {
	case kind == "":
		return dialect.About{}
	case id != "":
		about := dialect.About{Near: Base + "/api/" + kind + "/" + url.PathEscape(id)}
		if k := a.kernel(id); k != nil && what != "" { // a process may begin for it
			about.Holds = k.s.Key()
		}
		return about
	case r.Method == http.MethodGet:
		return dialect.About{Merge: merge}
	case kind == "kernels":
		return dialect.About{Anywhere: messages.NewID()}
	default:
		return a.aboutDocument(body)
	}
}

// aboutDocument says where a document is that a request gives a kernel: where it has one, or where
// the kernel is that it is to have. Nodes that are asked at once choose alike.
func (a *API) aboutDocument(body []byte) dialect.About {
	var o wish
	_ = json.Unmarshal(body, &o) // the handler says what is wrong with it
	if o.Path == nil && o.Notebook != nil {
		o.Path = &o.Notebook.Path
	}
	if o.Path == nil {
		return dialect.About{}
	}
	about := dialect.About{Near: Base + "/api/sessions?" + url.Values{askPath: {*o.Path}, askKernel: {o.Kernel.ID}}.Encode()}
	if o.Kernel.ID == "" {
		about.Anywhere, about.Alike = "document "+*o.Path, true
	}
	return about
}

// merge makes one list of those of all nodes, in the order in which its entries were made.
func merge(w http.ResponseWriter, pages []dialect.Page) {
	type entry struct {
		id   string
		text json.RawMessage
	}
	all := []entry{}
	for _, p := range pages {
		var texts []json.RawMessage
		_ = json.Unmarshal(p.Body, &texts) // it is that of a node
		for _, text := range texts {
			e := entry{text: text}
			var told struct{ ID string }
			if json.NewDecoder(bytes.NewReader(text)).Decode(&told) == nil {
				e.id = told.ID
			}
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(x, y entry) int { return cmp.Compare(x.id, y.id) }) // ids begin with their time
	list := make([]json.RawMessage, 0, len(all))
	for _, e := range all {
		list = append(list, e.text)
	}
	httpserver.JSON(w, http.StatusOK, list)
}

// Refuse answers in Jupyter's form of an error.
func (a *API) Refuse(w http.ResponseWriter, _ *http.Request, no *httpserver.Refusal) {
	failed(w, no)
}
