package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/coppice-run/coppice/messages"
)

// Checkpoint is a state of a session that the server keeps.
type Checkpoint struct {
	ID string `json:"id"`
	// Session, Cwd and Workspace are the session whose state it is.
	Session   string    `json:"session"`
	Cwd       string    `json:"cwd"`
	Workspace string    `json:"workspace,omitempty"`
	Made      time.Time `json:"made"`
	// Memory is what is the checkpoint's alone by now, and Refers all that it refers to,
	// in bytes; 0 of both: it is gone, or the system does not tell.
	Memory int64 `json:"memory,omitempty"`
	Refers int64 `json:"refers,omitempty"`
	// Node is the node of a fleet that has it, "" in none.
	Node string `json:"node,omitempty"`
}

// Checkpoint keeps a session's state as it is now, for Rewind. It ends with DropCheckpoint,
// and with the server. An error with code fork_refused says why it cannot be kept.
func (c *Client) Checkpoint(ctx context.Context, key messages.SessionKey) (Checkpoint, error) {
	path, query, err := session(key, "/checkpoint")
	if err != nil {
		return Checkpoint{}, err
	}
	var made Checkpoint
	err = c.once(ctx, http.MethodPost, path, query, nil, &made)
	return made, err
}

// Checkpoints lists those that the server keeps, the oldest first.
func (c *Client) Checkpoints(ctx context.Context) ([]Checkpoint, error) {
	var list struct {
		Checkpoints []Checkpoint `json:"checkpoints"`
	}
	err := c.ask(ctx, http.MethodGet, "api/checkpoints", nil, nil, &list)
	return list.Checkpoints, err
}

// Rewind puts a session back to the state of a checkpoint, which stays. The session may be
// another one with the same working directory. Files are not put back.
func (c *Client) Rewind(ctx context.Context, key messages.SessionKey, checkpoint string) error {
	path, query, err := session(key, "/rewind")
	if err != nil {
		return err
	}
	return c.once(ctx, http.MethodPost, path, query, map[string]string{"checkpoint": checkpoint}, nil)
}

// DropCheckpoint ends a checkpoint.
func (c *Client) DropCheckpoint(ctx context.Context, id string) error {
	return c.once(ctx, http.MethodDelete, "api/checkpoints/"+url.PathEscape(id), nil, nil, nil)
}
