package fleetapi

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/internal/pause"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/workspace"
)

// FrontOptions make a Front. The zero value of a field is its default.
type FrontOptions struct {
	// Sandboxes are the servers that have the keys. Required; the front does not close them.
	Sandboxes fleet.Sandboxes
	// Transport carries requests to them. Required.
	Transport http.RoundTripper
	// Host is the name that they are called by, whatever their address is. "": their address.
	Host string
	// Token is what they are shown. It is no client's, and no client's is shown to them.
	Token string
	// Patience is how long a request waits for a sandbox to be there. 0: two minutes.
	Patience time.Duration
	// Metrics takes what the front counts. nil: it is not shown.
	Metrics prometheus.Registerer
	// Logger hears what failed with no one to tell. nil: it is not logged.
	Logger *slog.Logger
}

// defaultPatience is long enough for a pod whose image is there.
const defaultPatience = 2 * time.Minute

// Front is a server that has no sessions: it sends each request to the sandbox of its key, and
// has one made for a key that has none. Make it with NewFront. It has no goroutines.
type Front struct {
	reading

	o      FrontOptions
	counts *counts

	mu     sync.Mutex
	placed placed // the key of each execution; guarded by mu
}

// NewFront makes a front.
func NewFront(o FrontOptions) *Front {
	if o.Patience == 0 {
		o.Patience = defaultPatience
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	f := &Front{o: o, counts: makeCounts()}
	f.reading = reading{to: f.route, no: f.refuse}
	if o.Metrics != nil {
		o.Metrics.MustRegister(f.counts.forwarded, f.counts.lost, f.counts.refused)
	}
	return f
}

// Mounts are the parts of the server.
func (f *Front) Mounts() []httpserver.Mount {
	routes := f.reading.routes()
	delete(routes, "POST /api/notebooks/run") // a file is where its host is
	byPath := f.reading.pathed(target{})
	maps.Copy(routes, map[string]func(http.Handler) http.Handler{
		"GET /api/sessions/{session}/notebook": byPath, "POST /api/sessions/{session}/complete": byPath, "POST /api/sessions/{session}/inspect": byPath,
		"GET /api/executions/{id}": f.byID, "GET /api/executions/{id}/events": f.byID,
		"POST /api/executions/{id}/input": f.byID, "POST /api/executions/{id}/cancel": f.byID,
		"GET /api/sessions": f.merged("sessions"), "GET /api/executions": f.merged("executions"), "GET /api/workspaces": f.merged("workspaces"),
		workspacePath: f.reading.inWorkspace, workspacePath + "/{rest...}": f.reading.inWorkspace,
	})
	mounts := make([]httpserver.Mount, 0, len(routes))
	for _, pattern := range slices.Sorted(maps.Keys(routes)) {
		mounts = append(mounts, httpserver.Mount{Pattern: pattern, Handler: routes[pattern](http.HandlerFunc(f.wrong)), Scope: httpserver.Run})
	}
	return mounts
}

// wrong answers a request that names nothing which could be in a sandbox.
func (f *Front) wrong(w http.ResponseWriter, r *http.Request) {
	f.refuse(r.Context(), w, refusal(http.StatusBadRequest, "bad_request", "the request names no session and no workspace, or its body is no JSON or too long",
		`send what says where it belongs: {"session": "work"}, or {"name": "work"} for a workspace`, 0))
}

// before reports whether a request goes back to what its session had: no other sandbox has that.
func before(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/rewind") || strings.HasSuffix(r.URL.Path, "/restore")
}

// ends reports whether a request ends what its sandbox is for.
func ends(r *http.Request, t target) bool {
	if r.Method != http.MethodDelete {
		return false
	}
	return t.ends != "" || IsWorkspace(t.key) && r.URL.Path == strings.ReplaceAll(workspacePath, "{workspace}", t.key.Workspace)
}

// route has a request served by the sandbox of its key. One that did not arrive, or that may be
// sent twice, is sent again until it is known what has become of the sandbox.
func (f *Front) route(w http.ResponseWriter, r *http.Request, _ http.Handler, t target) {
	epoch, err := httpserver.Epoch(r)
	if t.made != nil { // copies have names of their own, and would be in the sandbox of another
		err = refusal(http.StatusBadRequest, "bad_request", "a session that has a sandbox of its own has no copies", "have it in a workspace, which is one sandbox with all of its sessions", 0)
	}
	if before(r) {
		t.claims = false
	}
	if err == nil && t.key.Workspace != "" && t.claims {
		if wrong := workspace.CheckName(t.key.Workspace); wrong != nil { // else a sandbox would be made for it
			err = refusal(http.StatusBadRequest, "bad_request", wrong.Error(), "", 0)
		}
	}
	if err == nil && ends(r, t) {
		if err = f.end(r.Context(), t.key, epoch); err == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	if err != nil {
		f.refuse(r.Context(), w, err)
		return
	}
	again := t.body != nil && (r.Method == http.MethodGet || t.starts && t.execution != "") || t.streams && r.Method == http.MethodGet
	tried := uint64(0) // the epoch in which it may have been done
	for wait, since := firstPause, time.Now(); ; {
		s, err := f.find(r.Context(), t)
		if err == nil {
			err = f.may(s, t, epoch, tried)
		}
		if err != nil {
			f.refuse(r.Context(), w, err)
			return
		}
		state, failed := f.send(w, r, t, s)
		switch {
		case state == answered:
			return
		case errors.Is(failed, fleet.ErrLost) || errors.Is(failed, errGone) || errors.Is(failed, errShut) || state == unknown && !again || t.spent(r, failed) || r.Context().Err() != nil:
			f.refuse(r.Context(), w, f.unanswered(s, state, failed))
			return
		case state == unknown:
			tried = s.Epoch
		}
		if err := f.renew(r.Context(), s); err != nil {
			failed = errors.Join(failed, err)
		}
		if time.Since(since) > f.o.Patience || !pause.Wait(r.Context(), &wait) {
			f.refuse(r.Context(), w, f.away(s, failed))
			return
		}
	}
}

// find is the sandbox of a request, which it may have made.
func (f *Front) find(ctx context.Context, t target) (fleet.Sandbox, error) {
	ctx, cancel := context.WithTimeout(ctx, f.o.Patience)
	defer cancel()
	if t.claims {
		return f.o.Sandboxes.Claim(ctx, t.key.ID())
	}
	return f.o.Sandboxes.Find(ctx, t.key.ID())
}

// renew finds out what has become of a sandbox.
func (f *Front) renew(ctx context.Context, s fleet.Sandbox) error {
	ctx, cancel := context.WithTimeout(ctx, f.o.Patience/4)
	defer cancel()
	return f.o.Sandboxes.Renew(ctx, s)
}

// end ends a sandbox, unless its caller knows an earlier one.
func (f *Front) end(ctx context.Context, key messages.SessionKey, epoch uint64) error {
	ctx, cancel := context.WithTimeout(ctx, f.o.Patience)
	defer cancel()
	if epoch != 0 {
		s, err := f.o.Sandboxes.Find(ctx, key.ID())
		if err == nil {
			err = f.may(s, target{}, epoch, 0)
		}
		if err != nil {
			return err
		}
	}
	return f.o.Sandboxes.End(ctx, key.ID())
}

// may refuses a request that is for another epoch of its sandbox, or that may have been done in
// another one.
func (f *Front) may(s fleet.Sandbox, t target, epoch, tried uint64) error {
	switch {
	case tried != 0 && tried != s.Epoch:
		return refusal(http.StatusGone, "lost", "whether it was done is not known: the sandbox that it was sent to is gone", "look at what it should have done before it is sent again", 0)
	case epoch != 0 && epoch != s.Epoch:
		return goneBy(epoch, s.Epoch)
	case epoch == 0 && t.starts && s.Before != 0:
		return needed(s.Before, s.Epoch, remains{})
	}
	return nil
}

// send sends a request to its sandbox. What the answer says is let out once it is known that the
// sandbox had the key after it was there.
func (f *Front) send(w http.ResponseWriter, r *http.Request, t target, s fleet.Sandbox) (sent, error) {
	at, err := url.Parse(s.URL)
	if err != nil {
		return undelivered, err
	}
	f.counts.forwarded.Inc()
	return relay{
		target: at, transport: f.o.Transport, body: t.body, once: t.starts && t.execution != "", gone: s.Over, logger: f.o.Logger,
		rewrite:  func(out *http.Request) { f.show(out, s) },
		answered: func(ctx context.Context, resp *http.Response) error { return f.answered(ctx, resp, t, s) },
	}.send(w, r)
}

// show has a request be the front's own: what a client shows is for the front.
func (f *Front) show(out *http.Request, s fleet.Sandbox) {
	for _, name := range []string{HeaderNode, HeaderEpoch, "Cookie"} {
		out.Header.Del(name)
	}
	for _, name := range credentials {
		out.Header.Del(name)
	}
	out.Host = f.o.Host
	out.Header.Set("Authorization", "Bearer "+f.o.Token)
	out.Header.Set(httpserver.HeaderServer, s.Server)
}
