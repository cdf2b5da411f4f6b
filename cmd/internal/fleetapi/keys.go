package fleetapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/coppice-run/coppice/cmd/internal/fleetapi/about"
	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/internal/pause"
	"github.com/coppice-run/coppice/messages"
)

// entry is a key that this node owns, or is asked for. The node's lock guards its fields.
type entry struct {
	key messages.SessionKey
	// turn is taken by who claims or releases it.
	turn chan struct{}
	// users counts who holds on to the entry.
	users int
	own   *fleet.Ownership
	// told is the ownership of which an execution that has its place tells what was lost
	// before.
	told *fleet.Ownership
	// dropped is the ownership in which what was kept of the session was dropped.
	dropped *fleet.Ownership
	// why is the reason for which the last kernel of the session ended; "": it is not known,
	// or was no end in order.
	why string
	// giving says that the claim is given up, and that the directory is being told.
	giving bool
	// active counts what needs the claim, and uses grows with each.
	active int
	uses   uint64
}

// claim is a hold on a key that this node owns: it is not released before free is called,
// once.
type claim struct {
	n    *Node
	e    *entry
	own  *fleet.Ownership
	life context.Context
}

// take claims a key, unless it is this node's already.
func (n *Node) take(ctx context.Context, key messages.SessionKey) (*claim, error) {
	m, life := n.now()
	if m == nil {
		return nil, fleet.ErrSuspended
	}
	e := n.hold(key)
	defer n.letGo(e)
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("claim %s: %w", key, ctx.Err())
	}
	defer func() { <-e.turn }()
	own, err := m.Claim(ctx, key.ID())
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.member != m {
		return nil, fleet.ErrSuspended // the life ended meanwhile
	}
	if e.own != own {
		e.own = own
		n.counts.epochs.Inc()
	}
	return n.usedLocked(life, e, own), nil
}

// adopt claims what a request has made besides, which nobody has asked for yet. What has a name
// that is another node's is ended.
func (n *Node) adopt(ctx context.Context, t about.Target, answer []byte) error {
	made, err := t.Made(answer)
	if err != nil {
		return err
	}
	for i, key := range made {
		c, err := n.take(ctx, key)
		if err == nil {
			if n.o.Records != nil { // of a session that had the name before
				n.o.Records.drop(ctx, n, key.ID(), c.own)
			}
			c.free()
			continue
		}
		for _, key := range made[i:] {
			err = errors.Join(err, n.o.Sessions.End(context.WithoutCancel(ctx), key))
		}
		if owned, ok := errors.AsType[*fleet.OwnedError](err); ok {
			return Refusal(http.StatusConflict, "conflict", "there is a session "+key.String()+" at node "+owned.Node, "name the copies otherwise", 0)
		}
		return err
	}
	return nil
}

// usedLocked notes that something needs a claim. n.mu is held.
func (n *Node) usedLocked(life context.Context, e *entry, own *fleet.Ownership) *claim {
	e.users++
	e.active++
	e.uses++
	return &claim{n: n, e: e, own: own, life: life}
}

// again is another hold on the same claim.
func (c *claim) again() *claim {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	return c.n.usedLocked(c.life, c.e, c.own)
}

// free ends the hold.
func (c *claim) free() {
	c.n.mu.Lock()
	c.e.active--
	c.n.mu.Unlock()
	c.n.letGo(c.e)
	nudge(c.n.sweep)
}

// hold returns the entry of a key, for as long as it is not let go.
func (n *Node) hold(key messages.SessionKey) *entry {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.keys[key.ID()]
	if e == nil {
		e = &entry{key: key, turn: make(chan struct{}, 1)}
		n.keys[key.ID()] = e
	}
	e.users++
	return e
}

func (n *Node) letGo(e *entry) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if e.users--; e.users == 0 && e.own == nil {
		delete(n.keys, e.key.ID())
	}
}

// owned is how many keys this node has.
func (n *Node) owned() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	owned := 0
	for _, e := range n.keys {
		if e.own != nil {
			owned++
		}
	}
	return owned
}

// active is how much needs a claim now.
func (n *Node) active() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	active := 0
	for _, e := range n.keys {
		active += e.active
	}
	return active
}

// epochOf is the epoch in which this node owns a key, 0 when it does not.
func (n *Node) epochOf(key messages.SessionKey) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if e := n.keys[key.ID()]; e != nil && e.own != nil {
		return e.own.Epoch()
	}
	return 0
}

// sweepPause is the least between two looks for claims to release.
const sweepPause = 100 * time.Millisecond

// sweeping releases claims whose session has ended, until ctx ends.
func (n *Node) sweeping(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.sweep:
		}
		// Each change of the tree nudges: many of them are looked at together.
		if wait := sweepPause; !pause.Wait(ctx, &wait) {
			return
		}
		for _, e := range n.idle(ctx) {
			if err := n.release(ctx, e.entry, e.uses, true); err != nil && ctx.Err() == nil {
				// The member writes it when the key is claimed again, or its life ends.
				n.o.Logger.Info("the release of a session was not acknowledged", "session", e.key.String(), "error", err)
			}
		}
	}
}

// unused is an entry that nothing needed when it had been used so often.
type unused struct {
	*entry
	uses uint64
}

// changed hears that something of the sessions has changed, and why one has ended.
func (n *Node) changed(ended messages.SessionKey, why string) {
	n.mu.Lock()
	if e := n.keys[ended.ID()]; e != nil {
		e.why = why
	}
	n.mu.Unlock()
	nudge(n.sweep)
}

// idle lists the keys that nothing needs and that have no kernel. Each use is counted
// before the kernels are looked at: one that comes meanwhile makes the entry another.
func (n *Node) idle(ctx context.Context) []unused {
	n.mu.Lock()
	found := map[string]unused{}
	for id, e := range n.keys {
		if e.own != nil && e.active == 0 {
			found[id] = unused{e, e.uses}
		}
	}
	n.mu.Unlock()
	if len(found) == 0 {
		return nil
	}
	live, err := n.o.Sessions.Live(ctx)
	if err != nil {
		return nil // the host ends
	}
	for _, key := range live {
		delete(found, key.ID())
	}
	list := make([]unused, 0, len(found))
	for _, e := range found {
		list = append(list, e)
	}
	return list
}

// release ends the claim of an entry, unless it was used since. over says that its session
// has come to its end by itself.
func (n *Node) release(ctx context.Context, e *entry, uses uint64, over bool) error {
	ctx, cancel := context.WithTimeout(ctx, n.o.TTL/2)
	defer cancel()
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-e.turn }()
	n.mu.Lock()
	if e.own == nil || e.active > 0 || e.uses != uses {
		n.mu.Unlock()
		return nil
	}
	own, why := e.own, e.why
	e.own, e.why, e.giving = nil, "", true
	e.users++
	n.mu.Unlock()
	defer n.letGo(e)
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		e.giving = false
	}()
	if over {
		return own.End(ctx, why)
	}
	return own.Release(ctx)
}

// turn is an execution's: [httpapi.Turn].
type turn struct {
	*fleet.Turn
	c    *claim
	news string
}

// News is for the first executions of an epoch, those that began before one of them had its
// place, and for who goes on from an earlier one.
func (t turn) News() string { return t.news }

// Begun has later executions not tell the news again.
func (t turn) Begun() {
	if t.news == "" {
		return
	}
	t.c.n.mu.Lock()
	defer t.c.n.mu.Unlock()
	t.c.e.told = t.c.own
}

// news is what an execution of a claim has to say first: until one has said it, and to whom
// has named an epoch before.
func (c *claim) news(behind bool) string {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.own.Used() == 0 || c.e.told == c.own && !behind {
		return ""
	}
	left := c.leftLocked()
	if left.kept {
		return fmt.Sprintf("the session goes on in epoch %d, with what was kept of it on disk", c.own.Epoch())
	}
	news := fmt.Sprintf("the session begins anew, in epoch %d: what it had in memory in epoch %d is gone", c.own.Epoch(), c.own.Used())
	if why := c.own.Past().Why; why != "" {
		return news + ": " + why
	}
	return news + ", with its node or its end" + left.older()
}

// remains are what is left of what a session had in an earlier epoch.
type remains struct {
	// kept says that it has, or has had in this epoch, what was kept of it.
	kept bool
	// before is when it was kept last, if it has gone on since, and is lost.
	before time.Time
}

// older is a clause about what was kept, and is not restored as it is older than what the session
// has told; "" where there is none.
func (r remains) older() string {
	if r.before.IsZero() {
		return ""
	}
	return "; it was last kept on disk at " + r.before.Format(time.RFC3339) + " and has gone on since, so what was kept is out of date, and is not restored"
}

// left says what is left of what the session had before this epoch.
func (c *claim) left() remains {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	return c.leftLocked()
}

func (c *claim) leftLocked() remains {
	past := c.own.Past()
	return remains{kept: past.Kept != "" && c.e.dropped != c.own, before: past.Before}
}

func (t turn) Life() context.Context { return t.c.life }

func (t turn) End() { t.c.free() }

// Answer counts what is lost.
func (t turn) Answer(ctx context.Context) error {
	err := t.Turn.Answer(ctx)
	if errors.Is(err, fleet.ErrLost) {
		t.c.n.counts.lost.Inc()
	}
	return err
}
