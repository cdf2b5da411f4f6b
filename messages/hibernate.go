package messages

import (
	"fmt"
	"strings"
	"time"
)

// Hibernate asks that what the session of Key has in memory be written down, and that its
// kernel end then. Nothing may run or wait for Key. The next call restores it.
type Hibernate struct {
	Key SessionKey `json:"key"`
	// Idle says that no one has asked for it but that the session was idle for long: a
	// kernel that was refused for what its session has is not asked again then before a
	// cell has run.
	Idle bool `json:"idle,omitempty"`
}

// LostName is what a session lost when it was kept on disk.
type LostName struct {
	// Name is the variable's; what has none is described: "thread T".
	Name string `json:"name"`
	Type string `json:"type"`
	// Reason is why, a clause for people.
	Reason string `json:"reason"`
}

// ChangedName is a variable that is there and not quite what it was.
type ChangedName struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// Change is what is different, a clause for people.
	Change string `json:"change"`
}

// Memory is what of a session's variables outlived its kernel: each is in one of the
// lists.
type Memory struct {
	Kept    []string      `json:"kept"`
	Lost    []LostName    `json:"lost,omitempty"`
	Changed []ChangedName `json:"changed,omitempty"`
}

// Restored says that a call's kernel has what an earlier one of the session had, as far
// as it could be kept on disk.
type Restored struct {
	Memory
	// At is when it was written down.
	At time.Time `json:"at"`
	// Notes say what turned out otherwise when it was read, a sentence each.
	Notes []string `json:"notes,omitempty"`
}

// Hibernated says what was written down of a session.
type Hibernated struct {
	Memory
	// Bytes is how much it is, without what other sessions have in common with it
	// taken off.
	Bytes int64 `json:"bytes"`
	// Took is how long that took, the trial of what was written included.
	Took time.Duration `json:"took"`
}

// HibernateReason says why a session was not hibernated.
type HibernateReason string

// The reasons.
const (
	// HibernateOff: the host keeps no sessions on disk.
	HibernateOff HibernateReason = "off"
	// HibernateUnsupported: the backend or the system cannot do it.
	HibernateUnsupported HibernateReason = "unsupported"
	// HibernateBusy: a cell runs, or a call waits.
	HibernateBusy HibernateReason = "busy"
	// HibernateNoKernel: the session has no kernel, or one in which nothing has run, so that
	// there is nothing to keep.
	HibernateNoKernel HibernateReason = "no_kernel"
	// HibernateLossy: something would be lost, and the host does not allow that.
	HibernateLossy HibernateReason = "lossy"
	// HibernateFailed: it could not be written down, or not be read again.
	HibernateFailed HibernateReason = "failed"
	// HibernateExists: there is a checkpoint of that name already.
	HibernateExists HibernateReason = "exists"
	// HibernateFull: there are as many checkpoints as the host keeps.
	HibernateFull HibernateReason = "full"
	// HibernateOwner: the checkpoint of that name belongs to someone else.
	HibernateOwner HibernateReason = "owner"
)

// HibernateRefused says that a session was not hibernated, or that a checkpoint of it was not
// made, and why. The session is as it was, and so is a checkpoint of that name.
type HibernateRefused struct {
	// Checkpoint is the name of the one that was to be made, "" when the session was to
	// hibernate.
	Checkpoint string          `json:"checkpoint,omitempty"`
	Reason     HibernateReason `json:"reason"`
	// Problem names what is in the way, and the next step.
	Problem string `json:"problem"`
	// Lost is what would be lost, when Reason is lossy.
	Lost []LostName `json:"lost,omitempty"`
}

// Error returns the problem.
func (e *HibernateRefused) Error() string {
	if e.Checkpoint != "" {
		return fmt.Sprintf("the checkpoint %q was not made: %s", e.Checkpoint, e.Problem)
	}
	return "the session was not hibernated: " + e.Problem
}

// toldNames is how many names a line has of each kind.
const toldNames = 8

// String says in a line what is there and what is not, for a model.
func (r Restored) String() string {
	text := "The session was restored from disk: "
	switch {
	case len(r.Kept) > 0:
		text += "kept are " + some(r.Kept, func(name string) string { return name })
	case len(r.Changed)+len(r.Lost) > 0:
		text += "no variable is as it was"
	default:
		text += "it had no variables"
	}
	if len(r.Changed) > 0 {
		text += "; changed: " + some(r.Changed, func(c ChangedName) string { return c.Name + " (" + c.Change + ")" })
	}
	if len(r.Lost) > 0 {
		text += "; lost: " + some(r.Lost, func(l LostName) string { return l.Name + " (" + l.Type + ": " + l.Reason + ")" })
	}
	for _, note := range r.Notes {
		text += "; " + note
	}
	return text + "."
}

// some joins what stands for the first of a list, and says how many more there are.
func some[T any](all []T, text func(T) string) string {
	shown := make([]string, 0, toldNames+1)
	for _, one := range all[:min(len(all), toldNames)] {
		shown = append(shown, text(one))
	}
	if more := len(all) - len(shown); more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(shown, ", ")
}
