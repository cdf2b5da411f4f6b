package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/coppice-run/coppice/internal/sse"
	"github.com/coppice-run/coppice/messages"
)

// Tool describes a tool of the folder that the server serves.
type Tool struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Category string `json:"category,omitempty"`
	// Status is running, dormant, or failed: its last process failed, or its
	// tool.json cannot be read.
	Status string `json:"status"`
	// Validation is pass, warn or fail, or unchecked.
	Validation string `json:"validation"`
	Pinned     bool   `json:"pinned"`
	// Problem says why it failed.
	Problem string `json:"problem,omitempty"`
}

// ToolsHealth is how the part of a server is that is about tools.
type ToolsHealth struct {
	OK bool `json:"ok"`
	// Uptime is in seconds.
	Uptime float64 `json:"uptime_seconds"`
	// Warm are the tools that have a process.
	Warm []messages.ToolState `json:"warm_tools"`
}

// ToolLogs is the end of what a tool wrote to standard error.
type ToolLogs struct {
	Lines []string `json:"lines"`
	// Live says that the process runs.
	Live bool `json:"live"`
}

// RunTool asks for a run of a tool.
type RunTool struct {
	// Inputs is a JSON object. nil: all have their defaults.
	Inputs json.RawMessage `json:"inputs,omitempty"`
	// Run names the run. "": the server makes a name.
	Run string `json:"run_id,omitempty"`
	// Timeout is in seconds. 0: what the tool allows.
	Timeout float64 `json:"timeout_seconds,omitempty"`
}

// ToolStopped tells what became of a tool that was to be stopped.
type ToolStopped struct {
	// Status is "stopped".
	Status string `json:"status"`
	ToolID string `json:"tool_id"`
	// WasRunning says that there was a process to end.
	WasRunning bool `json:"was_running"`
}

// Tools lists the tools of the server's folder, the broken ones too.
func (c *Client) Tools(ctx context.Context) ([]Tool, error) {
	var list []Tool
	err := c.ask(ctx, http.MethodGet, "api/tools", nil, nil, &list)
	return list, err
}

// ToolsHealth asks which tools are warm.
func (c *Client) ToolsHealth(ctx context.Context) (ToolsHealth, error) {
	var h ToolsHealth
	err := c.ask(ctx, http.MethodGet, "api/healthz", nil, nil, &h)
	return h, err
}

// ToolsState asks for all that the launcher knows. A server that is not in developer
// mode answers with an error of code not_found.
func (c *Client) ToolsState(ctx context.Context) (messages.ToolsState, error) {
	var s messages.ToolsState
	err := c.ask(ctx, http.MethodGet, "api/launcher/state", nil, nil, &s)
	return s, err
}

// ToolLogs asks for the last lines of a tool's standard error, so many of them; 0: all
// that are kept. An error with code not_found says that there was no process.
func (c *Client) ToolLogs(ctx context.Context, id string, limit int) (ToolLogs, error) {
	query := url.Values{}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	var l ToolLogs
	err := c.ask(ctx, http.MethodGet, tool(id, "logs"), query, nil, &l)
	return l, err
}

// PinTool exempts a tool from making room for others, or ends the exemption.
func (c *Client) PinTool(ctx context.Context, id string, pinned bool) error {
	action := "pin"
	if !pinned {
		action = "unpin"
	}
	return c.ask(ctx, http.MethodPost, tool(id, action), nil, nil, nil)
}

// StopTool ends the process of a tool, and cancels what runs in it. Its next run starts
// it again.
func (c *Client) StopTool(ctx context.Context, id string) (ToolStopped, error) {
	var stopped ToolStopped
	err := c.once(ctx, http.MethodPost, tool(id, "stop"), nil, nil, &stopped)
	return stopped, err
}

// PrewarmTool starts a tool before it is needed, unless another one would have to make
// room. It does not wait for the start.
func (c *Client) PrewarmTool(ctx context.Context, id string) (messages.ToolQueued, error) {
	var q messages.ToolQueued
	err := c.ask(ctx, http.MethodPost, tool(id, "prewarm"), nil, nil, &q)
	return q, err
}

// RunTool makes a run, and calls emit with each part of its outputs, in order. It is
// made once: a connection that breaks is an error, and the run is cancelled by it, as by
// the end of ctx and by an error of emit, which is returned. A tool that fails is no
// error here: its result says so.
func (c *Client) RunTool(ctx context.Context, id string, r RunTool, emit func(messages.ToolEvent) error) (messages.ToolResult, error) {
	var result messages.ToolResult
	body, err := json.Marshal(r)
	if err != nil {
		return result, fmt.Errorf("run tool %s: %w", id, err)
	}
	_, err = c.stream(ctx, http.MethodPost, tool(id, "stream"), body, 0, func() {}, func(got sse.Event) (bool, error) {
		switch got.Name {
		case "output":
			var e messages.ToolEvent
			if err := json.Unmarshal([]byte(got.Data), &e); err != nil {
				return false, &brokenError{err}
			}
			return true, emit(e)
		case "error":
			return false, errEnded
		case "done":
			if err := json.Unmarshal([]byte(got.Data), &result); err != nil {
				return false, &brokenError{err}
			}
			return false, nil
		default:
			return true, nil // of a newer server
		}
	})
	if err != nil {
		return messages.ToolResult{}, fmt.Errorf("run tool %s: %w", id, err)
	}
	return result, nil
}

// errEnded is the end of a run that has no result.
var errEnded = errors.New("the server ended during the run")

func tool(id, action string) string { return "api/tools/" + url.PathEscape(id) + "/" + action }
