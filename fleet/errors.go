package fleet

import (
	"errors"
	"fmt"
)

// Errors of a member. What matches [ErrLost] or [ErrHeld] is about a turn that has begun,
// all others about one that has not.
var (
	// ErrSuspended: the node has no valid lease; it may have one again soon.
	ErrSuspended = errors.New("the node is suspended: its lease was not renewed in time")
	// ErrOver: this life of the node is over. See [Member.Err] for why.
	ErrOver = errors.New("this life of the node is over")
	// ErrDraining: the node takes no further keys.
	ErrDraining = errors.New("the node is draining")
	// ErrReleased: the ownership has ended; claim the key again.
	ErrReleased = errors.New("the ownership of the key has ended")
	// ErrBegun: a turn of this ID has begun before, and is not begun again.
	ErrBegun = errors.New("a turn of this ID has begun before")
	// ErrUnknown: nothing is known of what was asked of the directory. It may have
	// happened, or happen later.
	ErrUnknown = errors.New("the directory gave no answer")
	// ErrLost: the turn has begun, and its answer may not leave, now or later.
	ErrLost = errors.New("the answer is lost: the node no longer owns the key")
	// ErrHeld: the turn has begun, and its answer may not leave yet.
	ErrHeld = errors.New("the answer is held back")
)

// OwnedError says that a key belongs to another node, which is neither dead nor left as
// far as is known.
type OwnedError struct {
	Key   string
	Epoch uint64
	// Node is the ID of the owner.
	Node string
}

// Error implements error.
func (e *OwnedError) Error() string {
	return fmt.Sprintf("the key belongs to node %s, in epoch %d", e.Node, e.Epoch)
}

// EpochError says that a turn was meant for another epoch of its key. What a first attempt
// at it has done is lost; this one has not begun.
type EpochError struct {
	// Meant is the epoch of the call, Now that of the owner.
	Meant, Now uint64
}

// Error implements error.
func (e *EpochError) Error() string {
	return fmt.Sprintf("the call is for epoch %d of the session, which is in epoch %d", e.Meant, e.Now)
}
