package e2b

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/e2b/answer"
	"github.com/coppice-run/coppice/cmd/internal/e2b/shelf"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/workspace"
	"github.com/coppice-run/coppice/workspace/files"
)

const (
	// maxForks is how many sandboxes one fork makes at most.
	maxForks = 100
	// notCopied begins why a sandbox was not copied.
	notCopied = "the sandbox was not copied: "
)

// shelfOf is where a host has its snapshots.
func shelfOf(h Host) *shelf.Shelf {
	var drop func(context.Context, string) error
	if kept := h.Snapshots(); kept != nil {
		drop = kept.Discard
	}
	return shelf.New(filepath.Join(h.Dir(), "e2b", "snapshots"), drop)
}

// snapshot serves a request to make a snapshot.
func (a *API) snapshot(w http.ResponseWriter, r *http.Request) {
	var o struct {
		Name string `json:"name"`
	}
	s := a.named(w, r)
	if s == nil || !answer.Body(w, r, maxBody, &o) {
		return
	}
	id, err := a.name("")+":"+shelf.UsualTag, error(nil)
	if o.Name != "" {
		id, err = called(o.Name)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	one, err := a.capture(r.Context(), s)
	if err == nil {
		one.ID, one.Named = id, o.Name != ""
		if err = a.shelf.Add(context.WithoutCancel(r.Context()), one); err != nil {
			err = errors.Join(err, a.shelf.Discard(context.WithoutCancel(r.Context()), one))
		}
	}
	if err != nil {
		refuse(w, err)
		return
	}
	answer.JSON(w, http.StatusCreated, shownSnapshot(one))
}

// called is the ID of a snapshot that a client gives a name.
func called(name string) (string, error) {
	if slices.Contains(templates, shelf.Base(name)) {
		return "", &refusal{http.StatusBadRequest, fmt.Sprintf("a snapshot cannot be called %s: that is the server's own environment", name)}
	}
	id, err := shelf.Called(name)
	if err != nil {
		return "", &refusal{http.StatusBadRequest, err.Error()}
	}
	return id, nil
}

// snapshotInfo is a snapshot for clients.
type snapshotInfo struct {
	ID    string   `json:"snapshotID"`
	Names []string `json:"names"`
}

func shownSnapshot(one *shelf.Snapshot) snapshotInfo {
	i := snapshotInfo{ID: one.ID, Names: []string{}}
	if one.Named {
		i.Names = append(i.Names, one.ID)
	}
	return i
}

// listSnapshots describes snapshots, page by page.
func (a *API) listSnapshots(w http.ResponseWriter, r *http.Request) {
	q, limit := r.URL.Query(), maxPage
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			answer.Error(w, http.StatusBadRequest, fmt.Sprintf("the limit %.40q is not a number from 1", text))
			return
		}
		limit = min(n, maxPage)
	}
	from, err := base64.RawURLEncoding.DecodeString(q.Get("nextToken"))
	if err != nil {
		answer.Error(w, http.StatusBadRequest, "the token of the page cannot be read")
		return
	}
	list, err := a.shelf.List(q.Get("sandboxID"), q.Get("name"))
	if err != nil {
		refuse(w, err)
		return
	}
	page, places := []snapshotInfo{}, []string(nil)
	for _, one := range list {
		if len(from) > 0 && one.Place() >= string(from) {
			continue
		}
		if len(page) == limit {
			w.Header().Set(nextHeader, base64.RawURLEncoding.EncodeToString([]byte(places[len(places)-1])))
			break
		}
		page, places = append(page, shownSnapshot(one)), append(places, one.Place())
	}
	a.placed(w, places)
	answer.JSON(w, http.StatusOK, page)
}

// deleteTemplate removes a snapshot: clients take it for a template.
func (a *API) deleteTemplate(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if slices.Contains(templates, shelf.Base(id)) {
		answer.Error(w, http.StatusForbidden, "the server's own environment cannot be deleted")
		return
	}
	there, err := a.shelf.Remove(context.WithoutCancel(r.Context()), id)
	switch {
	case err != nil:
		refuse(w, err)
	case !there:
		answer.Error(w, http.StatusNotFound, fmt.Sprintf("template or snapshot '%.80s' not found", id))
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// forked is what became of one sandbox of a fork.
type forked struct {
	Sandbox *made   `json:"sandbox,omitempty"`
	Error   *failed `json:"error,omitempty"`
}

// failed is an error within an answer.
type failed struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// fork makes sandboxes that begin with what another one has.
func (a *API) fork(w http.ResponseWriter, r *http.Request) {
	var o struct {
		Count   *int   `json:"count"`
		Timeout *int64 `json:"timeout"`
	}
	s := a.named(w, r)
	if s == nil || !answer.Body(w, r, maxBody, &o) {
		return
	}
	count := 1
	if o.Count != nil {
		count = *o.Count
	}
	if count < 1 || count > maxForks {
		answer.Error(w, http.StatusBadRequest, fmt.Sprintf("the count of %d is not from 1 to %d", count, maxForks))
		return
	}
	lives, err := lifetime(o.Timeout)
	if err != nil {
		answer.Error(w, http.StatusBadRequest, err.Error())
		return
	}
	one, err := a.capture(r.Context(), s)
	if err != nil {
		refuse(w, err)
		return
	}
	list := make([]forked, count)
	for i := range list {
		n := newSandbox{Template: s.template, Metadata: s.w.Info().Labels}
		if made, err := a.grow(r.Context(), one, a.name(""), n, lives); err != nil {
			status, why := meaning(err)
			list[i].Error = &failed{status, why}
		} else {
			shown := a.made(r.Context(), made)
			list[i].Sandbox = &shown
		}
	}
	if err := a.shelf.Discard(context.WithoutCancel(r.Context()), one); err != nil {
		a.o.Logger.Warn("something of a fork is left", "sandbox", s.w.Name(), "err", err)
	}
	answer.JSON(w, http.StatusCreated, list)
}

// capture makes a snapshot of a sandbox that runs, which is not on the shelf. Everything of
// the sandbox is in it, or it is refused; the sandbox goes on, and its contexts are restored with
// their next code.
func (a *API) capture(ctx context.Context, s *sandbox) (one *shelf.Snapshot, err error) {
	if ok, err := s.rest.take(ctx, false); err != nil {
		return nil, err
	} else if !ok {
		return nil, errPaused
	}
	defer s.rest.done(time.Time{})
	if err := a.still(ctx, s); err != nil {
		return nil, saying(notCopied, err, "")
	}
	if one, err = a.shelf.Begin(a.name("")); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.shelf.Discard(context.WithoutCancel(ctx), one))
			one = nil
		}
	}()
	one.Made, one.Sandbox, one.Template, one.Folder = time.Now(), s.w.Name(), s.template, s.w.Folder()
	one.Options, one.Contexts = s.w.Options(), s.code.Contexts()
	one.Options.Folder, one.Options.KeepFolder, one.Options.Labels, one.Options.EndAt = "", false, nil, time.Time{}
	kept, err := a.o.Host.Hibernated(ctx)
	if err != nil {
		return one, err
	}
	for _, k := range kept {
		if k.Key.Workspace != s.w.Name() {
			continue
		}
		record := one.Records + strconv.Itoa(len(one.Sessions))
		if err := a.o.Host.Snapshots().Save(ctx, k.Key, record); err != nil {
			return one, err
		}
		one.Sessions = append(one.Sessions, shelf.Saved{Record: record, Session: k.Key.Session, Cwd: k.Key.Cwd})
	}
	if err := copyFolder(s.w, one.Files(), func(from, to *files.Folder) error { return from.CopyTo(ctx, to) }); err != nil {
		return one, err
	}
	return one, a.wasStill(ctx, s, one)
}

// still has nothing run in a sandbox and nothing write to it, and what its sessions have on disk.
func (a *API) still(ctx context.Context, s *sandbox) error {
	// A client that leaves does not stop it half way.
	ctx = context.WithoutCancel(ctx)
	settle, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	if err := s.rest.settled(settle, writes); err != nil {
		return unable("files are being written to it; wait for their end")
	}
	if a.o.Keeps {
		return a.keep(ctx, s)
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	live, err := a.sessions(ctx, s)
	if err == nil && len(live) > 0 {
		err = keepsNone // else it has files alone
	}
	return err
}

// wasStill refuses when something has been started in a sandbox meanwhile, by others than
// E2B's clients: they wait. A session that runs code is kept no more.
func (a *API) wasStill(ctx context.Context, s *sandbox, one *shelf.Snapshot) error {
	live, err := a.sessions(ctx, s)
	if err != nil {
		return err
	}
	kept, err := a.o.Host.Hibernated(ctx)
	if err != nil {
		return err
	}
	ran := func(name string) error {
		return saying(notCopied, unable("the context %s ran code meanwhile", name), "")
	}
	for _, l := range live {
		up := l.State == messages.ChildIdle || l.State == messages.ChildBusy || l.State == messages.ChildStarting
		if up && !slices.ContainsFunc(one.Sessions, func(s shelf.Saved) bool { return s.Session == l.Key.Session && s.Cwd == l.Key.Cwd }) {
			return ran(l.Key.Session)
		}
	}
	for _, was := range one.Sessions {
		key := messages.SessionKey{Session: was.Session, Cwd: was.Cwd, Workspace: s.w.Name()}
		if !slices.ContainsFunc(kept, func(k hibernate.Asleep) bool { return k.Key == key }) {
			return ran(was.Session)
		}
	}
	return saying(notCopied, s.idle(), "")
}

// copyFolder calls do with the folder of a workspace and another one.
func copyFolder(w *workspace.Workspace, other string, do func(of, with *files.Folder) error) error {
	of, err := w.Files()
	if err != nil {
		return err
	}
	with, err := files.Open(other, files.Options{})
	if err != nil {
		return err
	}
	err = errors.Join(do(of, with), with.Close())
	if fault, ok := errors.AsType[*files.Error](err); ok && file.IsNotRegular(fault) {
		return saying(notCopied, unable("%.200q is no file: %v; remove it", fault.Path, fault.Err), "")
	}
	return err
}

// grow makes a sandbox that begins with what a snapshot has.
func (a *API) grow(ctx context.Context, one *shelf.Snapshot, name string, n newSandbox, lives time.Duration) (_ *sandbox, err error) {
	release, ok := one.Hold()
	if !ok {
		return nil, &refusal{http.StatusNotFound, fmt.Sprintf("template '%.80s' not found: the snapshot was deleted", one.ID)}
	}
	defer release()
	if len(one.Sessions) > 0 && a.o.Host.Snapshots() == nil {
		return nil, keepsNone
	}
	o := one.Options
	o.Env, o.Labels = maps.Clone(o.Env), n.Metadata
	if o.Env == nil {
		o.Env = n.Env
	} else {
		maps.Copy(o.Env, n.Env)
	}
	w, err := a.o.Host.Workspace(ctx, name, o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
			defer cancel()
			err = errors.Join(err, w.End(end))
		}
	}()
	if err := copyFolder(w, one.Files(), func(to, from *files.Folder) error { return from.CopyTo(ctx, to) }); err != nil {
		return nil, err
	}
	for _, k := range one.Sessions {
		key := messages.SessionKey{Session: k.Session, Cwd: hibernate.Moved(k.Cwd, one.Folder, w.Folder()), Workspace: name}
		if err := a.o.Host.Snapshots().Place(ctx, k.Record, key, one.Folder, w.Folder()); err != nil {
			return nil, err
		}
	}
	s := a.of(w, n.Template)
	if s == nil {
		return nil, coppice.ErrClosed
	}
	contexts := slices.Clone(one.Contexts)
	for i := range contexts {
		contexts[i].Cwd = hibernate.Moved(contexts[i].Cwd, one.Folder, w.Folder())
	}
	s.code.Adopt(contexts)
	s.rest.will(n.auto())
	return s, s.setEnd(time.Now().Add(max(lives, leastTimeout)), o.IdleEnd)
}
