package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Store keeps records. [Folder] is one on this machine's disk. Any goroutine may call
// its methods, which wait for a disk or a network: an actor does not.
type Store interface {
	// Put keeps a record, in place of an earlier one of its name. The image is read
	// from its beginning, as many bytes as the header's Sections say together. When
	// it fails, the earlier record is as it was. The error matches [ErrQuota] when
	// there is no room.
	Put(ctx context.Context, h Header, image io.ReaderAt) error
	// Get opens the record of a name for who says c of themselves. The error matches
	// [ErrNone] when there is no record, [ErrBusy] while someone has it open, and is a
	// [*RefusedError] when it may not be had: it stays then. It may be an [*ExpiredError].
	Get(ctx context.Context, name string, c Claim) (Record, error)
	// List returns the headers of all records, by name. Those that cannot be read are
	// left out.
	List(ctx context.Context) ([]Header, error)
	// Delete drops the record of a name; it is no error that there is no record. One
	// that someone has open is gone for the next.
	Delete(ctx context.Context, name string) error
}

// Record is one record that is open. It belongs to one goroutine.
type Record interface {
	Header() Header
	// Image writes what the record holds, once all of it was found to be whole. The
	// error is a [*RefusedError] when it is not; what was written is of no use then.
	Image(ctx context.Context, to io.Writer) error
	// Close lets others open the record. A second call does nothing.
	Close() error
}

// Header says what a record is, and for whom. All of it is under the seal.
type Header struct {
	// Name is what the record is found by: the ID of a session's key, or the name of a
	// checkpoint. Required.
	Name string `json:"name"`
	// Session is the ID of the key of the session that it was made of.
	Session string `json:"session"`
	// Owners may have it. None, or "" among them: everyone whose host has the key.
	Owners []string `json:"owners,omitempty"`
	// Python is the version of the interpreter that it is of, as 3.12.1, and Platform
	// the kind of machine.
	Python   string `json:"python"`
	Platform string `json:"platform"`
	// Made is when, Expires until when it is kept. Zero: for ever.
	Made    time.Time `json:"made"`
	Expires time.Time `json:"expires,omitzero"`
	// Manifest is what the image says of itself, and Sections are the sizes of its
	// parts, in bytes, in order.
	Manifest json.RawMessage `json:"manifest"`
	Sections []int64         `json:"sections"`
}

// Size is how many bytes the image has.
func (h Header) Size() int64 {
	var n int64
	for _, s := range h.Sections {
		n += s
	}
	return n
}

// Claim is what whoever wants a record says of themselves.
type Claim struct {
	// Owner is for whom it is wanted, "" for no one in particular: then a record that
	// not everyone may have is refused.
	Owner string
	// Python is the version of the interpreter that it is wanted for, and Platform the
	// kind of machine. "": not asked.
	Python, Platform string
}

// Errors of a Store.
var (
	// ErrNone: there is no record of that name.
	ErrNone = errors.New("there is no such record")
	// ErrBusy: someone has the record open.
	ErrBusy = errors.New("the record is being restored by someone else")
	// ErrQuota: the store is full.
	ErrQuota = errors.New("the store has no room")
)

// ExpiredError says that a record is not had any more, since it was kept for as long as it
// was meant to be. It matches [ErrNone]: once its bytes are dropped, that is all that is known.
type ExpiredError struct {
	// At is until when it was kept.
	At time.Time
}

// Error says when.
func (e *ExpiredError) Error() string {
	return "it was kept until " + e.At.UTC().Format(time.RFC3339) + ", and has expired"
}

// Unwrap returns [ErrNone].
func (e *ExpiredError) Unwrap() error { return ErrNone }

// Reason says why a record may not be had.
type Reason string

// The reasons.
const (
	// ReasonCut: it is shorter than it says.
	ReasonCut Reason = "cut"
	// ReasonSeal: it was changed, or sealed with another key.
	ReasonSeal Reason = "seal"
	// ReasonForm: it is of a version that this program does not read, or no record.
	ReasonForm Reason = "form"
	// ReasonName: it is the record of another name.
	ReasonName Reason = "name"
	// ReasonOwner: it belongs to someone else.
	ReasonOwner Reason = "owner"
	// ReasonPython: it is of another version of Python.
	ReasonPython Reason = "python"
	// ReasonPlatform: it is of another kind of machine.
	ReasonPlatform Reason = "platform"
)

// RefusedError says that a record may not be had. It stays where it is.
type RefusedError struct {
	Reason Reason
	// Problem says what is wrong, for people.
	Problem string
}

// Error returns the problem.
func (e *RefusedError) Error() string { return "the kept session is refused: " + e.Problem }

// refuse makes the error.
func refuse(r Reason, format string, args ...any) error {
	return &RefusedError{r, fmt.Sprintf(format, args...)}
}

// Admit returns nil when whoever makes the claim may have the record, else a
// [*RefusedError].
func (h Header) Admit(name string, c Claim) error {
	switch {
	case h.Name != name:
		return refuse(ReasonName, "it is the record of %q, not of %q", h.Name, name)
	case len(h.Owners) > 0 && !slices.Contains(h.Owners, "") && !slices.Contains(h.Owners, c.Owner):
		return refuse(ReasonOwner, "it belongs to another owner")
	case c.Python != "" && c.Python != h.Python:
		return refuse(ReasonPython, "it was kept by Python %s, and this is Python %s", h.Python, c.Python)
	case c.Platform != "" && c.Platform != h.Platform:
		return refuse(ReasonPlatform, "it was kept on %s, and this is %s", h.Platform, c.Platform)
	}
	return nil
}

// Expired reports whether the record is as good as deleted.
func (h Header) Expired(now time.Time) bool { return !h.Expires.IsZero() && now.After(h.Expires) }
