package messages

import (
	"fmt"
	"strings"
)

// CheckpointKey names a checkpoint that is kept on disk. Those of two workspaces are
// different, whatever their names are.
type CheckpointKey struct {
	// Name is the caller's name for it.
	Name string `json:"name"`
	// Workspace is the one whose session it was made of, and whose sessions alone may have
	// it; "" for none.
	Workspace string `json:"workspace,omitempty"`
}

// savedPrefix sets the names of records apart from the ids of session keys, which hold an @
// before any slash.
const savedPrefix = "checkpoint/"

// ID is the name of the checkpoint's record. It is different for different keys.
func (k CheckpointKey) ID() string {
	return savedPrefix + escapeSession.Replace(k.Workspace) + "/" + escapeSession.Replace(k.Name)
}

// String names it for people.
func (k CheckpointKey) String() string {
	if k.Workspace != "" {
		return fmt.Sprintf("%s of the workspace %s", k.Name, k.Workspace)
	}
	return k.Name
}

// ParseCheckpointKey is the inverse of [CheckpointKey.ID]; false: no key has that id.
func ParseCheckpointKey(id string) (CheckpointKey, bool) {
	rest, ok := strings.CutPrefix(id, savedPrefix)
	workspace, name, cut := strings.Cut(rest, "/")
	key := CheckpointKey{Name: unescapeSession.Replace(name), Workspace: unescapeSession.Replace(workspace)}
	return key, ok && cut && key.ID() == id
}

// SaveCheckpoint asks that what the session of Key has in memory be written down under a
// name, and that its kernel go on. Nothing may run or wait for Key.
type SaveCheckpoint struct {
	Key        SessionKey    `json:"key"`
	Checkpoint CheckpointKey `json:"checkpoint"`
	// Owner is for whom: one who may not have a checkpoint does not replace it. "": for no
	// one in particular, who may replace any.
	Owner string `json:"owner,omitempty"`
	// Lossy allows that something is lost, whatever the host's policy is.
	Lossy bool `json:"lossy,omitempty"`
	// Replace allows that there is a checkpoint of that name.
	Replace bool `json:"replace,omitempty"`
}

// RestoreCheckpoint asks that the kernel of Key end and that the next one begin with a
// checkpoint that was made ready for it. Nothing may run or wait for Key.
type RestoreCheckpoint struct {
	Key SessionKey `json:"key"`
	// Ready is the id of what was made ready.
	Ready string `json:"ready"`
}

// RestoreReason says why a checkpoint was not restored.
type RestoreReason string

// The reasons.
const (
	// RestoreOff: the host keeps no sessions on disk.
	RestoreOff RestoreReason = "off"
	// RestoreUnsupported: the backend or the system cannot do it.
	RestoreUnsupported RestoreReason = "unsupported"
	// RestoreUnknown: there is no checkpoint of that name.
	RestoreUnknown RestoreReason = "unknown"
	// RestoreOwner: the checkpoint belongs to someone else.
	RestoreOwner RestoreReason = "owner"
	// RestorePython: it was made by another version of Python, and RestorePlatform on
	// another kind of machine.
	RestorePython   RestoreReason = "python"
	RestorePlatform RestoreReason = "platform"
	// RestoreBroken: its record was cut or changed, or sealed with the key of another host.
	RestoreBroken RestoreReason = "broken"
	// RestoreBusy: a cell runs in the session, or a call waits; or another host has the
	// checkpoint open.
	RestoreBusy RestoreReason = "busy"
	// RestoreStarting: the session's kernel is about to start or to end.
	RestoreStarting RestoreReason = "starting"
	// RestoreFailed: it could not be put into an interpreter, for the reason that is told.
	RestoreFailed RestoreReason = "failed"
)

// RestoreRefused says that a checkpoint was not restored, and why. The checkpoint is as it
// was; so is the session, unless Ended is set.
type RestoreRefused struct {
	Checkpoint string        `json:"checkpoint,omitempty"`
	Reason     RestoreReason `json:"reason"`
	// Problem names what is in the way, and the next step.
	Problem string `json:"problem"`
	// Ended says that the session's kernel had ended by then: what it had is gone.
	Ended bool `json:"ended,omitempty"`

	// Err is what it came from, for errors.As. nil: nothing.
	Err error `json:"-"`
}

// Error returns the problem.
func (e *RestoreRefused) Error() string {
	about := "the checkpoint was not restored: "
	if e.Checkpoint != "" {
		about = fmt.Sprintf("the checkpoint %q was not restored: ", e.Checkpoint)
	}
	if e.Ended {
		return about + e.Problem + "; the session's kernel has ended, and its next call begins without variables"
	}
	return about + e.Problem
}

// Unwrap returns what it came from.
func (e *RestoreRefused) Unwrap() error { return e.Err }
