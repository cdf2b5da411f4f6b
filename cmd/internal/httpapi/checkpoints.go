package httpapi

import (
	"fmt"
	"slices"
	"sync"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/workspace"
)

// checkpoints are the states of sessions that clients can name. The host bounds how many
// there may be.
type checkpoints struct {
	in *workspace.Set

	mu   sync.Mutex
	kept []checkpoint // as they were made; guarded by mu
	over bool         // guarded by mu
}

// checkpoint is one.
type checkpoint struct {
	*coppice.Checkpoint
	id string
}

func (c checkpoint) describe() client.Checkpoint {
	d := client.Checkpoint{ID: c.id, Session: c.Key.Session, Cwd: c.Key.Cwd, Workspace: c.Key.Workspace, Made: c.Made}
	d.Memory, d.Refers = c.Memory()
	return d
}

// prune drops those of workspaces that have ended: they count in how many the host keeps.
func (k *checkpoints) prune() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept = slices.DeleteFunc(k.kept, func(c checkpoint) bool {
		if c.Key.Workspace == "" {
			return false
		}
		_, err := k.in.Get(c.Key.Workspace)
		if err != nil {
			c.Drop()
		}
		return err != nil
	})
}

// add gives a checkpoint an id. After close it is dropped.
func (k *checkpoints) add(made *coppice.Checkpoint) (checkpoint, error) {
	c := checkpoint{made, messages.NewID()}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over {
		made.Drop()
		return c, coppice.ErrClosed
	}
	k.kept = append(k.kept, c)
	return c, nil
}

// list returns those that are kept.
func (k *checkpoints) list() []checkpoint {
	k.prune()
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.kept)
}

// unknownCheckpoint says that there is none of this id.
type unknownCheckpoint string

// Error names it.
func (id unknownCheckpoint) Error() string {
	return fmt.Sprintf("the server keeps no checkpoint %.80q", string(id))
}

// one returns a checkpoint. With drop it is forgotten.
func (k *checkpoints) one(id string, drop bool) (checkpoint, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.kept, func(c checkpoint) bool { return c.id == id })
	if i < 0 {
		return checkpoint{}, unknownCheckpoint(id)
	}
	c := k.kept[i]
	if drop {
		k.kept = slices.Delete(k.kept, i, i+1)
	}
	return c, nil
}

// close drops all.
func (k *checkpoints) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.kept {
		c.Drop()
	}
	k.kept, k.over = nil, true
}
