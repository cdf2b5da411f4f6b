package jupyterapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/messages"
)

// errClosed refuses what comes when the server ends.
var errClosed = errors.New("the server ends")

// model is a kernel for clients.
type model struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Activity    string `json:"last_activity"`
	State       string `json:"execution_state"`
	Connections int    `json:"connections"`
}

// all are the kernels, in the order in which they were started.
func (a *API) all() []*kernel {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := make([]*kernel, 0, len(a.kernels))
	for _, k := range a.kernels {
		list = append(list, k)
	}
	slices.SortFunc(list, func(x, y *kernel) int { return cmp.Compare(x.id, y.id) }) // ids begin with their time
	return list
}

// kernel returns the one with an id, nil when there is none.
func (a *API) kernel(id string) *kernel {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.kernels[id]
}

// named is the kernel in the path of a request; nil: the request was answered.
func (a *API) named(w http.ResponseWriter, r *http.Request) *kernel {
	k := a.kernel(r.PathValue("id"))
	if k == nil {
		refuse(w, http.StatusNotFound, fmt.Sprintf("Kernel does not exist: %.80s", r.PathValue("id")), "")
	}
	return k
}

// living are the ids of the kernels that have a process now, and those that are kept on disk
// without one: each goes on with its next request.
func (a *API) living(ctx context.Context) (map[string]bool, error) {
	list, err := a.o.Host.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	kept, err := a.o.Host.Hibernated(ctx)
	if err != nil {
		return nil, err
	}
	live := make(map[string]bool, len(list)+len(kept))
	for _, s := range list {
		live[s.Key.Session] = true
	}
	for _, s := range kept {
		live[s.Key.Session] = true
	}
	return live, nil
}

// models describes kernels.
func (a *API) models(ctx context.Context, list ...*kernel) ([]model, error) {
	live, err := a.living(ctx)
	if err != nil {
		return nil, err
	}
	models := make([]model, 0, len(list))
	for _, k := range list {
		g := k.glance()
		if g.state == idle && !live[k.id] && !g.left {
			g.state = dead // it was idle for too long; the next request starts it again
		}
		models = append(models, model{ID: k.id, Name: k.spec.Name, Activity: stamp(g.active), State: g.state, Connections: g.connections})
	}
	return models, nil
}

// tell answers with one kernel.
func (a *API) tell(w http.ResponseWriter, r *http.Request, status int, k *kernel) {
	list, err := a.models(r.Context(), k)
	if err != nil {
		failed(w, err)
		return
	}
	httpserver.JSON(w, status, list[0])
}

func (a *API) listKernels(w http.ResponseWriter, r *http.Request) {
	list, err := a.models(r.Context(), a.all()...)
	if err != nil {
		failed(w, err)
		return
	}
	httpserver.JSON(w, http.StatusOK, list)
}

func (a *API) getKernel(w http.ResponseWriter, r *http.Request) {
	if k := a.named(w, r); k != nil {
		a.tell(w, r, http.StatusOK, k)
	}
}

// directory is where the kernel of a document runs: the nearest folder of its path that is
// there, and the server's own for a path that leads out of that.
func (a *API) directory(path string) string {
	if path = filepath.FromSlash(path); !filepath.IsLocal(path) {
		return a.o.Cwd
	}
	for ; path != "."; path = filepath.Dir(path) {
		at := filepath.Join(a.o.Cwd, path)
		if a.o.Root != "" && !file.Below(a.o.Root, at) {
			continue
		}
		if info, err := os.Stat(at); err == nil && info.IsDir() {
			return at
		}
	}
	return a.o.Cwd
}

// meant is the kernelspec of a name, "" for the default. The error is a *specError, or why they
// are not known.
func (a *API) meant(ctx context.Context, name string) (coppice.Kernelspec, error) {
	list, err := a.o.Host.Kernelspecs(ctx)
	if err != nil {
		return coppice.Kernelspec{}, err
	}
	missing := &specError{name: name}
	for _, s := range list {
		if name == "" || s.Name == name {
			return s, nil
		}
		missing.have = append(missing.have, s.Name)
	}
	return coppice.Kernelspec{}, missing
}

// start starts a kernel in a directory, and returns when it can be used.
func (a *API) start(ctx context.Context, name, cwd string) (*kernel, error) {
	spec, err := a.meant(ctx, name)
	if err != nil {
		return nil, err
	}
	id := messages.NewID()
	s := a.o.Host.Session(id, coppice.In(cwd), coppice.OnKernel(spec.Name))
	if a.o.Own != nil {
		done, err := a.o.Own(ctx, s.Key())
		if err != nil {
			return nil, err
		}
		defer done()
	}
	k := newKernel(a, id, spec, s)
	if err := a.add(k); err != nil {
		k.end()
		return nil, err
	}
	if _, err := k.up(ctx); err != nil {
		return nil, errors.Join(err, a.stop(context.WithoutCancel(ctx), k))
	}
	a.learn(k)
	k.become(idle)
	a.leave()
	return k, nil
}

// add makes a kernel known, and begins its work.
func (a *API) add(k *kernel) error {
	a.mu.Lock()
	full := len(a.kernels) >= maxKernels
	if !full && !a.closed {
		a.kernels[k.id] = k
	}
	a.mu.Unlock()
	if full {
		return fmt.Errorf("there are %d kernels; delete one: %w", maxKernels, messages.ErrOverloaded)
	}
	if !a.begin(k.work) {
		return errClosed
	}
	return nil
}

// stop ends a kernel, lets its clients go, and forgets it and its documents.
func (a *API) stop(ctx context.Context, k *kernel) error {
	a.mu.Lock()
	delete(a.kernels, k.id)
	a.sessions = slices.DeleteFunc(a.sessions, func(d *document) bool { return d.kernel == k })
	a.mu.Unlock()
	k.abort()
	k.become(dead)
	k.publish(nil, "status", status{dead})
	k.end()
	a.leave()
	return k.s.Close(ctx)
}

func (a *API) startKernel(w http.ResponseWriter, r *http.Request) {
	var o struct {
		Name string `json:"name"`
		Path string `json:"path"`
		// What Jupyter has not: any directory of this machine, and whether the kernel ends with
		// the last connection to it.
		Cwd    string `json:"cwd"`
		Leased bool   `json:"leased"`
	}
	if !body(w, r, &o) {
		return
	}
	if o.Cwd == "" {
		o.Cwd = a.directory(o.Path)
	} else if a.o.Root != "" && !(filepath.IsAbs(o.Cwd) && file.Below(a.o.Root, o.Cwd)) {
		refuse(w, http.StatusBadRequest, "Bad Request", "cwd is no directory below "+a.o.Root)
		return
	} else if info, err := os.Stat(o.Cwd); err != nil || !info.IsDir() || !filepath.IsAbs(o.Cwd) {
		refuse(w, http.StatusBadRequest, "Bad Request", "cwd is not the absolute path of a directory")
		return
	}
	k, err := a.start(r.Context(), o.Name, o.Cwd)
	if err != nil {
		unstarted(w, err)
		return
	}
	k.audience.lease(o.Leased)
	w.Header().Set("Location", Base+"/api/kernels/"+k.id)
	a.tell(w, r, http.StatusCreated, k)
}

// unstarted answers for a kernel that was not started.
func unstarted(w http.ResponseWriter, err error) {
	if missing, ok := errors.AsType[*specError](err); ok {
		refuse(w, http.StatusNotFound, err.Error(), "this server has "+strings.Join(missing.have, ", "))
		return
	}
	failed(w, err)
}

func (a *API) deleteKernel(w http.ResponseWriter, r *http.Request) {
	k := a.named(w, r)
	if k == nil {
		return
	}
	if err := a.stop(r.Context(), k); err != nil {
		failed(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (a *API) interruptKernel(w http.ResponseWriter, r *http.Request) {
	k := a.named(w, r)
	if k == nil {
		return
	}
	if err := k.s.Interrupt(); err != nil {
		failed(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (a *API) restartKernel(w http.ResponseWriter, r *http.Request) {
	k := a.named(w, r)
	if k == nil {
		return
	}
	if err := k.restart(); err != nil {
		failed(w, err)
		return
	}
	a.tell(w, r, http.StatusOK, k)
}

// inherit goes on with the kernels of an earlier server. Each is as it was, or begins anew, which
// its next request finds out.
func (a *API) inherit(ctx context.Context) error {
	was, err := readLeft(ctx, a.o.Left)
	if err != nil {
		return err
	}
	kept, err := a.o.Host.Hibernated(ctx)
	if err != nil {
		return err
	}
	asleep := map[string]bool{}
	for _, s := range kept {
		asleep[s.Key.Session] = true
	}
	for _, one := range was.Kernels {
		if time.Since(one.Active) > leftFor && !asleep[one.ID] {
			continue
		}
		k := newKernel(a, one.ID, one.Spec, a.o.Host.Session(one.ID, coppice.In(one.Cwd), coppice.OnKernel(one.Spec.Name)))
		k.state, k.active, k.count, k.asleep, k.left = idle, one.Active, one.Count, true, true
		if err := a.add(k); err != nil {
			k.end()
			return err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range was.Sessions {
		if k := a.kernels[one.Kernel]; k != nil {
			a.sessions = append(a.sessions, &document{id: one.ID, path: one.Path, name: one.Name, kind: one.Kind, kernel: k})
		}
	}
	return nil
}

// counted says that a kernel has counted code, which is written down before long.
func (a *API) counted() {
	select {
	case a.news <- struct{}{}:
	default: // it will be
	}
}

// note writes down what is counted, until the API ends.
func (a *API) note() {
	for {
		select {
		case <-a.news:
		case <-a.life.Done():
			return
		}
		select {
		case <-time.After(leftEvery):
		case <-a.life.Done():
			return // the end writes it down
		}
		a.leave()
	}
}

// leave writes down which kernels there are, for a server that comes after this one. It is called
// with each change, and at the end.
func (a *API) leave() {
	if a.o.Left == "" {
		return
	}
	a.leaving.Lock() // the last one writes last
	defer a.leaving.Unlock()
	var l left
	for _, k := range a.all() {
		key := k.s.Key()
		k.mu.Lock()
		l.Kernels = append(l.Kernels, leftKernel{ID: k.id, Spec: k.spec, Cwd: key.Cwd, Count: k.count, Active: k.active})
		k.mu.Unlock()
	}
	a.mu.Lock()
	for _, d := range slices.Clone(a.sessions) {
		l.Sessions = append(l.Sessions, leftDocument{ID: d.id, Path: d.path, Name: d.name, Kind: d.kind, Kernel: d.kernel.id})
	}
	a.mu.Unlock()
	if err := l.write(a.o.Left); err != nil {
		a.o.Logger.Warn("the kernels could not be written down for the next server", "file", a.o.Left, "err", err)
	}
}
