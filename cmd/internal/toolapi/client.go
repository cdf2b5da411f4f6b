package toolapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/internal/sse"
	"github.com/coppice-run/coppice/messages"
)

// Client asks a server about its tools. Any goroutine may use it.
type Client struct {
	record httpserver.Record
	http   *http.Client
}

// NewClient returns the client of a server. Close it at the end.
func NewClient(r httpserver.Record) *Client {
	return &Client{record: r, http: &http.Client{
		Transport:     &http.Transport{DialContext: (&net.Dialer{Timeout: 2 * time.Second}).DialContext},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close gives the connections up.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// URL is where the server is.
func (c *Client) URL() string { return c.record.URL }

// Alive reports whether the server answers.
func (c *Client) Alive(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	h, err := c.Health(ctx)
	return err == nil && h.OK
}

// Health asks for the warm tools.
func (c *Client) Health(ctx context.Context) (Health, error) {
	var h Health
	return h, c.get(ctx, "/api/healthz", &h)
}

// List asks for the tools.
func (c *Client) List(ctx context.Context) ([]Summary, error) {
	var list []Summary
	return list, c.get(ctx, "/api/tools", &list)
}

// State asks for the state of the launcher, which a server shows in developer
// mode only.
func (c *Client) State(ctx context.Context) (messages.ToolsState, error) {
	var s messages.ToolsState
	return s, c.get(ctx, "/api/launcher/state", &s)
}

// Logs asks for the last lines of a tool's standard error; limit 0 is all.
func (c *Client) Logs(ctx context.Context, id string, limit int) (Logs, error) {
	path := tool(id, "logs")
	if limit > 0 {
		path += fmt.Sprintf("?limit=%d", limit)
	}
	var l Logs
	return l, c.get(ctx, path, &l)
}

// Do makes one of the requests without a body: pin, unpin, stop or prewarm. into
// gets the answer, if there is one; nil: nobody.
func (c *Client) Do(ctx context.Context, id, what string, into any) error {
	return c.ask(ctx, http.MethodPost, tool(id, what), into)
}

// Stream makes a run and calls emit with each event. The end of ctx cancels the
// run; its result is then not known.
func (c *Client) Stream(ctx context.Context, id string, r Request, emit func(messages.ToolEvent) error) (messages.ToolResult, error) {
	var result messages.ToolResult
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := c.send(ctx, http.MethodPost, tool(id, "stream"), r)
	if err != nil {
		return result, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return result, refusal(resp)
	}
	for events := sse.NewReader(resp.Body, maxEvent); ; {
		got, err := events.Next()
		if err != nil {
			return result, fmt.Errorf("read the stream of %s: %w", c.record.URL, err)
		}
		switch got.Name {
		case "output":
			var e messages.ToolEvent
			if err := json.Unmarshal([]byte(got.Data), &e); err != nil {
				return result, fmt.Errorf("read the stream of %s: %w", c.record.URL, err)
			}
			if err := emit(e); err != nil {
				return result, err
			}
		case "error":
			return result, errors.New("the server ended during the run")
		case "done":
			return result, json.Unmarshal([]byte(got.Data), &result)
		}
	}
}

// maxEvent bounds one event, in bytes: the last has all outputs of a run.
const maxEvent = 256 << 20

func tool(id, what string) string { return "/api/tools/" + url.PathEscape(id) + "/" + what }

func (c *Client) get(ctx context.Context, path string, into any) error {
	return c.ask(ctx, http.MethodGet, path, into)
}

func (c *Client) ask(ctx context.Context, method, path string, into any) error {
	resp, err := c.send(ctx, method, path, nil)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= 300 {
		return refusal(resp)
	}
	if into == nil || resp.StatusCode == http.StatusNoContent {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return fmt.Errorf("read the answer of %s: %w", c.record.URL, err)
	}
	return nil
}

func (c *Client) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var reader io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("ask %s: %w", c.record.URL, err)
		}
		reader = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.record.URL+path, reader)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.record.URL, err)
	}
	req.Header.Set("Authorization", "Bearer "+c.record.Token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the server: %w", err)
	}
	return resp, nil
}

// refusal is the error of an answer.
func refusal(resp *http.Response) error {
	data, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	var told struct {
		Error httpserver.Problem `json:"error"`
	}
	if err != nil || json.Unmarshal(data, &told) != nil || told.Error.Message == "" {
		return fmt.Errorf("the server answered with %s", resp.Status)
	}
	return &messages.ToolError{Kind: messages.ToolErrorKind(told.Error.Code), Message: told.Error.Message, Hint: told.Error.Hint}
}
