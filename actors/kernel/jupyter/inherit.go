package jupyter

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/estate"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/sharedgateway"
	"github.com/coppice-run/coppice/messages"
)

// heir is a session of an earlier host, with its last call, that was not started here.
type heir struct {
	claim *sharedgateway.Claim
	last  *estate.Running
}

// heirs are those of a backend. Any goroutine may call its methods.
type heirs struct {
	mu  sync.Mutex
	all map[messages.SessionKey]*heir // guarded by mu
}

// put has one wait for a start with its key.
func (h *heirs) put(key messages.SessionKey, one *heir) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = map[messages.SessionKey]*heir{}
	}
	h.all[key] = one
}

// claim returns what waits for a start with a key, nil for nothing.
func (h *heirs) claim(key messages.SessionKey) *heir {
	h.mu.Lock()
	defer h.mu.Unlock()
	one := h.all[key]
	delete(h.all, key)
	return one
}

// release leaves all that waits to another host.
func (h *heirs) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, one := range h.all {
		one.claim.Release()
	}
	clear(h.all)
}

// Why the kernel of a session is gone that an earlier host has left.
const (
	goneWithGateway = "the gateway that kept the session after the end of an earlier host has ended"
	goneMeanwhile   = "the session's kernel has ended after its host had"
)

// inherit claims the sessions in a journal whose last call an earlier host of a name has written
// down.
func (h *heirs) inherit(journal, name string, warn func(string, ...any)) []kernel.Inherited {
	var all []kernel.Inherited
	for _, c := range sharedgateway.Left(journal, name) {
		one, last, err := inherited(c)
		switch {
		case err != nil:
			warn("the last call of a session that an earlier host has left is not known", "session", c.Key().String(), "err", err)
			c.DropLog()
			c.Release()
		case last == nil:
			c.Release()
		case one.Lost != "": // the next start says so, too
			all = append(all, one)
			c.DropLog()
			c.Release()
		default:
			all = append(all, one)
			h.put(c.Key(), &heir{c, last})
		}
	}
	return all
}

// inherited reads what an earlier host has written down of a session. last is nil when that is nothing.
func inherited(c *sharedgateway.Claim) (one kernel.Inherited, last *estate.Running, err error) {
	e, _ := c.Entry()
	dir, name := c.Log()
	last, err = estate.Read(dir, name, e.Seal, nil)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return one, nil, nil
	case err != nil || last == nil:
		return one, nil, err
	case last.Exec.Key != c.Key():
		return one, nil, fmt.Errorf("it is noted as one of the session %s", last.Exec.Key)
	}
	one = kernel.Inherited{Key: c.Key(), Call: &last.Exec, Stop: last.Stop}
	if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
		one.Seen = info.ModTime()
	}
	switch {
	case process.Ended(e.Gateway):
		one.Lost = goneWithGateway
	case process.Ended(e.Process):
		one.Lost = goneMeanwhile
	}
	return one, last, nil
}

// disown gives up the call of a session that waits for a start with a key.
func (h *heirs) disown(key messages.SessionKey) {
	if one := h.claim(key); one != nil {
		one.claim.DropLog()
		one.claim.Release()
	}
}

// forget gives up a session: its gateway ends the kernel that no journal names any more.
func forget(c *sharedgateway.Claim) {
	_ = c.Forget() // what cannot be removed is there for another start, as before
	c.Release()
}
