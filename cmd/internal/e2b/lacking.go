package e2b

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/coppice-run/coppice/cmd/internal/e2b/answer"
)

// lacking routes what E2B has and this server has not. What is asked about it is
// answered; what would change something is refused, with the reason.
func (a *API) lacking() {
	a.refused("POST /sandboxes/{id}/snapshots", "what a sandbox has in memory comes back in that sandbox alone: pause it, and connect to it later")
	a.refused("POST /sandboxes/{id}/fork", "what a sandbox has in memory cannot be put into another one; make another one, and copy its files")
	a.refused("PUT /sandboxes/{id}/network", "the server decides on the network of its sandboxes")
	a.empty("GET /snapshots")

	const built = "templates are not built here: sandboxes have the server's own environment"
	for _, at := range []string{
		"POST /templates", "POST /v2/templates", "POST /v3/templates", "POST /templates/tags", "DELETE /templates/tags", "PATCH /templates/{id}", "PATCH /v2/templates/{id}",
		"POST /v2/templates/{id}/builds/{build}", "GET /templates/{id}/builds/{build}/status", "GET /templates/{id}/builds/{build}/logs", "GET /templates/{id}/files/{hash}",
	} {
		a.refused(at, built)
	}
	a.mux.HandleFunc("GET /templates", a.templates)
	a.mux.HandleFunc("GET /v2/templates", a.templates)
	a.mux.HandleFunc("GET /templates/aliases/{alias}", a.template)
	a.mux.HandleFunc("DELETE /templates/{id}", func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains(templates, r.PathValue("id")) {
			answer.Error(w, http.StatusForbidden, "the server's own environment cannot be deleted")
			return
		}
		answer.Error(w, http.StatusNotFound, fmt.Sprintf("template or snapshot '%.80s' not found", r.PathValue("id")))
	})
	for kind, what := range map[string]string{"volumes": "there are no volumes here: files live as long as their sandbox", "secrets": "there are no secrets here: give a sandbox its variables when it is made"} {
		a.refused("POST /"+kind, what)
		a.refused("POST /"+kind+"/{id}", what)
		a.empty("GET /" + kind)
		for _, method := range []string{"GET", "DELETE"} {
			a.mux.HandleFunc(method+" /"+kind+"/{id}", func(w http.ResponseWriter, _ *http.Request) { answer.Error(w, http.StatusNotFound, what) })
		}
	}
}

// refused routes what is refused.
func (a *API) refused(pattern, why string) {
	a.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(pattern, " /sandboxes/") || a.named(w, r) != nil {
			answer.Error(w, http.StatusNotImplemented, why)
		}
	})
}

// empty routes a list that has nothing in it.
func (a *API) empty(pattern string) {
	a.mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { answer.JSON(w, http.StatusOK, []string{}) })
}

// templates lists the names of the one environment that there is.
func (a *API) templates(w http.ResponseWriter, _ *http.Request) {
	answer.JSON(w, http.StatusOK, []string{}) // none of them is the client's
}

// template says whether a name is one of the environment.
func (a *API) template(w http.ResponseWriter, r *http.Request) {
	alias := r.PathValue("alias")
	if !slices.Contains(templates, alias) {
		answer.Error(w, http.StatusNotFound, fmt.Sprintf("template '%.80s' not found", alias))
		return
	}
	answer.JSON(w, http.StatusOK, map[string]any{"templateID": alias, "public": true})
}
