package httpapi

import (
	"net/http"
	"net/url"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/messages"
)

// saved serves the checkpoints on disk for an API, of which it has what it needs.
type saved struct {
	host *coppice.Host
	// body reads the body of a request, or answers what is wrong with it; problem answers
	// with an error.
	body    func(w http.ResponseWriter, r *http.Request, to any) bool
	problem func(w http.ResponseWriter, err error)
	// known is the session of a request that has a kernel or is on disk, named one that may
	// have neither.
	known func(r *http.Request) (*coppice.Session, client.Session, error)
	named func(r *http.Request) (*coppice.Session, error)
	// forget drops what is remembered of the sessions on disk.
	forget func()
}

// save keeps a session on disk under a name. One that is there already needs no kernel for it.
func (d saved) save(w http.ResponseWriter, r *http.Request) {
	var in client.SaveCheckpoint
	if !d.body(w, r, &in) {
		return
	}
	session, s, err := d.known(r)
	if err != nil {
		d.problem(w, err)
		return
	}
	report, err := session.SaveCheckpoint(r.Context(), in.Name, coppice.SaveOptions{Owner: in.Owner, Lossy: in.Lossy, Replace: in.Replace})
	if err != nil {
		d.problem(w, err)
		return
	}
	at := "/api/saved-checkpoints/" + url.PathEscape(in.Name)
	if s.Workspace != "" {
		at += "?workspace=" + url.QueryEscape(s.Workspace)
	}
	w.Header().Set("Location", at)
	httpserver.JSON(w, http.StatusCreated, client.Hibernated{Memory: listed(report.Memory), Bytes: report.Bytes, TookSeconds: report.Took.Seconds()})
}

// restore puts a session back to what was kept on disk. It need not have a kernel.
func (d saved) restore(w http.ResponseWriter, r *http.Request) {
	var in client.RestoreCheckpoint
	if !d.body(w, r, &in) {
		return
	}
	session, err := d.named(r)
	var restored messages.Restored
	if err == nil {
		restored, err = session.RestoreCheckpoint(r.Context(), in.Name, coppice.RestoreOptions{Owner: in.Owner})
	}
	if err != nil {
		d.problem(w, err)
		return
	}
	d.forget() // what the session had on disk is not there any more
	restored.Memory = listed(restored.Memory)
	httpserver.JSON(w, http.StatusOK, restored)
}

// list lists what is kept on disk under names.
func (d saved) list(w http.ResponseWriter, r *http.Request) {
	all, err := d.host.SavedCheckpoints(r.Context())
	if err != nil {
		d.problem(w, err)
		return
	}
	shown := make([]client.SavedCheckpoint, 0, len(all))
	for _, one := range all {
		shown = append(shown, client.SavedCheckpoint{
			Name: one.Key.Name, Session: one.Session.Session, Cwd: one.Session.Cwd, Workspace: one.Key.Workspace, Owners: one.Owners, Open: one.Open,
			Made: one.Made, Expires: one.Expires, Bytes: one.Bytes, Python: one.Python, Memory: listed(one.Memory),
		})
	}
	httpserver.Answer(w, r, http.StatusOK, map[string]any{"checkpoints": shown})
}

func (d saved) drop(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	key := messages.CheckpointKey{Name: r.PathValue("name"), Workspace: query.Get("workspace")}
	if err := d.host.DropCheckpoint(r.Context(), key, query.Get("owner")); err != nil {
		d.problem(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
