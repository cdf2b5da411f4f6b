package jupyterapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/messages"
)

// document is what Jupyter calls a session: a path that has a kernel. What stands at the
// path is not looked at.
type document struct {
	id     string
	path   string  // guarded by API.mu, as what follows
	name   string  // of the document, for people
	kind   string  // "notebook", "console", "file"
	kernel *kernel // several may share one
}

// documentModel is a document for clients.
type documentModel struct {
	ID     string `json:"id"`
	Path   string `json:"path"`
	Name   string `json:"name"`
	Type   string `json:"type"`
	Kernel model  `json:"kernel"`
	// Notebook is for clients that are older than Path.
	Notebook *notebook `json:"notebook,omitempty"`
}

type notebook struct {
	Path string `json:"path"`
	Name string `json:"name"`
}

// wish is what a client says of a document; nil: nothing.
type wish struct {
	Path   *string `json:"path"`
	Name   *string `json:"name"`
	Type   *string `json:"type"`
	Kernel struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"kernel"`
	Notebook *notebook `json:"notebook"`
}

// described returns documents for clients.
func (a *API) described(ctx context.Context, list ...*document) ([]documentModel, error) {
	kernels := make([]*kernel, len(list))
	models := make([]documentModel, len(list))
	a.mu.Lock()
	for i, d := range list {
		kernels[i], models[i] = d.kernel, documentModel{ID: d.id, Path: d.path, Name: d.name, Type: d.kind}
		if d.kind == "notebook" {
			models[i].Notebook = &notebook{d.path, d.name}
		}
	}
	a.mu.Unlock()
	of, err := a.models(ctx, kernels...)
	for i := range of {
		models[i].Kernel = of[i]
	}
	return models, err
}

// show answers with one document.
func (a *API) show(w http.ResponseWriter, r *http.Request, status int, d *document) {
	list, err := a.described(r.Context(), d)
	if err != nil {
		failed(w, err)
		return
	}
	httpserver.JSON(w, status, list[0])
}

// The query by which the nodes of a fleet ask each other for a document, by its path, or for the
// kernel that one is to have.
const (
	askPath   = "document"
	askKernel = "kernel"
)

// has answers another node that asks for a document, or for the kernel that one is to have; false:
// nobody has asked.
func (a *API) has(w http.ResponseWriter, r *http.Request) bool {
	q := r.URL.Query()
	if !q.Has(askPath) {
		return false
	}
	if a.find(func(d *document) bool { return d.path == q.Get(askPath) }) == nil && a.kernel(q.Get(askKernel)) == nil {
		refuse(w, http.StatusNotFound, "Not Found", "")
		return true
	}
	httpserver.JSON(w, http.StatusOK, []string{})
	return true
}

func (a *API) listSessions(w http.ResponseWriter, r *http.Request) {
	if a.has(w, r) {
		return
	}
	a.mu.Lock()
	all := slices.Clone(a.sessions)
	a.mu.Unlock()
	list, err := a.described(r.Context(), all...)
	if err != nil {
		failed(w, err)
		return
	}
	httpserver.JSON(w, http.StatusOK, list)
}

// find returns the document that is meant, nil when there is none.
func (a *API) find(meant func(*document) bool) *document {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.IndexFunc(a.sessions, meant); i >= 0 {
		return a.sessions[i]
	}
	return nil
}

// open is the document in the path of a request; nil: the request was answered.
func (a *API) open(w http.ResponseWriter, r *http.Request) *document {
	d := a.find(func(d *document) bool { return d.id == r.PathValue("id") })
	if d == nil {
		refuse(w, http.StatusNotFound, fmt.Sprintf("Session not found: session_id='%.80s'", r.PathValue("id")), "")
	}
	return d
}

func (a *API) getSession(w http.ResponseWriter, r *http.Request) {
	if d := a.open(w, r); d != nil {
		a.show(w, r, http.StatusOK, d)
	}
}

// chosen is the kernel that a client wants for a document; nil: the request was answered.
func (a *API) chosen(w http.ResponseWriter, r *http.Request, o wish, path string) *kernel {
	if o.Kernel.ID != "" {
		k := a.kernel(o.Kernel.ID)
		if k == nil {
			refuse(w, http.StatusNotFound, fmt.Sprintf("Kernel does not exist: %.80s", o.Kernel.ID), "")
		}
		return k
	}
	k, err := a.start(r.Context(), o.Kernel.Name, a.directory(path))
	if err != nil {
		unstarted(w, err)
		return nil
	}
	return k
}

// reserve returns the document at a path, after whoever makes it now. nil, and not full: the
// caller makes it, and calls reserved then.
func (a *API) reserve(ctx context.Context, path string) (d *document, full bool, err error) {
	for {
		a.mu.Lock()
		i := slices.IndexFunc(a.sessions, func(d *document) bool { return d.path == path })
		made := a.opening[path]
		switch {
		case i >= 0:
			d = a.sessions[i]
		case made != nil:
		case len(a.sessions)+len(a.opening) >= maxSessions:
			full = true
		default:
			a.opening[path] = make(chan struct{})
		}
		a.mu.Unlock()
		if i >= 0 || made == nil {
			return d, full, nil
		}
		select {
		case <-made: // or could not be
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
}

// reserved lets others make the document at a path, where it is not made.
func (a *API) reserved(path string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.opening[path])
	delete(a.opening, path)
}

// createSession gives a document a kernel. One that has one keeps it.
func (a *API) createSession(w http.ResponseWriter, r *http.Request) {
	var o wish
	if !body(w, r, &o) {
		return
	}
	if o.Path == nil && o.Notebook != nil { // an old client
		kind := "notebook"
		o.Path, o.Name, o.Type = &o.Notebook.Path, &o.Notebook.Name, &kind
	}
	switch {
	case o.Path == nil:
		refuse(w, http.StatusBadRequest, "Missing field in JSON data: path", "")
		return
	case o.Type == nil:
		refuse(w, http.StatusBadRequest, "Missing field in JSON data: type", "")
		return
	}
	d, full, err := a.reserve(r.Context(), *o.Path)
	switch {
	case err != nil:
		return // the client has gone
	case d != nil:
		a.show(w, r, http.StatusCreated, d)
		return
	case full:
		refuse(w, http.StatusServiceUnavailable, "Service Unavailable", fmt.Sprintf("there are %d sessions; delete one", maxSessions))
		return
	}
	defer a.reserved(*o.Path)
	k := a.chosen(w, r, o, *o.Path)
	if k == nil {
		return
	}
	d = &document{id: messages.NewID(), path: *o.Path, kind: *o.Type, kernel: k}
	if o.Name != nil {
		d.name = *o.Name
	}
	a.mu.Lock()
	a.sessions = append(a.sessions, d)
	a.mu.Unlock()
	a.leave()
	w.Header().Set("Location", Base+"/api/sessions/"+d.id)
	a.show(w, r, http.StatusCreated, d)
}

// changeSession gives a document another name or kernel. A kernel that no document has any
// more ends.
func (a *API) changeSession(w http.ResponseWriter, r *http.Request) {
	d := a.open(w, r)
	if d == nil {
		return
	}
	var o wish
	if !body(w, r, &o) {
		return
	}
	a.mu.Lock()
	path := d.path
	a.mu.Unlock()
	if o.Path != nil {
		path = *o.Path
	}
	var k *kernel
	if o.Kernel.ID != "" || o.Kernel.Name != "" {
		if k = a.chosen(w, r, o, path); k == nil {
			return
		}
	}
	a.mu.Lock()
	before := d.kernel
	d.path = path
	if o.Name != nil {
		d.name = *o.Name
	}
	if o.Type != nil {
		d.kind = *o.Type
	}
	if k != nil {
		d.kernel = k
	}
	used := slices.ContainsFunc(a.sessions, func(d *document) bool { return d.kernel == before })
	a.mu.Unlock()
	a.leave()
	if k != nil && !used {
		if err := a.stop(r.Context(), before); err != nil {
			failed(w, err)
			return
		}
	}
	a.show(w, r, http.StatusOK, d)
}

// deleteSession ends the kernel of a document, and forgets both.
func (a *API) deleteSession(w http.ResponseWriter, r *http.Request) {
	d := a.open(w, r)
	if d == nil {
		return
	}
	a.mu.Lock()
	k := d.kernel
	a.mu.Unlock()
	if err := a.stop(r.Context(), k); err != nil {
		failed(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
