package workspaceapi

import (
	"net/http"
	"strings"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/workspace"
)

// create is the body of a request for a workspace; numbers are as JSON has them, so that
// 2.0 is a whole one.
type create struct {
	Name       string            `json:"name"`
	Folder     string            `json:"folder,omitempty"`
	KeepFolder bool              `json:"keep_folder,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	Pass       []string          `json:"pass,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	Limits     limits            `json:"limits,omitzero"`
	Total      total             `json:"total,omitzero"`
	Isolation  client.Isolation  `json:"isolation,omitzero"`
	Quota      float64           `json:"quota_bytes,omitempty"`
	Lifetime   lifetime          `json:"lifetime,omitzero"`
	Owner      string            `json:"owner,omitempty"`
}

type limits struct {
	Memory     float64 `json:"memory_bytes,omitempty"`
	CPU        float64 `json:"cpu_seconds,omitempty"`
	Runtime    float64 `json:"runtime_seconds,omitempty"`
	Files      float64 `json:"files,omitempty"`
	Processes  float64 `json:"processes,omitempty"`
	Processors float64 `json:"processors,omitempty"`
}

type total struct {
	Memory     float64 `json:"memory_bytes,omitempty"`
	Processes  float64 `json:"processes,omitempty"`
	Processors float64 `json:"processors,omitempty"`
	Output     float64 `json:"output_bytes,omitempty"`
}

type lifetime struct {
	EndIn   float64 `json:"end_in_seconds,omitempty"`
	IdleEnd float64 `json:"idle_end_seconds,omitempty"`
}

// maxCount bounds how many of something there may be.
const maxCount = 1 << 30

// options reads the limits.
func (l limits) options() (kernel.Limits, error) {
	var o kernel.Limits
	var files, processes int64
	var err error
	for _, one := range []struct {
		name string
		n    float64
		most int64
		to   *int64
	}{{"limits.memory_bytes", l.Memory, maxWhole, &o.Memory}, {"limits.files", l.Files, maxCount, &files}, {"limits.processes", l.Processes, maxCount, &processes}} {
		if *one.to, err = whole(one.name, one.n, one.most); err != nil {
			return o, err
		}
	}
	o.Files, o.Processes = int(files), int(processes)
	if o.CPU, err = seconds("limits.cpu_seconds", l.CPU); err != nil {
		return o, err
	}
	if o.Runtime, err = seconds("limits.runtime_seconds", l.Runtime); err != nil {
		return o, err
	}
	if o.Processors = l.Processors; l.Processors < 0 || l.Processors > maxCount {
		return o, bad("", "limits.processors must be from 0 to %d, not %v", maxCount, l.Processors)
	}
	return o, nil
}

// options reads the limits of everything together.
func (t total) options() (o workspace.Total, err error) {
	var processes int64
	for _, one := range []struct {
		name string
		n    float64
		most int64
		to   *int64
	}{{"total.memory_bytes", t.Memory, maxWhole, &o.Memory}, {"total.processes", t.Processes, maxCount, &processes}, {"total.output_bytes", t.Output, maxWhole, &o.Output}} {
		if *one.to, err = whole(one.name, one.n, one.most); err != nil {
			return o, err
		}
	}
	o.Processes = int(processes)
	if o.Processors = t.Processors; t.Processors < 0 || t.Processors > maxCount {
		return o, bad("", "total.processors must be from 0 to %d, not %v", maxCount, t.Processors)
	}
	return o, nil
}

// times reads a lifetime: when it ends, zero for never, and after how long without use.
func (l lifetime) times() (end time.Time, idle time.Duration, err error) {
	in, err := seconds("lifetime.end_in_seconds", l.EndIn)
	if err != nil {
		return end, 0, err
	}
	if in > 0 {
		end = time.Now().Add(in)
	}
	idle, err = seconds("lifetime.idle_end_seconds", l.IdleEnd)
	return end, idle, err
}

// options reads the request.
func (c create) options() (o workspace.Options, err error) {
	o = workspace.Options{
		Folder: c.Folder, KeepFolder: c.KeepFolder, Env: c.Env, Pass: c.Pass, Labels: c.Labels, Owner: c.Owner,
		Isolation: kernel.Isolation{Level: c.Isolation.Level, Write: c.Isolation.Write, Read: c.Isolation.Read, Network: c.Isolation.Network, Loopback: c.Isolation.Loopback, Hosts: c.Isolation.Hosts, Private: c.Isolation.Private, Users: c.Isolation.Users},
	}
	if o.Limits, err = c.Limits.options(); err != nil {
		return o, err
	}
	if o.Total, err = c.Total.options(); err != nil {
		return o, err
	}
	if o.Quota, err = whole("quota_bytes", c.Quota, maxWhole); err != nil {
		return o, err
	}
	o.EndAt, o.IdleEnd, err = c.Lifetime.times()
	return o, err
}

func (h *handler) create(w http.ResponseWriter, r *http.Request) {
	var in create
	if !body(w, r, &in) {
		return
	}
	o, err := in.options()
	if err == nil && h.o.Bound != nil {
		err = h.o.Bound(&o)
	}
	if err != nil {
		h.problem(w, r, err)
		return
	}
	began := time.Now()
	ws, err := h.o.Host.Workspace(r.Context(), in.Name, o)
	if err != nil {
		h.problem(w, r, err)
		return
	}
	status, info := http.StatusCreated, ws.Info()
	if info.Made.Before(began) {
		status = http.StatusOK
	}
	w.Header().Set("Location", "/api/workspaces/"+info.Name)
	httpserver.JSON(w, status, describe(ws))
}

// describe tells what is known of a workspace, but for its environment.
func describe(ws *workspace.Workspace) client.Workspace {
	i, l := ws.Info(), ws.Limits()
	var refused []client.Refusal
	for _, r := range i.Refused {
		refused = append(refused, client.Refusal(r))
	}
	return client.Workspace{
		Refused: refused,
		Total:   client.WorkspaceTotal{Memory: i.Total.Memory, Processes: i.Total.Processes, Processors: i.Total.Processors, Output: i.Total.Output},
		Kept:    i.Kept, Usage: usage(i.Usage),
		Name: i.Name, Folder: i.Folder, Owner: i.Owner, Labels: i.Labels, Made: i.Made, EndAt: i.EndAt, IdleEnd: i.IdleEnd.Seconds(),
		Used: i.Used, InUse: i.InUse, Pinned: i.Pinned, Quota: i.Quota, Isolation: i.Isolation, IsolationText: i.IsolationText,
		Limits: client.WorkspaceLimits{
			Memory: l.Memory, CPU: l.CPU.Seconds(), Runtime: l.Runtime.Seconds(), Files: l.Files, Processes: l.Processes, Processors: l.Processors,
		},
	}
}

// usage is what was seen when a workspace was looked at; nil: it was not.
func usage(u workspace.Usage) *client.WorkspaceUsage {
	if u.At.IsZero() && u.Ends == 0 {
		return nil
	}
	return &client.WorkspaceUsage{At: u.At, Memory: u.Memory, Processes: u.Processes, Ends: u.Ends, Last: u.Last}
}

func (h *handler) list(w http.ResponseWriter, r *http.Request) {
	f, err := filter(r)
	if err != nil {
		h.problem(w, r, err)
		return
	}
	list := []client.Workspace{}
	for _, i := range h.o.Host.Workspaces().List(f) {
		if ws, err := h.o.Host.Workspaces().Get(i.Name); err == nil { // else it has just ended
			list = append(list, describe(ws))
		}
	}
	httpserver.Answer(w, r, http.StatusOK, map[string]any{"workspaces": list})
}

// filter reads which workspaces are asked for: label=NAME=VALUE, or label=NAME for any
// value, as often as there are labels.
func filter(r *http.Request) (workspace.Filter, error) {
	f := workspace.Filter{Labels: map[string]string{}}
	for _, text := range r.URL.Query()["label"] {
		name, value, _ := strings.Cut(text, "=")
		if name == "" {
			return f, bad("send label=NAME=VALUE, or label=NAME", "the label %.80q has no name", text)
		}
		if has, twice := f.Labels[name]; twice && has != value && has != "" && value != "" {
			return f, unfit("", "no workspace has two values of the label %.80q", name)
		} else if value != "" || !twice {
			f.Labels[name] = value
		}
	}
	owner, _, err := one(r, "owner")
	f.Owner = owner
	return f, err
}

func (h *handler) show(w http.ResponseWriter, _ *http.Request, at place) error {
	httpserver.JSON(w, http.StatusOK, describe(at.w))
	return nil
}

// change changes what may change; what the request leaves out stays.
func (h *handler) change(w http.ResponseWriter, r *http.Request, at place) error {
	var in struct {
		Labels   map[string]string `json:"labels,omitempty"`
		Lifetime *lifetime         `json:"lifetime,omitempty"`
		Pinned   *bool             `json:"pinned,omitempty"`
	}
	if !body(w, r, &in) {
		return nil
	}
	var l lifetime
	if in.Lifetime != nil {
		l = *in.Lifetime
	}
	end, idle, err := l.times()
	if err == nil && in.Labels != nil {
		err = at.w.SetLabels(in.Labels)
	}
	if err == nil && in.Lifetime != nil {
		err = at.w.SetLifetime(end, idle)
	}
	if err != nil {
		return err
	}
	if in.Pinned != nil {
		if err := at.w.Pin(r.Context(), *in.Pinned); err != nil {
			return err
		}
	}
	httpserver.JSON(w, http.StatusOK, describe(at.w))
	return nil
}

// prove tells how the isolation of a workspace holds.
func (h *handler) prove(w http.ResponseWriter, r *http.Request, at place) error {
	proof, err := h.prover.prove(r.Context(), h.o.Host, at.w)
	if err != nil {
		return err
	}
	httpserver.JSON(w, http.StatusOK, proof)
	return nil
}

// end ends a workspace. One that has ended is no error.
func (h *handler) end(w http.ResponseWriter, r *http.Request) {
	ws, err := h.o.Host.Workspaces().Get(r.PathValue("workspace"))
	switch {
	case ws != nil:
		err = ws.End(r.Context())
	case err != nil && meaning(err).status == http.StatusGone:
		err = nil
	}
	if err != nil {
		h.problem(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
