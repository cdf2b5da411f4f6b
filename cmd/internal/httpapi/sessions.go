package httpapi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/workspace"
)

// kernels lists the sessions that have a kernel.
func (a *API) kernels(ctx context.Context) ([]client.Session, error) {
	list := []client.Session{}
	all, err := a.o.Host.Sessions(ctx)
	for _, s := range all {
		list = append(list, a.live(s))
	}
	return list, err
}

// live is a session that has a kernel, as clients see it.
func (a *API) live(s coppice.SessionInfo) client.Session {
	return client.Session{
		Session: s.Key.Session, Cwd: s.Key.Cwd, Workspace: s.Key.Workspace, Kernel: s.Key.Kernel, State: s.State, Queue: s.Queue, Done: s.Done, Pinned: s.Pinned,
		Restarts: s.Restarts, LastExit: s.LastExit, Owner: s.Owner, PID: s.PID, RSS: s.RSS, CPU: a.cpu(s.PID),
		Since: s.Since, Expires: s.TTL, Detail: s.Detail,
	}
}

// find returns a session that has a kernel. It costs the same however many there are.
func (a *API) find(ctx context.Context, key messages.SessionKey) (client.Session, error) {
	s, has, err := a.o.Host.Find(ctx, key)
	if err != nil {
		return client.Session{}, err
	}
	if !has {
		return client.Session{}, noKernel{key}
	}
	return a.live(s), nil
}

func (a *API) sessions(w http.ResponseWriter, r *http.Request) {
	asleep, err := all(r)
	var list []client.Session
	if err == nil {
		list, err = a.kernels(r.Context())
	}
	if err == nil && asleep {
		list, err = a.withAsleep(r.Context(), list)
	}
	if err != nil {
		a.problem(w, err)
		return
	}
	httpserver.Answer(w, r, http.StatusOK, map[string]any{"sessions": list})
}

// at is the session of a name, in a directory and a workspace, of a kernelspec. The error is
// for the client.
func (a *API) at(name, cwd, within, kernel string) (*coppice.Session, messages.SessionKey, error) {
	if !messages.IsKernelspec(kernel) { // it is not kept, as what is run is
		return nil, messages.SessionKey{}, unfit{fmt.Sprintf("%.80q is not the name of a kernelspec", kernel), "use letters, digits, -, . and _, or leave it out"}
	}
	if within == "" {
		key := a.key(name, cwd)
		if a.o.Root != "" && !file.Below(a.o.Root, key.Cwd) {
			return nil, messages.SessionKey{}, unfit{fmt.Sprintf("the working directory %.200q is no folder below %s", cwd, a.o.Root), "name one there, relative to it, or leave it out"}
		}
		s := a.o.Host.Session(key.Session, coppice.In(key.Cwd), coppice.OnKernel(kernel))
		key.Kernel = s.Key().Kernel // the one that sessions have without a name has none
		return s, key, nil
	}
	ws, err := a.o.Host.Workspaces().Get(within)
	if errors.Is(err, workspace.ErrUnknown) {
		return nil, messages.SessionKey{}, &httpserver.Refusal{Status: http.StatusNotFound, Problem: httpserver.Problem{Code: "not_found", Message: fmt.Sprintf("there is no workspace %.80q", within), Hint: "POST /api/workspaces or coppice workspace create makes one"}}
	} else if err != nil {
		return nil, messages.SessionKey{}, err
	}
	s := a.o.Host.Session(name, coppice.In(cwd), coppice.InWorkspace(within), coppice.OnKernel(kernel))
	if a.o.Root != "" && !file.Below(ws.Folder(), s.Key().Cwd) {
		return nil, messages.SessionKey{}, unfit{fmt.Sprintf("the working directory %.200q is no folder of the workspace %s", cwd, within), "name one there, relative to it, or leave it out"}
	}
	return s, s.Key(), nil
}

// named is the session in the path of a request, as find or known returns it.
func (a *API) named(r *http.Request, one look) (*coppice.Session, client.Session, error) {
	query := r.URL.Query()
	session, key, err := a.at(r.PathValue("session"), query.Get("cwd"), query.Get("workspace"), query.Get("kernel"))
	if err != nil { // of a workspace that is not there, no session has a kernel
		return nil, client.Session{}, fmt.Errorf("%w: %w", errNotFound, err)
	}
	s, err := one(r.Context(), key)
	return session, s, err
}

func (a *API) session(w http.ResponseWriter, r *http.Request) {
	_, s, err := a.named(r, a.known)
	if err != nil {
		a.problem(w, err)
		return
	}
	httpserver.JSON(w, http.StatusOK, s)
}

func (a *API) open(w http.ResponseWriter, r *http.Request) {
	var o client.Open
	if !a.body(w, r, &o) {
		return
	}
	if err := checkName(o.Session); err != nil {
		a.problem(w, err)
		return
	}
	session, key, err := a.at(o.Session, o.Cwd, o.Workspace, o.Kernel)
	if err != nil {
		a.problem(w, err)
		return
	}
	status := http.StatusOK
	if _, has, err := a.o.Host.Find(r.Context(), key); err == nil && !has {
		status = http.StatusCreated
	}
	// A call without cells returns when there is a kernel.
	result, err := session.Execute(r.Context(), coppice.Request{Owner: o.Owner})
	if _, refused := errors.AsType[*messages.NotStartedError](err); refused || err == nil && result.Outcome != messages.OutcomeOK {
		err = &notUp{key, result}
	}
	if err == nil && o.Pin {
		err = session.Pin(r.Context(), true)
	}
	var s client.Session
	if err == nil {
		s, err = a.find(r.Context(), key)
	}
	if err != nil {
		a.problem(w, err)
		return
	}
	httpserver.JSON(w, status, s)
}

func pin(on bool) func(*coppice.Session, context.Context) error {
	return func(s *coppice.Session, ctx context.Context) error { return s.Pin(ctx, on) }
}

// act does something to a session that one finds.
func (a *API) act(one look, do func(*coppice.Session, context.Context) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		session, _, err := a.named(r, one)
		if err == nil {
			err = do(session, r.Context())
		}
		if err != nil {
			a.problem(w, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

func (a *API) fork(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Copies *float64 `json:"copies,omitempty"` // 2.0 is a whole number, too
		Names  []string `json:"names,omitempty"`
		Owner  string   `json:"owner,omitempty"`
	}
	if !a.body(w, r, &in) {
		return
	}
	const most = 64
	copies := float64(max(len(in.Names), 1))
	if in.Copies != nil {
		copies = *in.Copies
	}
	if len(in.Names) == 0 {
		in.Names = nil // an empty list names no copy less
	}
	for _, name := range in.Names {
		if err := checkName(name); err != nil {
			a.problem(w, err)
			return
		}
	}
	if copies < 1 || copies > most || copies != math.Trunc(copies) {
		a.problem(w, badRequest{fmt.Sprintf("copies must be a whole number from 1 to %d, not %v", most, copies), ""})
		return
	}
	session, _, err := a.named(r, a.find)
	if err != nil {
		a.problem(w, err)
		return
	}
	made, err := session.Fork(r.Context(), coppice.ForkOptions{Copies: int(copies), Names: in.Names, Owner: in.Owner})
	if err != nil {
		a.problem(w, err)
		return
	}
	keys := make([]messages.SessionKey, 0, len(made))
	for _, s := range made {
		keys = append(keys, s.Key())
	}
	httpserver.JSON(w, http.StatusCreated, map[string]any{"sessions": keys})
}

// checkpoint keeps the state of a session.
func (a *API) checkpoint(w http.ResponseWriter, r *http.Request) {
	session, _, err := a.named(r, a.find)
	if err != nil {
		a.problem(w, err)
		return
	}
	a.kept.prune()
	made, err := session.Checkpoint(r.Context())
	var c checkpoint
	if err == nil {
		c, err = a.kept.add(made)
	}
	if err != nil {
		a.problem(w, err)
		return
	}
	w.Header().Set("Location", "/api/checkpoints/"+c.id)
	httpserver.JSON(w, http.StatusCreated, c.describe())
}

func (a *API) checkpoints(w http.ResponseWriter, _ *http.Request) {
	list := []client.Checkpoint{}
	for _, c := range a.kept.list() {
		list = append(list, c.describe())
	}
	httpserver.JSON(w, http.StatusOK, map[string]any{"checkpoints": list})
}

// rewind puts a session back. It need not have a kernel: its next call gets one with that
// state.
func (a *API) rewind(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Checkpoint string `json:"checkpoint"`
	}
	if !a.body(w, r, &in) {
		return
	}
	c, err := a.kept.one(in.Checkpoint, false)
	var session *coppice.Session
	if err == nil {
		session, err = a.anyOf(r)
	}
	if err == nil {
		err = session.Rewind(r.Context(), c.Checkpoint)
	}
	if err != nil {
		a.problem(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (a *API) dropCheckpoint(w http.ResponseWriter, r *http.Request) {
	c, err := a.kept.one(r.PathValue("id"), true)
	if err != nil {
		a.problem(w, err)
		return
	}
	c.Drop()
	w.WriteHeader(http.StatusNoContent)
}

// look finds the session that a request names.
type look func(context.Context, messages.SessionKey) (client.Session, error)

// known returns a session that has a kernel, or else is kept on disk.
func (a *API) known(ctx context.Context, key messages.SessionKey) (client.Session, error) {
	s, err := a.find(ctx, key)
	live := []client.Session{s}
	switch {
	case errors.Is(err, errNotFound):
		live = nil
	case err != nil || s.State != messages.ChildStopping:
		return s, err
	}
	list, failed := a.withAsleep(ctx, live)
	if failed != nil {
		return s, failed
	}
	for _, one := range list {
		if keyOf(one) == key {
			return one, nil
		}
	}
	return s, err
}

// hibernate keeps a session on disk and ends its kernel. For one that is there already it
// says what is kept.
func (a *API) hibernate(w http.ResponseWriter, r *http.Request) {
	session, s, err := a.named(r, a.known)
	if err != nil {
		a.problem(w, err)
		return
	}
	if s.Kept != nil {
		httpserver.JSON(w, http.StatusOK, s.Kept)
		return
	}
	report, err := session.Hibernate(r.Context())
	if err != nil {
		a.problem(w, err)
		return
	}
	a.asleep.forget()
	httpserver.JSON(w, http.StatusOK, client.Hibernated{Memory: listed(report.Memory), Bytes: report.Bytes, TookSeconds: report.Took.Seconds()})
}

// Hibernated is how many sessions are kept on disk, or were up to 5 s ago. Where they
// cannot be counted it is what was counted last, and the log has why. Any goroutine may
// call it.
func (a *API) Hibernated(ctx context.Context) int {
	n, ok := a.asleep.recent()
	if ok {
		return n
	}
	list, err := a.o.Host.Hibernated(ctx)
	switch {
	case err == nil:
		n = len(list)
	case ctx.Err() != nil: // whoever asked has gone
		return n
	default:
		a.o.Logger.Warn("the sessions on disk could not be counted", "err", err)
	}
	a.asleep.note(n)
	return n
}

// all says whether a request wants the sessions that are kept on disk, too.
func all(r *http.Request) (bool, error) {
	values, given := r.URL.Query()["hibernated"]
	switch {
	case !given:
		return false, nil
	case len(values) == 1 && (values[0] == "true" || values[0] == "false"):
		return values[0] == "true", nil
	}
	return false, badRequest{fmt.Sprintf("hibernated must be true or false, not %.40q", values), ""}
}

// withAsleep adds to the sessions that had a kernel a moment ago those that are kept on disk.
// One that is kept while its kernel ends is on disk: only the next call has a kernel again.
func (a *API) withAsleep(ctx context.Context, live []client.Session) ([]client.Session, error) {
	list, err := a.o.Host.Hibernated(ctx)
	if err != nil {
		return nil, err
	}
	a.asleep.note(len(list))
	kept := make(map[messages.SessionKey]bool, len(list))
	for _, one := range list {
		kept[one.Key] = true
	}
	up := make(map[messages.SessionKey]bool, len(live))
	all := make([]client.Session, 0, len(live)+len(list))
	for _, s := range live {
		if key := keyOf(s); s.State != messages.ChildStopping || !kept[key] {
			up[key] = true
			all = append(all, s)
		}
	}
	for _, one := range list {
		if !up[one.Key] {
			all = append(all, sleeping(one))
		}
	}
	return all, nil
}

// keyOf is the key of a session.
func keyOf(s client.Session) messages.SessionKey {
	return messages.SessionKey{Session: s.Session, Cwd: s.Cwd, Workspace: s.Workspace, Kernel: s.Kernel}
}

// sleeping is a session that is kept on disk, as clients see it.
func sleeping(one hibernate.Asleep) client.Session {
	owner := ""
	if len(one.Owners) == 1 {
		owner = one.Owners[0]
	}
	return client.Session{
		Session: one.Key.Session, Cwd: one.Key.Cwd, Workspace: one.Key.Workspace, Kernel: one.Key.Kernel, State: client.StateHibernated, Owner: owner,
		Since: one.Made, Expires: one.Expires, Kept: &client.Hibernated{Memory: listed(one.Memory), Bytes: one.Bytes},
	}
}
