package vitals

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
)

// story is what became of one session.
type story struct {
	key       messages.SessionKey
	moments   []client.Moment
	forgotten int
	touched   uint64
	began     time.Time // of a start that is not over
	// trouble is what failed last, "" after a call that went well.
	trouble string
	kind    string // of the trouble: died, hung, lost
	since   time.Time
	bad     bool // it refuses calls
	parent  string
	told    told // the exit that was told last
}

// told is an exit of an incarnation, which is heard of more than once.
type told struct {
	epoch uint64
	kind  messages.ExitKind
}

// Hear takes what happens in the tree, for Options.OnEvent of a host.
func (v *Vitals) Hear(e messages.Lifecycle) {
	c, ok := e.(messages.ChildChanged)
	if !ok || c.Kind != "kernel" {
		return
	}
	key, ok := messages.ParseSessionKey(c.Key)
	if !ok {
		return // it serves one call alone
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if c.Exit != nil {
		v.exitLocked(key, c)
	}
	switch c.To {
	case messages.ChildStarting:
		v.storyLocked(key).began = c.At
	case messages.ChildIdle, messages.ChildBusy:
		if c.From == messages.ChildStarting || c.From == messages.ChildRestarting || c.From == messages.ChildWaiting {
			v.startedLocked(key, c)
		}
	case messages.ChildFailed:
		s := v.storyLocked(key)
		s.bad, s.since = true, c.At
	case messages.ChildGone:
		v.goneLocked(key)
	case messages.ChildWaiting, messages.ChildSuspended, messages.ChildRestarting, messages.ChildStopping:
	}
}

// startedLocked says that a kernel is up.
func (v *Vitals) startedLocked(key messages.SessionKey, c messages.ChildChanged) {
	s := v.storyLocked(key)
	s.bad = false
	m := client.Moment{At: c.At, What: "started", Epoch: c.Epoch, PID: c.PID}
	if !s.began.IsZero() {
		m.Why = fmt.Sprintf("in %v", c.At.Sub(s.began).Round(time.Millisecond))
		s.began = time.Time{}
	}
	switch {
	case c.CopyOf == key.Session: // it was put back
		v.now.Restarts++
		m.What, m.Why = "restarted", strings.TrimPrefix(m.Why+"; as it was at a checkpoint", "; ")
	case c.CopyOf != "":
		v.copiedLocked(s, c, &m)
	case c.Epoch > 1:
		v.now.Restarts++
		m.What, m.Why = "restarted", strings.TrimPrefix(m.Why+"; with no variables", "; ")
	default:
		v.now.Starts++
		s.parent = "" // of an earlier session with that name
	}
	v.tellLocked(key, m)
}

// copiedLocked says that a kernel began as a copy of another session's, in the stories of
// both.
func (v *Vitals) copiedLocked(s *story, c messages.ChildChanged, m *client.Moment) {
	v.now.Starts++
	s.parent = c.CopyOf
	m.What, m.Why = "copied", "from "+c.CopyOf+", with all that it had in memory"
	of := s.key
	of.Session = c.CopyOf
	if v.stories[of.ID()] != nil {
		v.tellLocked(of, client.Moment{At: c.At, What: "forked", Why: "to " + s.key.Session})
	}
}

// exitLocked says that a kernel ended, and why: once for each of its lives.
func (v *Vitals) exitLocked(key messages.SessionKey, c messages.ChildChanged) {
	s, x := v.storyLocked(key), *c.Exit
	if s.told == (told{c.Epoch, x.Kind}) {
		s.explain(c.Epoch, short(x.Reason))
		return
	}
	s.told = told{c.Epoch, x.Kind}
	m := client.Moment{At: c.At, Why: short(x.Reason), Epoch: c.Epoch}
	switch x.Kind {
	case messages.ExitEvicted:
		v.now.Evictions++
		m.What = "evicted"
	case messages.ExitReset:
		m.What = "reset"
		s.trouble, s.bad = "", false
	case messages.ExitHibernated:
		m.What, m.Why = "hibernated", strings.TrimSuffix("its next call restores it from disk; "+m.Why, "; ")
		s.trouble, s.bad = "", false
	case messages.ExitShutdown, messages.ExitNormal:
		m.What = "ended"
		if strings.HasPrefix(x.Reason, messages.SessionClosed) {
			m.What = "closed"
		}
	case messages.ExitHung:
		v.now.Deaths++
		m.What = "hung"
	case messages.ExitOverloaded, messages.ExitExhausted, messages.ExitEscalated:
		m.What = "refused"
	case messages.ExitFailed, messages.ExitPanicked, messages.ExitKilled:
		v.now.Deaths++
		m.What = "died"
	default:
		m.What = string(x.Kind)
	}
	v.tellLocked(key, m)
}

// explain puts in the reason of the exit that was told last as it is known in the end: what
// became of the state, too.
func (s *story) explain(epoch uint64, why string) {
	i := len(s.moments) - 1
	for ; i >= 0 && s.moments[i].Epoch == epoch; i-- {
		switch s.moments[i].What {
		case "evicted", "ended":
			s.moments[i].Why = why
			return
		case "started", "restarted", "copied": // it is of the life before
			return
		}
	}
}

// goneLocked is told that a session has no kernel any more. Its story stays.
func (v *Vitals) goneLocked(key messages.SessionKey) {
	s := v.storyLocked(key)
	s.bad, s.began, s.told = false, time.Time{}, told{} // the next kernel counts its lives from 1 again
	for _, id := range slices.Clone(v.asking[key.ID()]) {
		v.answeredLocked(id)
	}
}

// tellLocked adds a moment to a session's story.
func (v *Vitals) tellLocked(key messages.SessionKey, m client.Moment) {
	s := v.storyLocked(key)
	switch m.What {
	case "died", "hung", "lost", "refused":
		// A death and the call that it cost are one trouble: the cause is what counts.
		if m.What != "lost" || s.trouble == "" {
			s.trouble, s.kind, s.since = m.Why, m.What, m.At
			if s.trouble == "" {
				s.trouble = "no reason was given"
			}
		}
	}
	if len(s.moments) == keptMoments {
		s.moments = slices.Delete(s.moments, 0, 1)
		s.forgotten++
	}
	s.moments = append(s.moments, m)
}

// storyLocked is the story of a session, a new one if it has none. The one that was
// touched longest ago makes room.
func (v *Vitals) storyLocked(key messages.SessionKey) *story {
	id := key.ID()
	s := v.stories[id]
	if s == nil {
		if len(v.stories) >= keptStories {
			v.forgetLocked()
		}
		s = &story{key: key}
		v.stories[id] = s
	}
	v.touch++
	s.touched = v.touch
	return s
}

// forgetLocked makes room: a tenth of the stories, those that were touched longest ago.
func (v *Vitals) forgetLocked() {
	touched := make([]uint64, 0, len(v.stories))
	for _, s := range v.stories {
		touched = append(touched, s.touched)
	}
	slices.Sort(touched)
	oldest := touched[len(touched)/10]
	for id, s := range v.stories {
		if s.touched <= oldest {
			delete(v.stories, id)
		}
	}
}

// marksLocked are those of the sessions of which there is something to say.
func (v *Vitals) marksLocked(sessions []client.Session, now time.Time) []client.Mark {
	var marks []client.Mark
	for _, one := range sessions {
		key := keyOf(one)
		id := key.ID()
		s, m := v.stories[id], client.Mark{Key: key}
		if s != nil {
			m.Parent = s.parent
			if s.trouble != "" {
				m.Level, m.Why, m.Since = client.LevelShaky, s.kind+": "+s.trouble, s.since
			}
		}
		if waits := v.asking[id]; len(waits) > 0 {
			q := v.calls[waits[0]].asked
			if q.Until.IsZero() || now.Before(q.Until) {
				m.Level, m.Why, m.Since, m.Question = client.LevelAsks, q.Prompt, q.Asked, &q
			}
		}
		if s != nil && s.bad || one.State == messages.ChildFailed {
			m.Level, m.Since, m.Question = client.LevelBad, one.Since, nil
			if one.LastExit != nil {
				m.Why = short(one.LastExit.Reason)
			}
		}
		if m.Level != "" || m.Parent != "" {
			marks = append(marks, m)
		}
	}
	return marks
}
