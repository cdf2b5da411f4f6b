package fleetapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/coppice-run/coppice/cmd/internal/fleetapi/about"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/internal/pause"
	"github.com/coppice-run/coppice/messages"
)

// drainPause is the longest between two looks at what still runs.
const drainPause = 100 * time.Millisecond

// linger is how long a node in which nothing runs any more stays there for those who have a
// result at it and have not asked for it yet.
const linger = 10 * time.Second

// Drain brings what the node serves to its end. From its call on the node begins nothing,
// and says so; it ends each session in which nothing runs and gives its key up, so that the
// next call can begin at another node at once. It returns when nothing runs any more, and
// when the results of what has ended meanwhile were asked for or were not for a while. The
// error says how much still ran when ctx ended. In each case Close follows.
func (n *Node) Drain(ctx context.Context) error {
	began := time.Now()
	n.mu.Lock()
	n.draining = true
	m := n.member
	n.mu.Unlock()
	n.o.Logger.Info("the node is draining: it begins nothing more", "running", n.left())
	if m != nil {
		said, cancel := context.WithTimeout(ctx, n.o.TTL/2)
		if err := m.Drain(said); err != nil {
			n.o.Logger.Warn("the fleet does not know that the node is draining", "node", m.ID(), "error", err)
		}
		cancel()
	}
	for kept := map[*fleet.Ownership]bool{}; ; {
		ending := n.giveUp(ctx, kept)
		left := n.left()
		if left+ending == 0 {
			break
		}
		if wait := drainPause; !pause.Wait(ctx, &wait) {
			if left == 0 {
				break // who has the keys next finds what is kept
			}
			return fmt.Errorf("drain the node: %d calls still run: %w", left, context.Cause(ctx))
		}
	}
	for end := time.Now().Add(linger); time.Now().Before(end) && n.o.Untold != nil && n.o.Untold(began) > 0; {
		if wait := drainPause; !pause.Wait(ctx, &wait) {
			break
		}
	}
	return nil
}

// left is how much still runs: what has a claim, and what has none, as in workspaces.
func (n *Node) left() int {
	left := n.active()
	if n.o.Running != nil {
		left = max(left, n.o.Running())
	}
	return left
}

// WhyKept is the reason for which a session has ended that its next call restores, a clause.
const WhyKept = "it is kept on disk"

// giveUp ends the sessions that nothing runs in, on disk where they can be kept, and gives their
// keys up. Nothing begins in them meanwhile: what had come before the node was draining is counted.
// kept are those that are on disk, and what it returns is how many of them are still to be given up.
func (n *Node) giveUp(ctx context.Context, kept map[*fleet.Ownership]bool) (left int) {
	type owned struct {
		unused
		own *fleet.Ownership
	}
	n.mu.Lock()
	var idle []owned
	for _, e := range n.keys {
		switch {
		case about.IsWorkspace(e.key): // it ends with the node: what runs in it is not known here
		case e.own != nil && e.active == 0:
			idle = append(idle, owned{unused{e, e.uses}, e.own})
		case e.own != nil && kept[e.own], e.giving:
			left++
		}
	}
	n.mu.Unlock()
	if len(idle) == 0 {
		return left
	}
	live, err := n.o.Sessions.Live(ctx)
	if err != nil {
		return 0 // the host ends
	}
	has := map[string]bool{}
	for _, key := range live {
		has[key.ID()] = true
	}
	for _, e := range idle {
		lives := has[e.key.ID()]
		if lives && !kept[e.own] {
			err = n.putAway(ctx, e.key)
			lives = err != nil
		}
		if !lives && e.own.Kept() != "" { // also one that was put away before
			kept[e.own] = true
		}
		if kept[e.own] {
			n.changed(e.key, WhyKept)
		}
		if !lives {
			err = n.release(ctx, e.entry, e.uses, kept[e.own])
		}
		if err != nil {
			n.o.Logger.Info("a session was not given up", "session", e.key.String(), "error", err)
			err = nil
		}
		if kept[e.own] && n.owns(e.entry, e.own) { // its kernel takes a moment to end, or somebody has asked for it
			left++
		}
	}
	return left
}

// owns reports whether an ownership of a key has not been given up.
func (n *Node) owns(e *entry, own *fleet.Ownership) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return e.own == own
}

// putAway keeps a session on disk, and ends one that cannot be. One whose kernel is not there for
// that is left as it is: it may be ending by itself, and be written down for that.
func (n *Node) putAway(ctx context.Context, key messages.SessionKey) error {
	if n.o.Hibernate == nil {
		return n.o.Sessions.End(ctx, key)
	}
	err := n.o.Hibernate(ctx, key)
	refused, is := errors.AsType[*messages.HibernateRefused](err)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil, is && (refused.Reason == messages.HibernateNoKernel || refused.Reason == messages.HibernateBusy):
		return err // the end of the host tries again
	}
	n.o.Logger.Info("a session is ended, and not kept on disk", "session", key.String(), "error", err)
	return n.o.Sessions.End(ctx, key)
}

// isDraining reports whether the node begins nothing more.
func (n *Node) isDraining() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.draining
}

// leaving is the answer of a node that is draining to who wants something to begin that could
// be elsewhere.
func (n *Node) leaving() *httpserver.Refusal {
	hint := "ask another node of the fleet: this one knows of none that is up"
	if p := n.another(); p != nil {
		hint = "ask node " + p.ID + " at " + p.URL
	}
	return Refusal(http.StatusServiceUnavailable, "draining", "this node is draining: nothing was begun", hint, n.o.TTL/4)
}

// ending is the answer to who wants something to begin in a session that still has its last
// calls run.
func (n *Node) ending() *httpserver.Refusal {
	return Refusal(http.StatusServiceUnavailable, "draining", "the session's node is draining: nothing was begun, and what runs in the session comes to its end",
		"send it again then: the session begins anew at another node", n.o.TTL/4)
}

// another is the node that is up and has least to do, nil when there is none.
func (n *Node) another() *peer {
	var best *peer
	for _, p := range n.others() {
		if p.State == fleet.Up && p.takes() && (best == nil || p.Load.Sessions < best.Load.Sessions) {
			best = p
		}
	}
	return best
}

// drainRoute asks the server of a node to drain it and to end.
const drainRoute = "POST /api/fleet/drain"

// drainMount is the part of the server that is asked to.
func (n *Node) drainMount() httpserver.Mount {
	return httpserver.Mount{Pattern: drainRoute, Scope: httpserver.Admin, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n.o.Leave()
		httpserver.JSON(w, http.StatusAccepted, map[string]string{"node": n.ID()})
	})}
}
