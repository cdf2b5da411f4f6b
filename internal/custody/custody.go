package custody

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

// DefaultKeepFor is how long what is kept waits for a host.
const DefaultKeepFor = time.Minute

// MostFiles is how many descriptors one thing has at most, MostNote how long its note may
// be, in bytes.
const (
	MostFiles = 16
	MostNote  = 1 << 20
)

// Errors that callers decide by.
var (
	// ErrUnsupported: this system cannot keep descriptors for a later process.
	ErrUnsupported = errors.New("descriptors cannot be kept for a later host on this system")
	// ErrUsed: another host has the custody.
	ErrUsed = errors.New("another host has what is kept")
	// ErrGone: the custodian has ended, and what it kept is lost.
	ErrGone = errors.New("the process that keeps sessions has ended")
)

// RefusedError says why a host does not trust a custody, or a custodian a host.
type RefusedError struct {
	// Reason is a clause for people; it names what is wrong, and no token.
	Reason string
}

// Error says so.
func (e *RefusedError) Error() string { return "what is kept was refused: " + e.Reason }

func refusedf(format string, args ...any) error {
	return &RefusedError{Reason: fmt.Sprintf(format, args...)}
}

// Options says where custodies are. Dir is required, and Python for [Begin].
type Options struct {
	// Dir is the folder of all custodies of this user; it is made when it is missing.
	Dir string
	// Python is the interpreter of the custodian, absolute: 3.9 or later. It needs
	// nothing but the standard library.
	Python string
	// KeepFor is how long what is kept waits for a host. The one that the latest host
	// has said counts. 0: [DefaultKeepFor].
	KeepFor time.Duration
}

func (o Options) withDefaults() Options {
	if o.KeepFor <= 0 {
		o.KeepFor = DefaultKeepFor
	}
	return o
}

// Item is one thing that is kept: descriptors that belong together.
type Item struct {
	// Name is what it is asked for by. Another thing of the same name takes its place.
	Name string
	// Note is what the next host needs to know of it, JSON of at most MostNote bytes. nil:
	// nothing.
	Note json.RawMessage
	// Files are the descriptors, at most MostFiles. Of those that are handed over to be
	// kept the caller has its own; those that [Custody.Hand] returns are the caller's to
	// close.
	Files []*os.File
	// Common says that it is kept for the sake of the others: a custodian that has
	// nothing else, and no host, ends.
	Common bool
}

// State is what can be seen of a custody without asking its custodian.
type State string

// The states of a custody.
const (
	// Used: a host has it.
	Used State = "used"
	// Waiting: it waits for a host.
	Waiting State = "waiting"
	// Gone: its custodian has ended, and did not do so in order: what it kept is lost.
	Gone State = "gone"
	// Refused: it is not trusted.
	Refused State = "refused"
)

// Standing is one custody of a folder.
type Standing struct {
	// ID is what [Take] and [Bury] know it by.
	ID    string
	State State
	// Names is what is kept, but for what is common; of one that is refused nothing.
	Names []string
	// Err says why it was refused, a [*RefusedError].
	Err error
}
