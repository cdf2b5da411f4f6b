package estate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/messages"
)

// Version is that of notes and logs. A host that finds another one takes nothing over.
const Version = 1

// Bounds of what is written down.
const (
	// MaxNote is how long a note may be, in bytes.
	MaxNote = 256 << 10
	// MaxOwners is how many owners of a session are remembered.
	MaxOwners = 64
	// sealSize is how long the key of a seal is, at least.
	sealSize = 16
)

// RefusedError says why something that an earlier host wrote is not believed.
type RefusedError struct {
	// Reason is a clause for people.
	Reason string
}

// Error says so.
func (e *RefusedError) Error() string {
	return "what an earlier host has noted was refused: " + e.Reason
}

func refusedf(format string, args ...any) error {
	return &RefusedError{Reason: fmt.Sprintf(format, args...)}
}

// Note is what the next host has to know of one session.
type Note struct {
	Version int `json:"version"`
	// Key is whose session it is, Owners are those who have used it, at most MaxOwners; ""
	// among them is for calls without an owner.
	Key    messages.SessionKey `json:"key"`
	Owners []string            `json:"owners,omitempty"`
	// Process is the session's, Python its version.
	Process process.Identity `json:"process"`
	Python  string           `json:"python,omitempty"`
	// Mark is what its lines begin with.
	Mark string `json:"mark"`
	// Generation is how many hosts have had the session before.
	Generation uint32 `json:"generation"`
	// Log is the name of its log, in the folder of the one who keeps it, and Seal the key of
	// the log's seal.
	Log  string `json:"log"`
	Seal []byte `json:"seal"`
	// News is how the session began, until a call has: then the log of that has it. nil: it is
	// told.
	News *News `json:"news,omitempty"`
}

// News is how a session began, of which no result has told.
type News struct {
	// Restored is what it was restored with; nil: it began with nothing, for Reason.
	Restored *messages.Restored `json:"restored,omitempty"`
	Reason   string             `json:"reason,omitempty"`
}

// Encode returns the note as it is kept.
func (n Note) Encode() (json.RawMessage, error) {
	n.Version = Version
	if err := n.check(); err != nil {
		return nil, err
	}
	data, err := json.Marshal(n)
	if err != nil {
		return nil, fmt.Errorf("note a session: %w", err)
	}
	if len(data) > MaxNote {
		return nil, fmt.Errorf("note a session: %d bytes, and %d are possible", len(data), MaxNote)
	}
	return data, nil
}

// ParseNote reads a note. The error is a [*RefusedError].
func ParseNote(data []byte) (Note, error) {
	var n Note
	if len(data) > MaxNote {
		return n, refusedf("the note of a session has %d bytes", len(data))
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&n); err != nil || d.More() {
		return Note{}, refusedf("the note of a session cannot be read")
	}
	if err := n.check(); err != nil {
		return Note{}, err
	}
	return n, nil
}

func (n Note) check() error {
	switch {
	case n.Version != Version:
		return refusedf("it is of version %d, and this program knows %d", n.Version, Version)
	case n.Key.Workspace != "" || !filepath.IsAbs(n.Key.Cwd) || n.Key.Cwd != filepath.Clean(n.Key.Cwd):
		return refusedf("it names no session that can be kept")
	case n.Process.PID <= 1 || n.Process.Start == "":
		return refusedf("it names no process")
	case n.Mark == "" || strings.ContainsAny(n.Mark, "\n{"):
		return refusedf("it has no mark")
	case !fileName(n.Log) || len(n.Seal) < sealSize:
		return refusedf("it names no log")
	case len(n.Owners) > MaxOwners:
		return refusedf("it names %d owners", len(n.Owners))
	}
	return nil
}

// fileName says whether name is that of a file in a folder.
func fileName(name string) bool {
	return name != "" && name == filepath.Base(name) && filepath.IsLocal(name) && !strings.HasPrefix(name, ".")
}
