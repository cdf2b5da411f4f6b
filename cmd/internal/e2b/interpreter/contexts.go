package interpreter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/e2b/answer"
	"github.com/coppice-run/coppice/cmd/internal/e2b/envd"
	"github.com/coppice-run/coppice/workspace"
	"github.com/coppice-run/coppice/workspace/files"
)

const (
	// python is the language of contexts.
	python = "python"
	// defaultID is the context of code that names none.
	defaultID = "default"
	// maxContexts is how many contexts one sandbox may have.
	maxContexts = 256
	// maxBody bounds a request, in bytes.
	maxBody = 32 << 20
)

// Host makes sessions; a *coppice.Host does.
type Host interface {
	Session(name string, options ...coppice.SessionOption) *coppice.Session
	Kernelspecs(ctx context.Context) ([]coppice.Kernelspec, error)
}

// Interpreter serves the contexts of one workspace. Make it with New.
type Interpreter struct {
	host Host
	w    *workspace.Workspace
	mux  *http.ServeMux

	mu   sync.Mutex
	list []*session // in the order in which they were made; guarded by mu
}

// session is a context.
type session struct {
	description
	s *coppice.Session
}

// description is a context for clients.
type description struct {
	ID       string `json:"id"`
	Language string `json:"language"`
	Cwd      string `json:"cwd"`
}

// New returns what serves the contexts of a workspace. It starts no kernel.
func New(host Host, w *workspace.Workspace) *Interpreter {
	i := &Interpreter{host: host, w: w, mux: http.NewServeMux()}
	i.list = []*session{i.make(defaultID, w.Folder(), tongue{language: python})}
	i.mux.HandleFunc("POST /execute", i.execute)
	i.mux.HandleFunc("GET /contexts", i.contexts)
	i.mux.HandleFunc("POST /contexts", i.create)
	i.mux.HandleFunc("DELETE /contexts/{id}", i.remove)
	i.mux.HandleFunc("POST /contexts/{id}/restart", i.restart)
	return i
}

// Context describes a context, for another workspace that is to have it too.
type Context struct {
	ID  string `json:"id"`
	Cwd string `json:"cwd"`
	// Language is that of its code, and Kernel the kernelspec; "": Python, and what sessions have
	// that name none.
	Language string `json:"language,omitempty"`
	Kernel   string `json:"kernel,omitempty"`
}

// Contexts are those there are, in the order in which they were made.
func (i *Interpreter) Contexts() []Context {
	i.mu.Lock()
	defer i.mu.Unlock()
	list := make([]Context, len(i.list))
	for at, c := range i.list {
		list[at] = Context{ID: c.ID, Cwd: c.Cwd, Kernel: c.s.Key().Kernel}
		if c.Language != python {
			list[at].Language = c.Language
		}
	}
	return list
}

// Adopt adds contexts; those that are there stay as they are. It starts no kernel.
func (i *Interpreter) Adopt(list []Context) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, c := range list {
		if !slices.ContainsFunc(i.list, func(one *session) bool { return one.ID == c.ID }) {
			i.list = append(i.list, i.make(c.ID, c.Cwd, tongue{cmp.Or(c.Language, python), c.Kernel}))
		}
	}
}

// ServeHTTP serves what clients ask the code interpreter.
func (i *Interpreter) ServeHTTP(w http.ResponseWriter, r *http.Request) { i.mux.ServeHTTP(w, r) }

func (i *Interpreter) make(id, cwd string, t tongue) *session {
	return &session{
		description: description{id, t.language, cwd},
		s:           i.host.Session(id, coppice.InWorkspace(i.w.Name()), coppice.In(cwd), coppice.OnKernel(t.kernel)),
	}
}

// contexts lists those there are.
func (i *Interpreter) contexts(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	list := make([]description, len(i.list))
	for at, c := range i.list {
		list[at] = c.description
	}
	answer.JSON(w, http.StatusOK, list)
}

// find returns a context, "" for the default one.
func (i *Interpreter) find(id string) *session {
	i.mu.Lock()
	defer i.mu.Unlock()
	if id == "" {
		id = defaultID
	}
	if at := slices.IndexFunc(i.list, func(c *session) bool { return c.ID == id }); at >= 0 {
		return i.list[at]
	}
	return nil
}

// named is the context in the path of a request; nil: the request was answered.
func (i *Interpreter) named(w http.ResponseWriter, r *http.Request) *session {
	c := i.find(r.PathValue("id"))
	if c == nil {
		unknown(w, r.PathValue("id"))
	}
	return c
}

func unknown(w http.ResponseWriter, id string) {
	answer.Error(w, http.StatusNotFound, fmt.Sprintf("Context %.80s not found", id))
}

// create makes a context. Its kernel starts with its first code.
func (i *Interpreter) create(w http.ResponseWriter, r *http.Request) {
	var o struct {
		Language string `json:"language"`
		Cwd      string `json:"cwd"`
	}
	if !answer.Body(w, r, maxBody, &o) {
		return
	}
	t, err := i.speaks(r.Context(), o.Language)
	if err != nil {
		refuseLanguage(w, err)
		return
	}
	cwd, err := i.directory(o.Cwd)
	if err != nil {
		answer.Error(w, http.StatusBadRequest, err.Error())
		return
	}
	c := i.make(uuid.NewString(), cwd, t)
	if !i.add(c) {
		full(w)
		return
	}
	answer.JSON(w, http.StatusOK, c.description)
}

// add puts a context in the list; false: there are too many.
func (i *Interpreter) add(c *session) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if slices.ContainsFunc(i.list, func(one *session) bool { return one.ID == c.ID }) {
		return true // somebody else has made it
	}
	if len(i.list) >= maxContexts {
		return false
	}
	i.list = append(i.list, c)
	return true
}

// full refuses one context more.
func full(w http.ResponseWriter) {
	answer.Error(w, http.StatusTooManyRequests, fmt.Sprintf("the sandbox has %d contexts; remove one", maxContexts))
}

// directory is the working directory that a client means. One in the folder of the
// workspace has to be there.
func (i *Interpreter) directory(name string) (string, error) {
	at, err := envd.Within(i.w.Folder(), name)
	if errors.Is(err, files.ErrOutside) {
		return name, nil // the first code says what is wrong with it
	}
	if err != nil {
		return "", err
	}
	f, err := i.w.Files()
	if err != nil {
		return "", err
	}
	if _, _, err := f.List(context.Background(), at, files.ListOptions{Most: 1}); err != nil {
		return "", fmt.Errorf("the working directory cannot be used: %w", err)
	}
	return filepath.Join(i.w.Folder(), filepath.FromSlash(at)), nil
}

// remove ends a context.
func (i *Interpreter) remove(w http.ResponseWriter, r *http.Request) {
	c := i.named(w, r)
	if c == nil {
		return
	}
	if c.ID != defaultID {
		i.mu.Lock()
		i.list = slices.DeleteFunc(i.list, func(one *session) bool { return one == c })
		i.mu.Unlock()
	}
	if err := c.s.Close(r.Context()); err != nil {
		i.refuse(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// restart ends the kernel of a context; the next code gets a new one.
func (i *Interpreter) restart(w http.ResponseWriter, r *http.Request) {
	c := i.named(w, r)
	if c == nil {
		return
	}
	if err := c.s.Reset(r.Context()); err != nil {
		i.refuse(w, err)
		return
	}
	answer.JSON(w, http.StatusOK, nil)
}
