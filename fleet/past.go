package fleet

import (
	"context"
	"unicode/utf8"
)

// End is Release where what the key had has come to its end in order, with all turns
// answered: the next owner learns for what reason, a clause of at most 200 bytes, and may let
// whoever names this epoch go on ([Ownership.Past]).
func (o *Ownership) End(ctx context.Context, why string) error {
	for i := range why {
		if i+utf8.UTFMax > maxWhy {
			why = why[:i]
			break
		}
	}
	return o.release(ctx, why)
}

// maxWhy bounds what a claim says of an end, in bytes.
const maxWhy = 200

// Past is how the epoch [Ownership.Used] came to its end, when its owner has ended it in
// order; the zero value says that nobody has said so.
type Past struct {
	// Node is the ID of that owner. While it lives, it knows what was begun in that epoch: of
	// the rest nothing was.
	Node string
	// Why is the reason, a clause.
	Why string
	// All says that this owner knows, too, what was begun in that epoch: a turn of an ID that was
	// is refused with [ErrBegun], and of others nothing was.
	All bool
	// Kept is what was kept when this epoch began, see [Ownership.Kept]; also when no owner
	// has ended anything in order.
	Kept string
}

// Past returns how the epoch Used came to its end.
func (o *Ownership) Past() Past { return o.past }

// tell has the claim of a key say what was begun in this epoch, where what the key had is kept
// for whoever has it next: that owner need not ask this node, which may be gone by then. What a
// claim has said so of the epoch before is not said any more. The caller has the turn.
func (o *Ownership) tell(next *Claim) {
	switch {
	case next.Why != "" && next.Kept != "" && o.turns <= remembered:
		next.Recent, next.All = o.recent, true
	case next.All:
		next.Recent, next.All = nil, false
	}
}
