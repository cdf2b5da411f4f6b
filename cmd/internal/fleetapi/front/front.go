package front

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

	"github.com/coppice-run/coppice/cmd/internal/fleetapi"
	"github.com/coppice-run/coppice/cmd/internal/fleetapi/about"
	"github.com/coppice-run/coppice/cmd/internal/fleetapi/relay"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/internal/pause"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/workspace"
)

// Options make a Front. The zero value of a field is its default.
type Options struct {
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

// firstPause is the first between two attempts.
const firstPause = 10 * time.Millisecond

// defaultPatience is long enough for a pod whose image is there.
const defaultPatience = 2 * time.Minute

// Front is a server that has no sessions: it sends each request to the sandbox of its key, and
// has one made for a key that has none. Make it with New. It has no goroutines.
type Front struct {
	about.Reader

	o               Options
	forwarded, lost prometheus.Counter
	refusals        *prometheus.CounterVec

	mu     sync.Mutex
	placed about.Places // the key of each execution; guarded by mu
}

// New makes a front.
func New(o Options) *Front {
	if o.Patience == 0 {
		o.Patience = defaultPatience
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	f := &Front{
		o: o, refusals: fleetapi.Refused(),
		forwarded: fleetapi.Counter("forwarded_total", "Requests that were sent on to a sandbox."), lost: fleetapi.Counter("lost_total", "Requests whose answer was not allowed to leave."),
	}
	f.Reader = about.Reader{To: f.route, No: f.refuse}
	if o.Metrics != nil {
		o.Metrics.MustRegister(f.forwarded, f.lost, f.refusals)
	}
	return f
}

// Mounts are the parts of the server.
func (f *Front) Mounts() []httpserver.Mount {
	routes := f.Routes()
	delete(routes, "POST /api/notebooks/run") // a file is where its host is
	byPath := f.Pathed(about.Target{})
	maps.Copy(routes, map[string]func(http.Handler) http.Handler{
		"GET /api/sessions/{session}/notebook": byPath, "POST /api/sessions/{session}/complete": byPath, "POST /api/sessions/{session}/inspect": byPath,
		"GET /api/executions/{id}": f.byID, "GET /api/executions/{id}/events": f.byID,
		"POST /api/executions/{id}/input": f.byID, "POST /api/executions/{id}/cancel": f.byID,
		"GET /api/sessions": f.merged("sessions"), "GET /api/executions": f.merged("executions"), "GET /api/workspaces": f.merged("workspaces"),
		about.WorkspacePath: f.InWorkspace, about.WorkspacePath + "/{rest...}": f.InWorkspace,
	})
	mounts := make([]httpserver.Mount, 0, len(routes))
	for _, pattern := range slices.Sorted(maps.Keys(routes)) {
		mounts = append(mounts, httpserver.Mount{Pattern: pattern, Handler: routes[pattern](http.HandlerFunc(f.wrong)), Scope: httpserver.Run})
	}
	return mounts
}

// wrong answers a request that names nothing which could be in a sandbox.
func (f *Front) wrong(w http.ResponseWriter, r *http.Request) {
	f.refuse(r.Context(), w, fleetapi.Refusal(http.StatusBadRequest, "bad_request", "the request names no session and no workspace, or its body is no JSON or too long",
		`send what says where it belongs: {"session": "work"}, or {"name": "work"} for a workspace`, 0))
}

// before reports whether a request goes back to what its session had: no other sandbox has that.
func before(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/rewind") || strings.HasSuffix(r.URL.Path, "/restore")
}

// ends reports whether a request ends what its sandbox is for.
func ends(r *http.Request, t about.Target) bool {
	if r.Method != http.MethodDelete {
		return false
	}
	return t.Ends != "" || about.IsWorkspace(t.Key) && r.URL.Path == strings.ReplaceAll(about.WorkspacePath, "{workspace}", t.Key.Workspace)
}

// route has a request served by the sandbox of its key. One that did not arrive, or that may be
// sent twice, is sent again until it is known what has become of the sandbox.
func (f *Front) route(w http.ResponseWriter, r *http.Request, _ http.Handler, t about.Target) {
	epoch, err := httpserver.Epoch(r)
	if t.Made != nil { // copies have names of their own, and would be in the sandbox of another
		err = fleetapi.Refusal(http.StatusBadRequest, "bad_request", "a session that has a sandbox of its own has no copies", "have it in a workspace, which is one sandbox with all of its sessions", 0)
	}
	if before(r) {
		t.Claims = false
	}
	if err == nil && t.Key.Workspace != "" && t.Claims {
		if wrong := workspace.CheckName(t.Key.Workspace); wrong != nil { // else a sandbox would be made for it
			err = fleetapi.Refusal(http.StatusBadRequest, "bad_request", wrong.Error(), "", 0)
		}
	}
	if err == nil && ends(r, t) {
		if err = f.ended(r.Context(), t.Key, epoch); err == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	if err != nil {
		f.refuse(r.Context(), w, err)
		return
	}
	again := t.Body != nil && (r.Method == http.MethodGet || t.Starts && t.Execution != "") || t.Streams && r.Method == http.MethodGet
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
		case state == relay.Answered:
			return
		case errors.Is(failed, fleet.ErrLost) || errors.Is(failed, relay.ErrGone) || errors.Is(failed, errShut) || state == relay.Unknown && !again || t.Spent(r, failed) || r.Context().Err() != nil:
			f.refuse(r.Context(), w, f.unanswered(s, state, failed))
			return
		case state == relay.Unknown:
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
func (f *Front) find(ctx context.Context, t about.Target) (fleet.Sandbox, error) {
	ctx, cancel := context.WithTimeout(ctx, f.o.Patience)
	defer cancel()
	if t.Claims {
		return f.o.Sandboxes.Claim(ctx, t.Key.ID())
	}
	return f.o.Sandboxes.Find(ctx, t.Key.ID())
}

// renew finds out what has become of a sandbox.
func (f *Front) renew(ctx context.Context, s fleet.Sandbox) error {
	ctx, cancel := context.WithTimeout(ctx, f.o.Patience/4)
	defer cancel()
	return f.o.Sandboxes.Renew(ctx, s)
}

// ended ends a sandbox, unless its caller knows an earlier one.
func (f *Front) ended(ctx context.Context, key messages.SessionKey, epoch uint64) error {
	ctx, cancel := context.WithTimeout(ctx, f.o.Patience)
	defer cancel()
	if epoch != 0 {
		s, err := f.o.Sandboxes.Find(ctx, key.ID())
		if err == nil {
			err = f.may(s, about.Target{}, epoch, 0)
		}
		if err != nil {
			return err
		}
	}
	return f.o.Sandboxes.End(ctx, key.ID())
}

// may refuses a request that is for another epoch of its sandbox, or that may have been done in
// another one.
func (f *Front) may(s fleet.Sandbox, t about.Target, epoch, tried uint64) error {
	switch {
	case tried != 0 && tried != s.Epoch:
		return fleetapi.Refusal(http.StatusGone, "lost", "whether it was done is not known: the sandbox that it was sent to is gone", "look at what it should have done before it is sent again", 0)
	case epoch != 0 && epoch != s.Epoch:
		return goneBy(epoch, s.Epoch)
	case epoch == 0 && t.Starts && s.Before != 0:
		return needed(s.Before, s.Epoch)
	}
	return nil
}

// send sends a request to its sandbox. What the answer says is let out once it is known that the
// sandbox had the key after it was there.
func (f *Front) send(w http.ResponseWriter, r *http.Request, t about.Target, s fleet.Sandbox) (relay.Outcome, error) {
	at, err := url.Parse(s.URL)
	if err != nil {
		return relay.Undelivered, err
	}
	f.forwarded.Inc()
	return relay.To{
		Target: at, Transport: f.o.Transport, Body: t.Body, Once: t.Starts && t.Execution != "", Gone: s.Over, Logger: f.o.Logger,
		Rewrite:  func(out *http.Request) { f.show(out, s) },
		Answered: func(ctx context.Context, resp *http.Response) error { return f.answered(ctx, resp, t, s) },
	}.Send(w, r)
}

// show has a request be the front's own: what a client shows is for the front.
func (f *Front) show(out *http.Request, s fleet.Sandbox) {
	for _, name := range []string{fleetapi.HeaderNode, httpserver.HeaderEpoch, "Cookie", "X-Api-Key"} {
		out.Header.Del(name)
	}
	out.Host = f.o.Host
	out.Header.Set("Authorization", "Bearer "+f.o.Token)
	out.Header.Set(httpserver.HeaderServer, s.Server)
}
