package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/coppice-run/coppice/messages"
)

// Health asks how the server is.
func (c *Client) Health(ctx context.Context) (Health, error) {
	var h Health
	err := c.ask(ctx, http.MethodGet, "api/health", nil, nil, &h)
	return h, err
}

// Ready asks whether the server takes requests that begin something: one that is about to end
// does not, and neither does a node of a fleet that is draining or may not act at the moment.
// nil says that it does.
func (c *Client) Ready(ctx context.Context) error {
	var told struct{ OK bool }
	return c.ask(ctx, http.MethodGet, "readyz", nil, nil, &told)
}

// Serves asks whether there is anything at a path of the server, such as "e2b/sandboxes".
func (c *Client) Serves(ctx context.Context, path string) (bool, error) {
	var told json.RawMessage
	err := c.ask(ctx, http.MethodGet, path, nil, nil, &told)
	if e, ok := errors.AsType[*Error](err); ok && e.Status == http.StatusNotFound {
		return false, nil
	}
	return err == nil, err
}

// Drain asks a server that is a node of a fleet to begin nothing more, and to end once what
// runs at it has ended. It returns the node's ID, and does not wait. Another server answers
// with the code "not_found".
func (c *Client) Drain(ctx context.Context) (node string, err error) {
	var told struct{ Node string }
	err = c.once(ctx, http.MethodPost, "api/fleet/drain", nil, nil, &told)
	return told.Node, err
}

// Tree returns the supervision tree as it is now.
func (c *Client) Tree(ctx context.Context) (messages.Node, error) {
	var n messages.Node
	err := c.ask(ctx, http.MethodGet, "api/tree", nil, nil, &n)
	return n, err
}

// Sessions lists the sessions that have a kernel.
func (c *Client) Sessions(ctx context.Context) ([]Session, error) {
	var list struct {
		Sessions []Session `json:"sessions"`
	}
	err := c.ask(ctx, http.MethodGet, "api/sessions", nil, nil, &list)
	return list.Sessions, err
}

// AllSessions lists the sessions that have a kernel, and after them those that are kept on
// disk, with the state [StateHibernated].
func (c *Client) AllSessions(ctx context.Context) ([]Session, error) {
	var list struct {
		Sessions []Session `json:"sessions"`
	}
	err := c.ask(ctx, http.MethodGet, "api/sessions", url.Values{"hibernated": {"true"}}, nil, &list)
	return list.Sessions, err
}

// Hibernate keeps what the session has in memory on disk and ends its kernel; its next
// call restores it, also after the server has ended and another one runs. For a session
// that is on disk already it says what is kept. An error with code hibernate_refused says
// why the session cannot be kept; it goes on then.
func (c *Client) Hibernate(ctx context.Context, key messages.SessionKey) (Hibernated, error) {
	path, query, err := session(key, "/hibernate")
	if err != nil {
		return Hibernated{}, err
	}
	var h Hibernated
	err = c.ask(ctx, http.MethodPost, path, query, nil, &h)
	return h, err
}

// Open gives a session a kernel, if it has none.
func (c *Client) Open(ctx context.Context, o Open) (Session, error) {
	var s Session
	err := c.ask(ctx, http.MethodPost, "api/sessions", nil, o, &s)
	return s, err
}

// Session describes one session. An error with code not_found says that it has no
// kernel and is not kept on disk.
func (c *Client) Session(ctx context.Context, key messages.SessionKey) (Session, error) {
	path, query, err := session(key, "")
	if err != nil {
		return Session{}, err
	}
	var s Session
	err = c.ask(ctx, http.MethodGet, path, query, nil, &s)
	return s, err
}

// CloseSession ends a session and its kernel. A running call is cancelled, waiting
// ones are not started.
func (c *Client) CloseSession(ctx context.Context, key messages.SessionKey) error {
	path, query, err := session(key, "")
	if err != nil {
		return err
	}
	err = c.once(ctx, http.MethodDelete, path, query, nil, nil)
	if told, ok := errors.AsType[*Error](err); err == nil || ok && told.Status == http.StatusNotFound {
		ended := sessionOf(key.Session, key.Cwd, key.Workspace, key.Kernel)
		c.epochs.forget(ended)
		c.sessions.forget(ended)
	}
	return err
}

// Interrupt stops what runs in the session, which is kept.
func (c *Client) Interrupt(ctx context.Context, key messages.SessionKey) error {
	path, query, err := session(key, "/interrupt")
	if err != nil {
		return err
	}
	return c.once(ctx, http.MethodPost, path, query, nil, nil)
}

// Reset ends the session's kernel; its next call gets a new one.
func (c *Client) Reset(ctx context.Context, key messages.SessionKey) error {
	path, query, err := session(key, "/reset")
	if err != nil {
		return err
	}
	if err := c.once(ctx, http.MethodPost, path, query, nil, nil); err != nil {
		return err
	}
	c.sessions.forget(sessionOf(key.Session, key.Cwd, key.Workspace, key.Kernel))
	return nil
}

// Pin exempts the session from eviction, or ends the exemption.
func (c *Client) Pin(ctx context.Context, key messages.SessionKey, pinned bool) error {
	action := "/pin"
	if !pinned {
		action = "/unpin"
	}
	path, query, err := session(key, action)
	if err != nil {
		return err
	}
	return c.ask(ctx, http.MethodPost, path, query, nil, nil)
}

// Fork copies the session's interpreter n times, and returns the copies. An error
// with code fork_refused says why it cannot be copied.
func (c *Client) Fork(ctx context.Context, key messages.SessionKey, n int, owner string) ([]messages.SessionKey, error) {
	path, query, err := session(key, "/fork")
	if err != nil {
		return nil, err
	}
	var made struct {
		Sessions []messages.SessionKey `json:"sessions"`
	}
	in := struct {
		Copies int    `json:"copies"`
		Owner  string `json:"owner,omitempty"`
	}{n, owner}
	err = c.once(ctx, http.MethodPost, path, query, in, &made)
	return made.Sessions, err
}

// Complete returns what could stand at a cursor, a number of characters from the beginning
// of the code; so is Start of the answer. The session's kernel is asked if it is idle: one
// that is busy, or not there, is an [Error] of status 409 or 404.
func (c *Client) Complete(ctx context.Context, key messages.SessionKey, code string, cursor int) (matches []string, start int, err error) {
	var told struct {
		Matches []string `json:"matches"`
		Start   int      `json:"start"`
	}
	err = c.look(ctx, key, "/complete", code, cursor, &told)
	return told.Matches, told.Start, err
}

// Inspect returns the signature and the document of the name at a cursor, "" when it stands
// for nothing. It asks as [Client.Complete] does.
func (c *Client) Inspect(ctx context.Context, key messages.SessionKey, code string, cursor int) (string, error) {
	var told struct {
		Text string `json:"text"`
	}
	err := c.look(ctx, key, "/inspect", code, cursor, &told)
	return told.Text, err
}

func (c *Client) look(ctx context.Context, key messages.SessionKey, what, code string, cursor int, to any) error {
	path, query, err := session(key, what)
	if err != nil {
		return err
	}
	return c.ask(ctx, http.MethodPost, path, query, map[string]any{"code": code, "cursor": cursor}, to)
}

// Notebook returns what a session executed, as far as the server has it, as a notebook of
// nbformat 4.5.
func (c *Client) Notebook(ctx context.Context, key messages.SessionKey) ([]byte, error) {
	path, query, err := session(key, "/notebook")
	if err != nil {
		return nil, err
	}
	return c.answer(ctx, http.MethodGet, path, query, nil)
}
