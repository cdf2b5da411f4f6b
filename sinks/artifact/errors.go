package artifact

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Scheme begins the name of an artifact.
const Scheme = "artifact://"

// The errors of names. Their texts are part of what a model reads.
var (
	// ErrNoStore: there is no place for artifacts.
	ErrNoStore = errors.New("No session - artifacts unavailable") //nolint:staticcheck // a sentence for the reader of the tool's answer
	// ErrNoID: the name has no number.
	ErrNoID = errors.New("artifact:// URL requires a numeric ID: artifact://0")
	// ErrNoDirectory: nothing was kept yet.
	ErrNoDirectory = errors.New("No artifacts directory found") //nolint:staticcheck // as above
	// ErrNotFound is what a *[NotFoundError] is.
	ErrNotFound = errors.New("artifact not found")
	// ErrBadID is what a *[BadIDError] is.
	ErrBadID = errors.New("artifact ID is not a number")
	// ErrBadRange: a range of lines or bytes does not make sense.
	ErrBadRange = errors.New("range begins before its start or ends before it begins")
)

// BadIDError says that an artifact was not named by a number.
type BadIDError struct{ ID string }

// Error is the sentence for the reader.
func (e *BadIDError) Error() string { return "artifact:// ID must be numeric, got: " + e.ID }

// Is reports whether target is [ErrBadID].
func (e *BadIDError) Is(target error) bool { return target == ErrBadID }

// NotFoundError says that no artifact has that number, and which numbers there
// are.
type NotFoundError struct {
	ID        int
	Available []int
}

// maxListed bounds how many numbers an error lists; the newest are listed.
const maxListed = 50

// Error is the sentence for the reader.
func (e *NotFoundError) Error() string {
	list := "none"
	if len(e.Available) > 0 {
		ids, dots := e.Available, ""
		if len(ids) > maxListed {
			ids, dots = ids[len(ids)-maxListed:], "…, "
		}
		names := make([]string, len(ids))
		for i, id := range ids {
			names[i] = strconv.Itoa(id)
		}
		list = dots + strings.Join(names, ", ")
	}
	return fmt.Sprintf("Artifact %d not found. Available: %s", e.ID, list)
}

// Is reports whether target is [ErrNotFound].
func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }

// URI returns the name of artifact id.
func URI(id int) string { return Scheme + strconv.Itoa(id) }

// ParseURI returns the number in artifact://N; N alone is understood too.
func ParseURI(uri string) (int, error) {
	id := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(uri), Scheme), "/")
	if id == "" {
		return 0, ErrNoID
	}
	for _, c := range []byte(id) {
		if c < '0' || c > '9' {
			return 0, &BadIDError{ID: id}
		}
	}
	n, err := strconv.Atoi(id)
	if err != nil {
		return 0, &BadIDError{ID: id}
	}
	return n, nil
}
