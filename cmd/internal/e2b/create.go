package e2b

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/e2b/answer"
	"github.com/coppice-run/coppice/cmd/internal/e2b/shelf"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/workspace"
)

// templates are those that can be asked for. There is one environment, that of the
// server, by two names: clients ask for it by default.
var templates = []string{"base", "code-interpreter-v1"}

// newSandbox is what a client asks for.
type newSandbox struct {
	Template string            `json:"templateID"`
	Timeout  *int64            `json:"timeout"`
	Metadata map[string]string `json:"metadata"`
	Env      map[string]string `json:"envVars"`
	Pause    bool              `json:"autoPause"`
	Memory   *bool             `json:"autoPauseMemory"`
	Resume   *struct {
		Enabled bool `json:"enabled"`
	} `json:"autoResume"`
	Internet *bool             `json:"allow_internet_access"`
	Network  map[string]any    `json:"network"`
	MCP      json.RawMessage   `json:"mcp"`
	IAM      json.RawMessage   `json:"iam"`
	Volumes  []json.RawMessage `json:"volumeMounts"`
}

// auto is what the sandbox is to do by itself.
func (n newSandbox) auto() auto {
	return auto{pause: n.Pause, memory: n.Memory == nil || *n.Memory, resume: n.Resume != nil && n.Resume.Enabled}
}

// lacks says what of it cannot be had, where sandboxes can be paused with their memory, or
// cannot.
func (n newSandbox) lacks(keeps bool) string {
	asks := func(m json.RawMessage) bool { return len(m) > 0 && string(m) != "null" }
	switch {
	case n.Pause && n.auto().memory && !keeps:
		return "a sandbox cannot be paused with its memory at its timeout by this server, which does not keep sessions on disk as a whole: let it be killed, or paused without its memory"
	case n.Internet != nil && !*n.Internet:
		return "the server decides on the network of its sandboxes: leave out allow_internet_access"
	case asks(n.MCP):
		return "there are no MCP servers in sandboxes here"
	case asks(n.IAM):
		return "sandboxes have no workload identity here"
	case len(n.Volumes) > 0:
		return "there are no volumes here"
	}
	for rule, value := range n.Network {
		if rule == "allowPublicTraffic" || value == nil {
			continue // nothing of a sandbox can be reached from outside
		}
		return "the server decides on the network of its sandboxes: leave out network." + rule
	}
	return ""
}

// name is that of a new sandbox. A client that asks again with the same key means the same one.
func (a *API) name(key string) string {
	text := rand.Text()
	if key != "" {
		sum := sha256.Sum256(append(slices.Clone(a.secret), key...))
		text = base32.StdEncoding.EncodeToString(sum[:])
	}
	return "i" + strings.ToLower(text[:20])
}

// nameHeader is what a sandbox is to be called that a request makes, as one node of a fleet tells
// another one.
const nameHeader = "Coppice-Sandbox"

// given is the form of a name that a node has given.
var given = regexp.MustCompile(`^i[a-z2-7]{20}$`)

// newName is what the sandbox is called that a request makes.
func (a *API) newName(r *http.Request) string {
	if name := r.Header.Get(nameHeader); a.o.Secret != nil && given.MatchString(name) {
		return name
	}
	return a.name(r.Header.Get("Idempotency-Key"))
}

// create makes a sandbox.
func (a *API) create(w http.ResponseWriter, r *http.Request) {
	var o newSandbox
	if !answer.Body(w, r, maxBody, &o) {
		return
	}
	from, err := a.environment(o.Template)
	if err != nil {
		refuse(w, err)
		return
	}
	if lacks := o.lacks(a.o.Keeps); lacks != "" {
		answer.Error(w, http.StatusBadRequest, lacks)
		return
	}
	lives, err := lifetime(o.Timeout)
	if err != nil {
		answer.Error(w, http.StatusBadRequest, err.Error())
		return
	}
	s, err := a.open(r.Context(), a.newName(r), o, lives, from)
	if err != nil {
		refuse(w, err)
		return
	}
	answer.JSON(w, http.StatusCreated, a.made(r.Context(), s))
}

// environment is the snapshot that a client asks for as a template; nil: it asks for the
// server's own environment.
func (a *API) environment(template string) (*shelf.Snapshot, error) {
	if template == "" || slices.Contains(templates, template) {
		return nil, nil //nolint:nilnil // most ask for no snapshot
	}
	one, err := a.shelf.Find(template)
	if err == nil && one == nil {
		err = &refusal{http.StatusNotFound, fmt.Sprintf("template '%.80s' not found: there are %s here, which are the server's own environment, and snapshots", template, strings.Join(templates, " and "))}
	}
	return one, err
}

// open makes the sandbox of a name, or returns the one that a request before has made.
func (a *API) open(ctx context.Context, name string, n newSandbox, lives time.Duration, from *shelf.Snapshot) (*sandbox, error) {
	if from != nil {
		done, err := a.alone(ctx, name)
		if err != nil {
			return nil, err
		}
		defer done()
		if s := a.sandbox(name); s != nil {
			return s, nil
		}
		return a.grow(ctx, from, name, n, lives)
	}
	do, at := n.auto(), time.Now().Add(max(lives, leastTimeout))
	asked := workspace.Options{Env: n.Env, Labels: n.Metadata, EndAt: at}
	if do.pause {
		asked.EndAt = time.Time{} // it is paused then
	}
	made, err := a.o.Host.Workspace(ctx, name, asked)
	if err != nil {
		return nil, err
	}
	s := a.of(made, n.Template)
	if s == nil {
		return nil, coppice.ErrClosed
	}
	s.rest.will(do)
	if do.pause {
		s.rest.pausesAt(at)
	}
	return s, nil
}

// alone waits until no one else makes the sandbox of a name. done has to be called when there
// is no error.
func (a *API) alone(ctx context.Context, name string) (done func(), err error) {
	mine := make(chan struct{})
	for {
		a.mu.Lock()
		other := a.making[name]
		if other == nil {
			a.making[name] = mine
		}
		a.mu.Unlock()
		if other == nil {
			return func() {
				a.mu.Lock()
				defer a.mu.Unlock()
				delete(a.making, name)
				close(mine)
			}, nil
		}
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// lacking routes what E2B has and this server has not. What is asked about it is
// answered; what would change something is refused, with the reason.
func (a *API) lacking() {
	a.refused("PUT /sandboxes/{id}/network", "the server decides on the network of its sandboxes")

	const built = "templates are not built here: sandboxes have the server's own environment"
	for _, at := range []string{
		"POST /templates", "POST /v2/templates", "POST /v3/templates", "POST /templates/tags", "DELETE /templates/tags", "PATCH /templates/{id}", "PATCH /v2/templates/{id}",
		"POST /v2/templates/{id}/builds/{build}", "GET /templates/{id}/builds/{build}/status", "GET /templates/{id}/builds/{build}/logs", "GET /templates/{id}/files/{hash}",
	} {
		a.refused(at, built)
	}
	a.mux.HandleFunc("GET /templates", httpserver.Read, a.templates)
	a.mux.HandleFunc("GET /v2/templates", httpserver.Read, a.templates)
	a.mux.HandleFunc("GET /templates/aliases/{alias}", httpserver.Read, a.template)
	for kind, what := range map[string]string{"volumes": "there are no volumes here: files live as long as their sandbox", "secrets": "there are no secrets here: give a sandbox its variables when it is made"} {
		a.refused("POST /"+kind, what)
		a.refused("POST /"+kind+"/{id}", what)
		a.empty("GET /" + kind)
		for _, method := range []string{"GET", "DELETE"} {
			a.mux.HandleFunc(method+" /"+kind+"/{id}", httpserver.Read, func(w http.ResponseWriter, _ *http.Request) { answer.Error(w, http.StatusNotFound, what) })
		}
	}
}

// refused routes what is refused.
func (a *API) refused(pattern, why string) {
	a.mux.HandleFunc(pattern, httpserver.Read, func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(pattern, " /sandboxes/") || a.named(w, r) != nil {
			answer.Error(w, http.StatusNotImplemented, why)
		}
	})
}

// empty routes a list that has nothing in it.
func (a *API) empty(pattern string) {
	a.mux.HandleFunc(pattern, httpserver.Read, func(w http.ResponseWriter, _ *http.Request) { answer.JSON(w, http.StatusOK, []string{}) })
}

// templates lists the names of the one environment that there is.
func (a *API) templates(w http.ResponseWriter, _ *http.Request) {
	answer.JSON(w, http.StatusOK, []string{}) // none of them is the client's
}

// template says whether a name is one of the environment, or of a snapshot.
func (a *API) template(w http.ResponseWriter, r *http.Request) {
	alias := r.PathValue("alias")
	if slices.Contains(templates, alias) {
		answer.JSON(w, http.StatusOK, map[string]any{"templateID": alias, "public": true})
		return
	}
	one, err := a.shelf.Find(alias)
	switch {
	case err != nil:
		refuse(w, err)
	case one == nil:
		answer.Error(w, http.StatusNotFound, fmt.Sprintf("template '%.80s' not found", alias))
	default:
		answer.JSON(w, http.StatusOK, map[string]any{"templateID": one.ID, "public": false})
	}
}
