package httpapi

import (
	"net/http"
	"net/url"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/messages"
)

// saveCheckpoint keeps a session on disk under a name. One that is there already needs no kernel for it.
func (a *API) saveCheckpoint(w http.ResponseWriter, r *http.Request) {
	var in client.SaveCheckpoint
	if !a.body(w, r, &in) {
		return
	}
	session, s, err := a.named(r, a.known)
	if err != nil {
		a.problem(w, err)
		return
	}
	report, err := session.SaveCheckpoint(r.Context(), in.Name, coppice.SaveOptions{Owner: in.Owner, Lossy: in.Lossy, Replace: in.Replace})
	if err != nil {
		a.problem(w, err)
		return
	}
	at := "/api/saved-checkpoints/" + url.PathEscape(in.Name)
	if s.Workspace != "" {
		at += "?workspace=" + url.QueryEscape(s.Workspace)
	}
	w.Header().Set("Location", at)
	httpserver.JSON(w, http.StatusCreated, client.Hibernated{Memory: listed(report.Memory), Bytes: report.Bytes, TookSeconds: report.Took.Seconds()})
}

// restoreCheckpoint puts a session back to what was kept on disk. It need not have a kernel.
func (a *API) restoreCheckpoint(w http.ResponseWriter, r *http.Request) {
	var in client.RestoreCheckpoint
	if !a.body(w, r, &in) {
		return
	}
	query, name := r.URL.Query(), r.PathValue("session")
	var err error
	var session *coppice.Session
	if wrong := checkName(name); wrong != nil {
		err = unfit{wrong.Error(), ""}
	} else {
		session, _, err = a.at(name, query.Get("cwd"), query.Get("workspace"))
	}
	var restored messages.Restored
	if err == nil {
		restored, err = session.RestoreCheckpoint(r.Context(), in.Name, coppice.RestoreOptions{Owner: in.Owner})
	}
	if err != nil {
		a.problem(w, err)
		return
	}
	a.asleep.forget() // what the session had on disk is not there any more
	restored.Memory = listed(restored.Memory)
	httpserver.JSON(w, http.StatusOK, restored)
}

// savedCheckpoints lists what is kept on disk under names.
func (a *API) savedCheckpoints(w http.ResponseWriter, r *http.Request) {
	all, err := a.o.Host.SavedCheckpoints(r.Context())
	if err != nil {
		a.problem(w, err)
		return
	}
	list := make([]client.SavedCheckpoint, 0, len(all))
	for _, one := range all {
		list = append(list, client.SavedCheckpoint{
			Name: one.Key.Name, Session: one.Session.Session, Cwd: one.Session.Cwd, Workspace: one.Key.Workspace, Owners: one.Owners, Open: one.Open,
			Made: one.Made, Bytes: one.Bytes, Python: one.Python, Memory: listed(one.Memory),
		})
	}
	httpserver.Answer(w, r, http.StatusOK, map[string]any{"checkpoints": list})
}

func (a *API) dropSaved(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	key := messages.CheckpointKey{Name: r.PathValue("name"), Workspace: query.Get("workspace")}
	if err := a.o.Host.DropCheckpoint(r.Context(), key, query.Get("owner")); err != nil {
		a.problem(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
