package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
)

// keptChanges is how many changes wait for those who come back, and are there to look back at.
const keptChanges = 8192

// keptNotable is how many changes that are notable are there to look back at when they are
// no longer among the newest: thousands of calls in a second leave those of a few seconds.
const keptNotable = 4096

// changes are the newest changes of a server, for any number of watchers. They
// are lossy: one that is too slow learns how many it missed.
type changes struct {
	mu   sync.Mutex
	ring []client.Change // guarded by mu; the change with number n is at (n-1) % keptChanges
	last uint64          // guarded by mu
	none uint64          // up to which they are those of an earlier server; guarded by mu
	bell chan struct{}   // closed and replaced at each change; guarded by mu

	notable []client.Change // guarded by mu; the one with number n among them is at n % keptNotable
	noted   uint64          // how many there were of them; guarded by mu
}

func newChanges() *changes {
	return &changes{ring: make([]client.Change, keptChanges), bell: make(chan struct{})}
}

// tree takes a change in the supervision tree. It does not block.
func (c *changes) tree(e messages.Lifecycle) {
	if data, err := messages.AppendLifecycle(nil, e); err == nil {
		c.add(client.Change{Type: "tree", Tree: data}, notable(e))
	}
}

// execution says that an execution began or ended.
func (c *changes) execution(x client.Execution) {
	c.add(client.Change{Type: "execution", Execution: &x}, x.Outcome != "" && x.Outcome != messages.OutcomeOK)
}

// notable says whether a change in the tree is one that a person looks for later: that an
// interpreter ended or was started again, and what was decided about it.
func notable(e messages.Lifecycle) bool {
	c, is := e.(messages.ChildChanged)
	return !is || c.Exit != nil || c.To == messages.ChildRestarting || c.From == messages.ChildRestarting
}

func (c *changes) add(change client.Change, keep bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	change.Seq, change.At = c.last, time.Now()
	c.ring[(c.last-1)%keptChanges] = change
	if keep {
		if len(c.notable) < keptNotable {
			c.notable = append(c.notable, change)
		} else {
			c.notable[c.noted%keptNotable] = change
		}
		c.noted++
	}
	close(c.bell)
	c.bell = make(chan struct{})
}

// since returns the changes after one, at least one unless there is none, and
// what tells of the next.
func (c *changes) since(after uint64) (list []client.Change, bell <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if oldest := c.forgotten(); after < oldest {
		missed := oldest - after
		after += missed
		list = append(list, client.Change{Seq: after, At: time.Now(), Type: "missed", Missed: missed})
	}
	for ; after < c.last; after++ {
		list = append(list, c.ring[after%keptChanges])
	}
	return list, c.bell
}

// forgotten is up to which number the changes are no longer here. c.mu is held.
func (c *changes) forgotten() uint64 {
	if c.last > keptChanges {
		return max(c.none, c.last-keptChanges)
	}
	return c.none
}

// from has the changes go on with the numbers of an earlier server, whose changes are not here.
func (c *changes) from(n uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last < n {
		c.last, c.none = n, n
	}
}

// newest is the number of the newest change.
func (c *changes) newest() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// watch streams the changes: from now on, or after the one that a reader names.
func (a *API) watch(w http.ResponseWriter, r *http.Request) {
	after, err := cursor(r)
	newest := a.changes.newest()
	if err == nil && after > newest {
		err = unfit{errAhead.Error(), "leave it out"}
	}
	if err != nil {
		a.problem(w, err)
		return
	}
	if r.Header.Get("Last-Event-ID") == "" && !r.URL.Query().Has("after") {
		after = newest
	}
	s := openStream(w)
	defer s.End()
	ctx, read := a.handing.Reading(r.Context())
	defer read()
	err = s.Start()
	for err == nil {
		list, bell := a.changes.since(after)
		for _, change := range list {
			var data []byte
			if data, err = json.Marshal(change); err == nil {
				err = s.event(change.Seq, data)
			}
			if err != nil {
				return // who has gone cannot be told
			}
			after = change.Seq
		}
		err = a.bell(ctx, bell, s.alive)
	}
}

// bell waits for it, and gives signs of life.
func (a *API) bell(ctx context.Context, bell <-chan struct{}, alive func() error) error {
	tick := time.NewTicker(a.o.KeepAlive)
	defer tick.Stop()
	for {
		select {
		case <-bell:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			if err := alive(); err != nil {
				return err
			}
		}
	}
}
