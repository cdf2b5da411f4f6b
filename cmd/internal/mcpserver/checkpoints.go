package mcpserver

import (
	"slices"
	"sync"

	"github.com/coppice-run/coppice"
)

// How many states are kept, of one session and of all; the oldest is dropped for one
// more. The host keeps no more than coppice.MaxCheckpoints.
const (
	maxOfOne = 8
	maxOfAll = coppice.MaxCheckpoints / 2
)

// checkpoints are the states that models have had kept. Each belongs to the session that
// it is of, so that no client reaches that of another.
type checkpoints struct {
	mu   sync.Mutex
	kept []keptState // the oldest first; guarded by mu
}

// keptState is one.
type keptState struct {
	*coppice.Checkpoint
	id      string
	session string // as it is called in the host
}

// add keeps one more, and drops what is too many.
func (c *checkpoints) add(k keptState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := 0
	for _, one := range c.kept {
		if one.session == k.session {
			own++
		}
	}
	drop := func(one keptState) bool {
		most := own >= maxOfOne && one.session == k.session || own < maxOfOne && len(c.kept) >= maxOfAll
		if most {
			one.Drop()
		}
		return most
	}
	if i := slices.IndexFunc(c.kept, drop); i >= 0 {
		c.kept = slices.Delete(c.kept, i, i+1)
	}
	c.kept = append(c.kept, k)
}

// find returns that of a session.
func (c *checkpoints) find(id, session string) (*coppice.Checkpoint, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.kept, func(k keptState) bool { return k.id == id && k.session == session })
	if i < 0 {
		return nil, false
	}
	return c.kept[i].Checkpoint, true
}

// forget drops those of a session that has ended.
func (c *checkpoints) forget(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = slices.DeleteFunc(c.kept, func(k keptState) bool {
		if k.session == session {
			k.Drop()
		}
		return k.session == session
	})
}
