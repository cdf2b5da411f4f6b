package e2b

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/e2b/answer"
	"github.com/coppice-run/coppice/cmd/internal/e2b/envd"
	"github.com/coppice-run/coppice/cmd/internal/e2b/shelf"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/store"
	"github.com/coppice-run/coppice/workspace"
	"github.com/coppice-run/coppice/workspace/files"
)

const (
	// defaultTimeout is how long a sandbox lives whose client says nothing.
	defaultTimeout = 300 * time.Second
	// leastTimeout is how long one lives at least: its client has to hear of it.
	leastTimeout = time.Second
	// maxBody bounds a request, in bytes.
	maxBody = 1 << 20
	// client is what stands where E2B names the machine.
	client = "coppice"
	// maxSeconds bounds a timeout: a time.Duration has no more.
	maxSeconds = 1 << 32
)

// never stands where E2B has the end of a sandbox that has none.
var never = time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC)

// made is a sandbox for the client that has made it, or connects to it.
type made struct {
	Template string  `json:"templateID"`
	ID       string  `json:"sandboxID"`
	Client   string  `json:"clientID"`
	Version  string  `json:"envdVersion"`
	Access   string  `json:"envdAccessToken"`
	Traffic  string  `json:"trafficAccessToken"`
	Domain   *string `json:"domain"`
}

// made is a sandbox for the client of a request.
func (a *API) made(ctx context.Context, s *sandbox) made {
	id, issuer := s.w.Name(), httpserver.PassOf(ctx).ID
	return made{Template: s.template, ID: id, Client: client, Version: envd.Version, Access: a.token(accessToken, id, issuer), Traffic: a.token(trafficToken, id, issuer)}
}

// detail describes a sandbox.
type detail struct {
	Template string            `json:"templateID"`
	Alias    string            `json:"alias"`
	ID       string            `json:"sandboxID"`
	Client   string            `json:"clientID"`
	Started  time.Time         `json:"startedAt"`
	End      time.Time         `json:"endAt"`
	Version  string            `json:"envdVersion"`
	Access   string            `json:"envdAccessToken,omitempty"`
	Domain   *string           `json:"domain"`
	CPUs     int               `json:"cpuCount"`
	MemoryMB int64             `json:"memoryMB"`
	DiskMB   int64             `json:"diskSizeMB"`
	Metadata map[string]string `json:"metadata"`
	State    string            `json:"state"`
	Internet bool              `json:"allowInternetAccess"`
	Life     lifecycle         `json:"lifecycle"`
}

// lifecycle is what a sandbox does by itself.
type lifecycle struct {
	OnTimeout  string `json:"onTimeout"`
	AutoResume bool   `json:"autoResume"`
}

func (a *API) detail(s *sandbox) detail {
	i := s.w.Info()
	d := detail{
		Template: s.template, Alias: s.template, ID: i.Name, Client: client, Started: i.Made, End: s.ends(), Version: envd.Version, CPUs: runtime.NumCPU(),
		MemoryMB: s.memory() >> 20, DiskMB: s.disk() >> 20, Metadata: i.Labels, State: "running", Internet: true,
		Life: lifecycle{OnTimeout: "kill"},
	}
	do, _ := s.rest.does()
	if d.Life.AutoResume = do.resume; do.pause {
		d.Life.OnTimeout = "pause"
	}
	if since := s.rest.since(); !since.IsZero() {
		d.State, d.End = "paused", since
	}
	if d.Metadata == nil {
		d.Metadata = map[string]string{}
	}
	if d.End.IsZero() {
		d.End = never
	}
	return d
}

// lifetime is a timeout of a client, of seconds; nil: the default.
func lifetime(seconds *int64) (time.Duration, error) {
	switch {
	case seconds == nil:
		return defaultTimeout, nil
	case *seconds < 0 || *seconds > maxSeconds:
		return 0, fmt.Errorf("the timeout of %d s is not from 0 to %d", *seconds, int64(maxSeconds))
	default:
		return time.Duration(*seconds) * time.Second, nil
	}
}

// refuse answers a request about sandboxes with an error.
func refuse(w http.ResponseWriter, err error) {
	status, why := meaning(err)
	answer.Error(w, status, why)
}

// meaning is an error as a status and a sentence.
func meaning(err error) (status int, why string) {
	_, options := errors.AsType[*workspace.OptionsError](err)
	_, exists := errors.AsType[*workspace.ExistsError](err)
	_, ended := errors.AsType[*workspace.EndedError](err)
	refused, no := errors.AsType[*refusal](err)
	switch {
	case no:
		return refused.status, refused.why
	case options, errors.Is(err, coppice.ErrOptions):
		return http.StatusBadRequest, err.Error()
	case exists:
		return http.StatusConflict, err.Error()
	case ended:
		return http.StatusNotFound, err.Error()
	case errors.Is(err, workspace.ErrNoPlace):
		return http.StatusTooManyRequests, err.Error()
	case errors.Is(err, shelf.ErrRecords):
		return http.StatusNotImplemented, err.Error()
	case errors.Is(err, files.ErrQuota), errors.Is(err, files.ErrNoSpace), errors.Is(err, store.ErrQuota):
		return http.StatusInsufficientStorage, err.Error()
	case errors.Is(err, coppice.ErrClosed), errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable, "the server ends"
	default:
		return http.StatusInternalServerError, err.Error()
	}
}

// named is the sandbox in the path of a request; nil: the request was answered.
func (a *API) named(w http.ResponseWriter, r *http.Request) *sandbox {
	s := a.sandbox(r.PathValue("id"))
	if s == nil {
		answer.Error(w, http.StatusNotFound, fmt.Sprintf("sandbox %.80s not found", r.PathValue("id")))
	}
	return s
}

// connect gives a client what it needs to use a sandbox, and the sandbox the time that the
// client asks for, if it has less. One that is paused is resumed.
func (a *API) connect(w http.ResponseWriter, r *http.Request) {
	s := a.named(w, r)
	if s == nil {
		return
	}
	var o struct {
		Timeout *int64 `json:"timeout"`
		Memory  *bool  `json:"memory"`
	}
	if !answer.Body(w, r, maxBody, &o) {
		return
	}
	lives, err := lifetime(o.Timeout)
	if err != nil {
		answer.Error(w, http.StatusBadRequest, err.Error())
		return
	}
	resumed, err := a.wake(context.WithoutCancel(r.Context()), s, lives, o.Memory == nil || *o.Memory)
	switch {
	case err != nil:
		refuse(w, err)
	case resumed:
		answer.JSON(w, http.StatusCreated, a.made(r.Context(), s))
	case o.Timeout == nil || s.extend(w, r, o.Timeout, false):
		answer.JSON(w, http.StatusOK, a.made(r.Context(), s))
	}
}

// extend gives a sandbox another end; without shorten, only a later one. False: the request was answered.
func (s *sandbox) extend(w http.ResponseWriter, r *http.Request, seconds *int64, shorten bool) bool {
	more, err := lifetime(seconds)
	if err != nil {
		answer.Error(w, http.StatusBadRequest, err.Error())
		return false
	}
	leave, runs, err := s.rest.enter(r.Context(), starts) // a pause remembers the end
	if err == nil && !runs {
		err = errPaused
	}
	if err != nil {
		refuse(w, err)
		return false
	}
	defer leave()
	ends, at := s.ends(), time.Now().Add(more)
	if !shorten && (ends.IsZero() || at.Before(ends)) {
		return true
	}
	if err := s.setEnd(at, s.w.Info().IdleEnd); err != nil {
		refuse(w, err)
		return false
	}
	return true
}

// get describes a sandbox.
func (a *API) get(w http.ResponseWriter, r *http.Request) {
	if s := a.named(w, r); s != nil {
		d := a.detail(s)
		d.Access = a.token(accessToken, d.ID, httpserver.PassOf(r.Context()).ID)
		answer.JSON(w, http.StatusOK, d)
	}
}

// kill ends a sandbox.
func (a *API) kill(w http.ResponseWriter, r *http.Request) {
	s := a.named(w, r)
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), endTime)
	defer cancel()
	if err := s.w.End(ctx); err != nil {
		a.o.Logger.Warn("a sandbox has not ended in time", "sandbox", s.w.Name(), "err", err) // it ends all the same
	}
	w.WriteHeader(http.StatusNoContent)
}

// timeout gives a sandbox another end.
func (a *API) timeout(w http.ResponseWriter, r *http.Request) {
	var o struct {
		Timeout *int64 `json:"timeout"`
	}
	s := a.named(w, r)
	if s != nil && answer.Body(w, r, maxBody, &o) && s.extend(w, r, o.Timeout, true) {
		w.WriteHeader(http.StatusNoContent)
	}
}

// refresh gives a sandbox a later end.
func (a *API) refresh(w http.ResponseWriter, r *http.Request) {
	var o struct {
		Duration *int64 `json:"duration"`
	}
	s := a.named(w, r)
	if s != nil && answer.Body(w, r, maxBody, &o) && s.extend(w, r, o.Duration, false) {
		w.WriteHeader(http.StatusNoContent)
	}
}
