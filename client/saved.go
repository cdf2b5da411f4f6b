package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/coppice-run/coppice/messages"
)

// SavedCheckpoint is what was in a session's memory, kept on the server's disk under a name:
// each of its names is kept, lost or changed.
type SavedCheckpoint struct {
	Name string `json:"name"`
	// Session, Cwd and Workspace are the session whose state it is. It is for sessions of
	// that workspace, or of none.
	Session   string `json:"session"`
	Cwd       string `json:"cwd"`
	Workspace string `json:"workspace,omitempty"`
	// Owners may have it; Open: everyone may.
	Owners []string  `json:"owners,omitempty"`
	Open   bool      `json:"open,omitempty"`
	Made   time.Time `json:"made"`
	// Expires is until when it is kept; zero: until it is dropped.
	Expires time.Time `json:"expires,omitzero"`
	// Bytes is how much it is, Python the version of the interpreter that it is of.
	Bytes  int64  `json:"bytes"`
	Python string `json:"python"`
	messages.Memory
	// Node is the node of a fleet that has it, "" in none.
	Node string `json:"node,omitempty"`
}

// SaveCheckpoint asks for a checkpoint on disk.
type SaveCheckpoint struct {
	// Name has letters, digits, dots, dashes and underscores.
	Name string `json:"name"`
	// Owner is for whom: one who may not have the checkpoint of that name does not replace
	// it. "": for no one in particular.
	Owner string `json:"owner,omitempty"`
	// Lossy keeps what can be kept, whatever the server's policy is.
	Lossy bool `json:"lossy,omitempty"`
	// Replace allows that there is one of that name.
	Replace bool `json:"replace,omitempty"`
}

// RestoreCheckpoint asks that a session go on from a checkpoint on disk.
type RestoreCheckpoint struct {
	Name string `json:"name"`
	// Owner is for whom. "": for no one in particular, or for the workspace's owner.
	Owner string `json:"owner,omitempty"`
}

// SaveCheckpoint keeps what the session has in memory on disk under a name, and the session
// goes on. It stays until DropSavedCheckpoint, or until it has expired, also when the server has ended and another one runs. An
// error with code hibernate_refused says why it was not made; its hint is exists when there
// is one of that name, and full when there are as many as the server keeps.
func (c *Client) SaveCheckpoint(ctx context.Context, key messages.SessionKey, o SaveCheckpoint) (Hibernated, error) {
	path, query, err := session(key, "/save")
	if err != nil {
		return Hibernated{}, err
	}
	var h Hibernated
	err = c.once(ctx, http.MethodPost, path, query, o, &h)
	return h, err
}

// RestoreCheckpoint puts a session, which need not be the one that it was made of, back to a
// checkpoint on disk, which stays. The session's next result has the state restored, too. An error with
// code restore_refused says why it was not done; its hint is owner, python, broken, busy or
// another [messages.RestoreReason].
func (c *Client) RestoreCheckpoint(ctx context.Context, key messages.SessionKey, o RestoreCheckpoint) (messages.Restored, error) {
	path, query, err := session(key, "/restore")
	if err != nil {
		return messages.Restored{}, err
	}
	var r messages.Restored
	err = c.once(ctx, http.MethodPost, path, query, o, &r)
	return r, err
}

// SavedCheckpoints lists those that are kept on the server's disk, by workspace and name.
func (c *Client) SavedCheckpoints(ctx context.Context) ([]SavedCheckpoint, error) {
	var list struct {
		Checkpoints []SavedCheckpoint `json:"checkpoints"`
	}
	err := c.ask(ctx, http.MethodGet, "api/saved-checkpoints", nil, nil, &list)
	return list.Checkpoints, err
}

// DropSavedCheckpoint drops one, for an owner; "": for no one in particular, who may drop any.
func (c *Client) DropSavedCheckpoint(ctx context.Context, key messages.CheckpointKey, owner string) error {
	query := url.Values{}
	if key.Workspace != "" {
		query.Set("workspace", key.Workspace)
	}
	if owner != "" {
		query.Set("owner", owner)
	}
	return c.once(ctx, http.MethodDelete, "api/saved-checkpoints/"+url.PathEscape(key.Name), query, nil, nil)
}
