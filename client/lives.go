package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
)

// lives is which life of a server has started a process, by its path: with that life the process
// is gone. The zero value is empty.
type lives struct {
	mu sync.Mutex
	of map[string]string // guarded by mu
}

// mostLives bounds what is remembered. Of what is forgotten it is only not found.
const mostLives = 1 << 16

// lifeOf is the life of the server that has answered; "": it does not say, or is a fleet, which
// has nodes in place of lives.
func lifeOf(header http.Header) string {
	if header.Get(headerNode) != "" {
		return ""
	}
	return header.Get(headerServer)
}

func (l *lives) started(path string, header http.Header) {
	life := lifeOf(header)
	if life == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil || len(l.of) >= mostLives {
		l.of = map[string]string{}
	}
	l.of[path] = life
}

// lost is what it means that a process is refused with err: a server that was started again does
// not know it.
func (c *Client) lost(ctx context.Context, path string, err error) error {
	told, ok := errors.AsType[*Error](err)
	if !ok || told.Status != http.StatusNotFound || told.Code != "not_found" {
		return err
	}
	c.lives.mu.Lock()
	was := c.lives.of[path]
	c.lives.mu.Unlock()
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
