package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"
)

// Workspace describes a workspace: what sessions, files and processes belong to together.
type Workspace struct {
	Name string `json:"name"`
	// Folder is where its files are on the machine of the server.
	Folder string            `json:"folder"`
	Owner  string            `json:"owner,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Made   time.Time         `json:"made"`
	// EndAt is when it ends, zero for never; IdleEnd after how long without use, in
	// seconds, 0 for never.
	EndAt   time.Time `json:"end_at,omitzero"`
	IdleEnd float64   `json:"idle_end_seconds,omitempty"`
	// Used is when it was used last, InUse how many calls, processes and transfers of
	// files go on.
	Used   time.Time `json:"used"`
	InUse  int       `json:"in_use"`
	Pinned bool      `json:"pinned,omitempty"`
	// Quota is how many bytes its files may have; 0: no limit.
	Quota  int64           `json:"quota_bytes,omitempty"`
	Limits WorkspaceLimits `json:"limits"`
	// Total is the limits of everything in it together, and Kept says in words what keeps to
	// those of memory, processes and processors, and why not another thing does; "": none is
	// set. What each cell and process prints is kept where it is read.
	Total WorkspaceTotal `json:"total,omitzero"`
	Kept  string         `json:"total_kept,omitempty"`
	// Usage is what it used when it was looked at; nil: it is not looked at, since neither
	// limits as a whole nor a quota ask for it, or was not yet.
	Usage *WorkspaceUsage `json:"usage,omitempty"`
	// Isolation is the rung that its sessions are on, and IsolationText what that does.
	Isolation     string `json:"isolation,omitempty"`
	IsolationText string `json:"isolation_text,omitempty"`
	// Refused is the hosts of the network that were asked for and refused, the newest last.
	Refused []Refusal `json:"refused,omitempty"`
}

// Refusal is a host of the network that was asked for, and may not be reached.
type Refusal struct {
	// Host is it, with its port; Why is why it was refused the last time; Times is how often it was
	// asked for, and Last when.
	Host  string    `json:"host"`
	Why   string    `json:"why,omitempty"`
	Times int       `json:"times"`
	Last  time.Time `json:"last"`
}

// WorkspaceLimits bound each session of a workspace; 0 of each: that of the server.
type WorkspaceLimits struct {
	// Memory is in bytes, CPU (of one cell) and Runtime in seconds.
	Memory  int64   `json:"memory_bytes,omitempty"`
	CPU     float64 `json:"cpu_seconds,omitempty"`
	Runtime float64 `json:"runtime_seconds,omitempty"`
	// Files is how many may be open, Processes how many a session may have started, and
	// Processors how many of them it may keep busy.
	Files      int     `json:"files,omitempty"`
	Processes  int     `json:"processes,omitempty"`
	Processors float64 `json:"processors,omitempty"`
}

// WorkspaceTotal bounds what everything in a workspace uses together: sessions, processes,
// and what they have started; 0 of each: no limit.
type WorkspaceTotal struct {
	// Memory is in bytes, without files that were read. The process that has most is ended,
	// or by a control group all that is in the workspace.
	Memory int64 `json:"memory_bytes,omitempty"`
	// Processes is how many may live, those of sessions included, and Processors how many may
	// be kept busy, 0.5 for half of one: the server needs a control group for that, and refuses
	// it where it has none.
	Processes  int     `json:"processes,omitempty"`
	Processors float64 `json:"processors,omitempty"`
	// Output is how many bytes each cell and each process may print. It is stopped then.
	Output int64 `json:"output_bytes,omitempty"`
}

// WorkspaceUsage is what everything in a workspace used when it was looked at.
type WorkspaceUsage struct {
	// At is when that was. Zero: what has ended something for a limit was not a look.
	At time.Time `json:"at,omitzero"`
	// Memory is in bytes, without files that were read; Processes is how many lived.
	Memory    int64 `json:"memory_bytes"`
	Processes int   `json:"processes"`
	// Ends is how often something was ended or stopped for a limit of the workspace, and
	// Last the newest of them, in words.
	Ends int    `json:"ends,omitempty"`
	Last string `json:"last,omitempty"`
}

// Isolation says what sessions and processes are kept from. The zero value: that of the
// server.
type Isolation struct {
	// Level is a rung: off, privileges, landlock, seccomp, user, bubblewrap, gvisor,
	// strongest. "": that of the server.
	Level string `json:"level,omitempty"`
	// Write and Read name folders that may be changed, and read, besides the workspace's
	// own and the system's.
	Write []string `json:"write,omitempty"`
	Read  []string `json:"read,omitempty"`
	// Network allows network connections. Without it, Loopback allows those within the
	// machine, and Hosts those to hosts that it names, through a proxy: api.example.com,
	// *.example.org, git.example.net:8443.
	Network  bool     `json:"network,omitempty"`
	Loopback bool     `json:"loopback,omitempty"`
	Hosts    []string `json:"hosts,omitempty"`
	// Private closes what all programs of the user share (/dev/shm, so that Python's
	// multiprocessing finds no semaphores below the rung bubblewrap), for those whose
	// neighbours are not to be trusted.
	Private bool `json:"private,omitempty"`
	// Users gives each session a user of its own on the rung bubblewrap.
	Users bool `json:"users,omitempty"`
}

// Lifetime is when a workspace ends. The zero value: never by itself.
type Lifetime struct {
	// EndIn is after how many seconds from now, whatever it does then; 0: never.
	EndIn float64 `json:"end_in_seconds,omitempty"`
	// IdleEnd is after how many seconds without use; 0: never.
	IdleEnd float64 `json:"idle_end_seconds,omitempty"`
}

// NewWorkspace asks for a workspace.
type NewWorkspace struct {
	// Name is that of the workspace: 1 to 64 letters, digits, -, _ and ., the first no -
	// or ., the last no point. Required.
	Name string `json:"name"`
	// Folder is one that is there, on the machine of the server. "": one of its own, which
	// is removed when it ends, unless KeepFolder is set.
	Folder     string `json:"folder,omitempty"`
	KeepFolder bool   `json:"keep_folder,omitempty"`
	// Env is its environment, beside what passes of the server's.
	Env map[string]string `json:"env,omitempty"`
	// Pass names the variables of the server that may pass. nil: all that sessions of the
	// server get; empty: no other than PATH, HOME and the language.
	Pass      []string          `json:"pass,omitzero"`
	Labels    map[string]string `json:"labels,omitempty"`
	Limits    WorkspaceLimits   `json:"limits,omitzero"`
	Total     WorkspaceTotal    `json:"total,omitzero"`
	Isolation *Isolation        `json:"isolation,omitempty"`
	// Quota is how many bytes its files may have. 0: no limit.
	Quota    int64    `json:"quota_bytes,omitempty"`
	Lifetime Lifetime `json:"lifetime,omitzero"`
	Owner    string   `json:"owner,omitempty"`
}

// ChangeWorkspace says what is to change; what is nil stays.
type ChangeWorkspace struct {
	// Labels replace those that it has; empty: it has none then.
	Labels map[string]string `json:"labels,omitzero"`
	// Lifetime replaces all of it.
	Lifetime *Lifetime `json:"lifetime,omitempty"`
	// Pinned spares it when another one needs a place, or ends that.
	Pinned *bool `json:"pinned,omitempty"`
}

// FilterWorkspaces chooses workspaces. The zero value takes all.
type FilterWorkspaces struct {
	// Labels have to be there with these values; "" as the value: with any.
	Labels map[string]string
	// Owner has to be this one. "": any.
	Owner string
}

// ErrNoWorkspace is returned where a name of a workspace is empty. The server is not
// asked.
var ErrNoWorkspace = errors.New("the workspace has no name")

// workspace is the path of a workspace, or of something in it.
func workspace(name, rest string) (string, error) {
	if name == "" {
		return "", ErrNoWorkspace
	}
	return "api/workspaces/" + url.PathEscape(name) + rest, nil
}

// askWorkspace asks about a workspace.
func (c *Client) askWorkspace(ctx context.Context, again bool, method, name, rest string, query url.Values, in, out any) error {
	path, err := workspace(name, rest)
	if err != nil {
		return err
	}
	return c.asking(ctx, method, path, query, in, out, again)
}

// CreateWorkspace makes a workspace, or returns the one of this name that is there and was
// made alike. An error with code conflict says that it was made otherwise.
func (c *Client) CreateWorkspace(ctx context.Context, n NewWorkspace) (Workspace, error) {
	var w Workspace
	err := c.ask(ctx, http.MethodPost, "api/workspaces", nil, n, &w)
	return w, err
}

// Workspaces lists those that have not ended, in the order of their names.
func (c *Client) Workspaces(ctx context.Context, f FilterWorkspaces) ([]Workspace, error) {
	query := url.Values{}
	for name, value := range f.Labels {
		if value != "" {
			name += "=" + value
		}
		query.Add("label", name)
	}
	if f.Owner != "" {
		query.Set("owner", f.Owner)
	}
	var list struct {
		Workspaces []Workspace `json:"workspaces"`
	}
	err := c.ask(ctx, http.MethodGet, "api/workspaces", query, nil, &list)
	return list.Workspaces, err
}

// Workspace describes one. The code of the error is not_found for one that never was, and
// ended for one that has ended; its message says why.
func (c *Client) Workspace(ctx context.Context, name string) (Workspace, error) {
	var w Workspace
	err := c.askWorkspace(ctx, true, http.MethodGet, name, "", nil, nil, &w)
	return w, err
}

// ChangeWorkspace changes labels, lifetime or pin of a workspace.
func (c *Client) ChangeWorkspace(ctx context.Context, name string, change ChangeWorkspace) (Workspace, error) {
	var w Workspace
	err := c.askWorkspace(ctx, true, http.MethodPatch, name, "", nil, change, &w)
	return w, err
}

// EndWorkspace ends a workspace with all that is in it, and returns when nothing of it is
// left. One that has ended is no error.
func (c *Client) EndWorkspace(ctx context.Context, name string) error {
	if err := c.askWorkspace(ctx, true, http.MethodDelete, name, "", nil, nil, nil); err != nil {
		return err
	}
	c.sessions.ended(name)
	return nil
}
