package e2b

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/e2b/answer"
	"github.com/coppice-run/coppice/cmd/internal/e2b/envd"
	"github.com/coppice-run/coppice/workspace"
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

// templates are those that can be asked for. There is one environment, that of the
// server, by two names: clients ask for it by default.
var templates = []string{"base", "code-interpreter-v1"}

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

func (a *API) made(s *sandbox) made {
	id := s.w.Name()
	return made{Template: s.template, ID: id, Client: client, Version: envd.Version, Access: a.token(accessToken, id), Traffic: a.token(trafficToken, id)}
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

// name is that of a new sandbox. A client that asks again with the same key means the same one.
func (a *API) name(key string) string {
	text := rand.Text()
	if key != "" {
		sum := sha256.Sum256(append(slices.Clone(a.secret), key...))
		text = base32.StdEncoding.EncodeToString(sum[:])
	}
	return "i" + strings.ToLower(text[:20])
}

// create makes a sandbox.
func (a *API) create(w http.ResponseWriter, r *http.Request) {
	var o newSandbox
	if !answer.Body(w, r, maxBody, &o) {
		return
	}
	if o.Template != "" && !slices.Contains(templates, o.Template) {
		answer.Error(w, http.StatusNotFound, fmt.Sprintf("template '%.80s' not found: there are %s here, which are the server's own environment", o.Template, strings.Join(templates, " and ")))
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
	do, at := o.auto(), time.Now().Add(max(lives, leastTimeout))
	asked := workspace.Options{Env: o.Env, Labels: o.Metadata, EndAt: at}
	if do.pause {
		asked.EndAt = time.Time{} // it is paused then
	}
	made, err := a.o.Host.Workspace(r.Context(), a.name(r.Header.Get("Idempotency-Key")), asked)
	if err != nil {
		refuse(w, err)
		return
	}
	s := a.of(made, o.Template)
	if s == nil {
		refuse(w, coppice.ErrClosed)
		return
	}
	s.rest.will(do)
	if do.pause {
		s.rest.pausesAt(at)
	}
	answer.JSON(w, http.StatusCreated, a.made(s))
}

// refuse answers a request about sandboxes with an error.
func refuse(w http.ResponseWriter, err error) {
	_, options := errors.AsType[*workspace.OptionsError](err)
	_, exists := errors.AsType[*workspace.ExistsError](err)
	_, ended := errors.AsType[*workspace.EndedError](err)
	refused, no := errors.AsType[*refusal](err)
	switch {
	case no:
		answer.Error(w, refused.status, refused.why)
	case options, errors.Is(err, coppice.ErrOptions):
		answer.Error(w, http.StatusBadRequest, err.Error())
	case exists:
		answer.Error(w, http.StatusConflict, err.Error())
	case ended:
		answer.Error(w, http.StatusNotFound, err.Error())
	case errors.Is(err, workspace.ErrNoPlace):
		answer.Error(w, http.StatusTooManyRequests, err.Error())
	case errors.Is(err, coppice.ErrClosed), errors.Is(err, context.Canceled):
		answer.Error(w, http.StatusServiceUnavailable, "the server ends")
	default:
		answer.Error(w, http.StatusInternalServerError, err.Error())
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
		answer.JSON(w, http.StatusCreated, a.made(s))
	case o.Timeout == nil || s.extend(w, r, o.Timeout, false):
		answer.JSON(w, http.StatusOK, a.made(s))
	}
}

// extend gives a sandbox another end; without shorten, only a later one. False: the request was answered.
func (s *sandbox) extend(w http.ResponseWriter, r *http.Request, seconds *int64, shorten bool) bool {
	more, err := lifetime(seconds)
	if err != nil {
		answer.Error(w, http.StatusBadRequest, err.Error())
		return false
	}
	leave, runs, err := s.rest.enter(r.Context()) // a pause remembers the end
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
		d.Access = a.token(accessToken, d.ID)
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
