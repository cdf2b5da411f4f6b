package gateway

import (
	"errors"
	"maps"
	"slices"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// errNoRoom is why idle kernels are ended for a start that the machine had no room for.
var errNoRoom = errors.New("the machine had no descriptors or processes left, or its gateway no place")

// roomEach is how many idle kernels are ended for each start that had no room: a start takes
// more for a moment than one kernel gives back, and of thousands it may be the last one for
// which there is none.
const roomEach = 8

// makeRoom ends idle kernels, those first that were used longest ago, when one could not
// start because the machine has no descriptors or processes left, and tries once more when
// they are gone: until then they have given nothing back. False: that is not the reason, or
// it was tried already.
func (h *handler) makeRoom(s *supervisor.Supervisor, c *call, why *supervisor.ServiceError) bool {
	if c.again || !errors.Is(why, supervisor.ErrStartFailed) || !h.o.Exhausted(why.Exit.Err) {
		return false
	}
	c.again, c.room = true, map[string]bool{}
	var idle []strategy.ChildView
	for child := range s.Children() {
		switch {
		case child.Kind != KindKernel || child.Pinned:
		case child.Evictable():
			idle = append(idle, child)
		case child.State == messages.ChildStopping: // for another call that found no room, say
			c.room[child.Key] = true
		}
	}
	slices.SortFunc(idle, func(a, b strategy.ChildView) int { return a.LastDone.Compare(b.LastDone) })
	idle = idle[:min(len(idle), max(0, roomEach*(1+len(h.roomless))-len(c.room)))]
	for _, child := range idle {
		c.room[child.Key] = true
	}
	h.roomless = append(h.roomless, c)
	c.waits.moved(messages.ReachPlace, s.Now())
	for _, child := range idle {
		s.End(child.Key, supervisor.Exit{Kind: messages.ExitEvicted, Err: errNoRoom})
	}
	h.tryAgain(s, "")
	return true
}

// behind has a call wait with an earlier one of its session that waits for the end of
// kernels, and reports whether there is one.
func (h *handler) behind(c *call) bool {
	for _, o := range h.roomless {
		if o.child == c.child {
			c.room = maps.Clone(o.room)
			h.roomless = append(h.roomless, c)
			return true
		}
	}
	return false
}

// tryAgain submits the calls once more that wait for the end of kernels, when gone was the
// last of them.
func (h *handler) tryAgain(s *supervisor.Supervisor, gone string) {
	h.roomless = slices.DeleteFunc(h.roomless, func(c *call) bool {
		if delete(c.room, gone); len(c.room) > 0 {
			return false
		}
		s.Submit(c.child, c.work)
		return true
	})
}

// leaveRoom answers a call that is to end early while it waits for the end of kernels.
func (h *handler) leaveRoom(s *supervisor.Supervisor, c *call) bool {
	i := slices.Index(h.roomless, c)
	if i < 0 {
		return false
	}
	h.roomless = slices.Delete(h.roomless, i, i+1)
	h.answer(c, h.withdrawn(s, c))
	return true
}

// closeRoom gives up the calls of a child that wait for the end of kernels, or all of them
// with child "": their session is closed, or no kernel will be started.
func (h *handler) closeRoom(child string, kind error, exit supervisor.Exit) {
	var over []*call
	h.roomless = slices.DeleteFunc(h.roomless, func(c *call) bool {
		if child != "" && c.child != child {
			return false
		}
		over = append(over, c)
		return true
	})
	for _, c := range over {
		h.answer(c, h.unserved(c, &supervisor.ServiceError{Key: c.child, Kind: kind, Exit: exit}))
	}
}
