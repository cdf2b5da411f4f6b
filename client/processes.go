package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/coppice-run/coppice/internal/sse"
)

// TerminalSize is that of a terminal, in characters; 0 of either: 80 by 24.
type TerminalSize struct {
	Columns int `json:"columns"`
	Rows    int `json:"rows"`
}

// NewProcess says what to start in a workspace. The zero value of each field but Args is
// its default.
type NewProcess struct {
	// Args are the program and its arguments; no shell is in between. Required.
	Args []string `json:"args"`
	// Env is set on top of the workspace's.
	Env map[string]string `json:"env,omitempty"`
	// Cwd is the working directory, relative to the folder of the workspace. "": that.
	Cwd string `json:"cwd,omitempty"`
	// Input gives it an input to write to. A terminal has one in any case.
	Input bool `json:"input,omitempty"`
	// Terminal gives it a terminal of this size. nil: its output goes to pipes.
	Terminal *TerminalSize `json:"terminal,omitempty"`
	// Keep is how many bytes of output are kept for readers who come later. 0: 64 MiB.
	Keep int64 `json:"keep_bytes,omitempty"`
	// Timeout ends it after so many seconds. 0: never.
	Timeout float64           `json:"timeout_seconds,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
}

// ProcessState says where a process is in its life.
type ProcessState string

// The states.
const (
	ProcessRunning ProcessState = "running"
	ProcessEnded   ProcessState = "ended"
)

// Process describes a process of a workspace.
type Process struct {
	// ID is its name in the workspace.
	ID   string   `json:"id"`
	PID  int      `json:"pid"`
	Args []string `json:"args"`
	Cwd  string   `json:"cwd,omitempty"`
	// Terminal says that it has one, Input that it takes input.
	Terminal bool              `json:"terminal,omitempty"`
	Input    bool              `json:"input,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Started  time.Time         `json:"started"`
	State    ProcessState      `json:"state"`
	// Exit is how it ended; nil while it runs.
	Exit *ProcessExit `json:"exit,omitempty"`
}

// ProcessExit is how a process ended.
type ProcessExit struct {
	// Code is its exit code, -1 after a signal, whose name Signal is.
	Code   int    `json:"code"`
	Signal string `json:"signal,omitempty"`
	// Reason is why it was ended from outside, Incomplete why output is missing.
	Reason     string `json:"reason,omitempty"`
	Incomplete string `json:"incomplete,omitempty"`
}

// ProcessEventType is what happened.
type ProcessEventType string

// The events. ProcessEnd is the last. A ProcessGap says that what came before its number is
// not kept any more.
const (
	ProcessStdout   ProcessEventType = "stdout"
	ProcessStderr   ProcessEventType = "stderr"
	ProcessTerminal ProcessEventType = "terminal"
	ProcessGap      ProcessEventType = "gap"
	ProcessEnd      ProcessEventType = "end"
)

// ProcessEvent is a piece of what a process prints, or its end.
type ProcessEvent struct {
	Seq  uint64           `json:"seq"`
	Type ProcessEventType `json:"type"`
	At   time.Time        `json:"at,omitzero"`
	// Data is what was printed. It need not be text.
	Data []byte `json:"data,omitempty"`
	// Exit is how the process ended; of a ProcessEnd alone.
	Exit *ProcessExit `json:"exit,omitempty"`
}

// ofProcess is the path of a process in its workspace.
func ofProcess(id, action string) string { return "/processes/" + url.PathEscape(id) + action }

// StartProcess starts a process in a workspace. It is not repeated when it is not known what
// became of it.
func (c *Client) StartProcess(ctx context.Context, name string, n NewProcess) (Process, error) {
	path, err := workspace(name, "/processes")
	if err != nil {
		return Process{}, err
	}
	body, err := json.Marshal(n)
	if err != nil {
		return Process{}, fmt.Errorf("POST %s: %w", path, err)
	}
	req, err := c.request(ctx, http.MethodPost, path, nil, body)
	if err != nil {
		return Process{}, err
	}
	req.Header.Set(headerServer, "?")
	var p Process
	header, err := c.taking(req, &p)
	if err == nil {
		c.lives.set(processPath(name, p.ID), lifeOf(header))
	}
	return p, err
}

// Processes lists those of a workspace, as they were started, with the last that have ended.
func (c *Client) Processes(ctx context.Context, name string) ([]Process, error) {
	var list struct {
		Processes []Process `json:"processes"`
	}
	err := c.askWorkspace(ctx, true, http.MethodGet, name, "/processes", nil, nil, &list)
	return list.Processes, err
}

// Process describes one.
func (c *Client) Process(ctx context.Context, name, id string) (Process, error) {
	var p Process
	err := c.askProcess(ctx, true, http.MethodGet, name, id, "", nil, nil, &p)
	return p, err
}

// WaitProcess returns a process when it has ended.
func (c *Client) WaitProcess(ctx context.Context, name, id string) (Process, error) {
	for {
		var p Process
		err := c.askProcess(ctx, true, http.MethodGet, name, id, "", url.Values{"wait": {"30"}}, nil, &p)
		if err != nil || p.State == ProcessEnded {
			return p, err
		}
	}
}

// EndProcess ends a process and its group, by SIGTERM and after a grace by SIGKILL (0: at
// once, at most a minute), and returns when it has ended.
func (c *Client) EndProcess(ctx context.Context, name, id string, grace time.Duration) (Process, error) {
	var p Process
	query := url.Values{"grace": {strconv.FormatFloat(grace.Seconds(), 'f', -1, 64)}}
	err := c.askProcess(ctx, true, http.MethodDelete, name, id, "", query, nil, &p)
	return p, err
}

// SignalProcess sends a signal to a process and its group: INT, TERM, KILL, HUP, QUIT,
// USR1, USR2, STOP, CONT or WINCH.
func (c *Client) SignalProcess(ctx context.Context, name, id, signal string) error {
	return c.askProcess(ctx, false, http.MethodPost, name, id, "/signal", nil, map[string]string{"signal": signal}, nil)
}

// ResizeProcess gives the terminal of a process another size.
func (c *Client) ResizeProcess(ctx context.Context, name, id string, size TerminalSize) error {
	return c.askProcess(ctx, true, http.MethodPost, name, id, "/resize", nil, size, nil)
}

// CloseProcessInput ends the input of a process; a terminal gets what Ctrl-D is there.
func (c *Client) CloseProcessInput(ctx context.Context, name, id string) error {
	return c.askProcess(ctx, false, http.MethodPost, name, id, "/close", nil, nil, nil)
}

// maxInput is how much one request writes to a process, in bytes.
const maxInput = 256 << 10

// WriteProcess writes to the input of a process, and waits until it has taken all. n is
// how much it has. A request is not repeated when it is not known what became of it.
func (c *Client) WriteProcess(ctx context.Context, name, id string, data []byte) (n int, err error) {
	path, err := workspace(name, ofProcess(id, "/input"))
	if err != nil {
		return 0, err
	}
	for n < len(data) {
		piece := data[n:min(len(data), n+maxInput)]
		req, err := c.request(ctx, http.MethodPost, path, nil, piece)
		if err != nil {
			return n, err
		}
		req.Header.Set("Content-Type", "application/octet-stream")
		var out struct {
			Taken int `json:"taken"`
		}
		if err := c.take(req, &out); err != nil {
			return n, fmt.Errorf("write to the process %s: %w", id, c.lost(ctx, processPath(name, id), err))
		}
		n += out.Taken
	}
	return n, nil
}

// ProcessInput is a writer to the input of a process, see WriteProcess.
func (c *Client) ProcessInput(ctx context.Context, name, id string) io.Writer {
	return writer(func(p []byte) (int, error) { return c.WriteProcess(ctx, name, id, p) })
}

type writer func([]byte) (int, error)

// Write writes.
func (w writer) Write(p []byte) (int, error) { return w(p) }

// ProcessEvents yields what a process prints after the event with the given number, 0 for
// all that is kept, until its ProcessEnd. A connection that breaks is made again, from where it
// broke. While it is read, a process that prints faster waits.
func (c *Client) ProcessEvents(ctx context.Context, name, id string, after uint64) iter.Seq2[ProcessEvent, error] {
	return func(yield func(ProcessEvent, error) bool) {
		path, err := workspace(name, ofProcess(id, "/events"))
		if err != nil {
			yield(ProcessEvent{}, err)
			return
		}
		wait := c.newPause()
		defer wait.end()
		for {
			end, err := c.stream(ctx, http.MethodGet, path, nil, after, wait.alive, func(got sse.Event) (bool, error) {
				var e ProcessEvent
				if err := json.Unmarshal([]byte(got.Data), &e); err != nil {
					return false, &brokenError{err}
				}
				switch {
				case e.Seq <= after: // seen before
					return true, nil
				case e.Seq != after+1 && e.Type != ProcessGap:
					return false, &brokenError{fmt.Errorf("event %d follows event %d", e.Seq, after)}
				}
				after = e.Seq
				wait.progress()
				return yield(e, nil) && e.Type != ProcessEnd, nil
			})
			if end {
				return
			}
			if !c.goOn(ctx, wait, err) {
				yield(ProcessEvent{}, fmt.Errorf("events of the process %s after %d: %w", id, after, cmp.Or(context.Cause(ctx), c.lost(ctx, processPath(name, id), err))))
				return
			}
		}
	}
}

// lost is what it means that a process is refused with err: a server that was started again does
// not know it.
func (c *Client) lost(ctx context.Context, path string, err error) error {
	told, ok := errors.AsType[*Error](err)
	if !ok || told.Status != http.StatusNotFound || told.Code != "not_found" {
		return err
	}
	was := c.lives.get(path)
	if was == "" {
		return err
	}
	req, failed := c.request(ctx, http.MethodGet, "api/health", nil, nil)
	if failed != nil {
		return err
	}
	req.Header.Set(headerServer, "?")
	_, header, failed := c.exchange(req)
	if failed != nil {
		return err // it says enough
	}
	if now := lifeOf(header); now == "" || now == was {
		return err
	}
	return &Error{
		Status: http.StatusGone, Code: "lost", Message: "the server was started again while the process ran: what became of it is not known",
		Hint: "look at what it was to do before you start it again",
	}
}

// askProcess asks about a process.
func (c *Client) askProcess(ctx context.Context, again bool, method, name, id, action string, query url.Values, in, out any) error {
	err := c.askWorkspace(ctx, again, method, name, ofProcess(id, action), query, in, out)
	if err == nil {
		return nil
	}
	return c.lost(ctx, processPath(name, id), err)
}

// processPath names a process among those of a client.
func processPath(name, id string) string { return name + "\x00" + id }
