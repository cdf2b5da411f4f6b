package fleet

import (
	"fmt"
	"time"
)

// life is the lease of one life of a node: what its renewals have come to. It is a value
// without a clock or a lock; now is what the node's [Clock] says.
type life struct {
	id  string
	ttl time.Duration

	// last is the entry of the last renewal that is known to have happened, and acked
	// its number.
	last  Entry
	acked uint64
	// pending is the number of a renewal of which nothing is known, sent a moment before
	// the first attempt at it. 0: there is none.
	pending uint64
	sent    time.Duration
	// from is where the lease begins, once there is one.
	from time.Duration
	held bool
	// over is why this life has ended.
	over error
}

// next returns the number of the renewal to send now: again that of which nothing is
// known, as it may have happened.
func (l *life) next(now time.Duration) uint64 {
	if l.pending == 0 {
		l.pending, l.sent = l.acked+1, now
	}
	return l.pending
}

// ack says that a renewal happened, and that sent was a moment before it was sent.
func (l *life) ack(e Entry, seq uint64, sent time.Duration) {
	if l.over != nil {
		return
	}
	l.last, l.acked, l.pending = e, seq, 0
	l.from, l.held = sent, true
}

// verdict is what a node does after a renewal that met another record than the last.
type verdict int

const (
	// lifeAgain: read once more, the record is an older one.
	lifeAgain verdict = iota
	// lifeRenewed: the renewal had happened, unheard.
	lifeRenewed
	// lifeOver: the node is dead.
	lifeOver
	// lifeDoubt: the record is older than the last, or gone. Either the read was stale, or
	// the directory has lost what it had. A swap of just this record to a certificate
	// tells which, and in the latter case ends a life that nobody can see any longer.
	lifeDoubt
)

// met judges the record that was read after a conflict.
func (l *life) met(e Entry) verdict {
	n, found, err := readNode(e)
	switch {
	case l.over != nil:
		return lifeOver
	case e.Rev == l.last.Rev:
		return lifeAgain
	case err != nil:
		l.end(fmt.Errorf("%w: %w", ErrOver, err))
		return lifeOver
	case found && n.State == Left:
		l.end(fmt.Errorf("%w: it has left", ErrOver))
		return lifeOver
	case found && n.State == Dead:
		l.end(fmt.Errorf("%w: node %s has declared it dead", ErrOver, n.By))
		return lifeOver
	case found && l.pending != 0 && n.Seq == l.pending:
		l.ack(e, l.pending, l.sent)
		return lifeRenewed
	default:
		return lifeDoubt
	}
}

// end ends the life, once.
func (l *life) end(why error) {
	if l.over == nil {
		l.over = why
	}
}

// valid reports whether the node may act.
func (l *life) valid(now time.Duration) bool {
	return l.over == nil && l.held && now-l.from < l.ttl
}

// check is valid, as an error.
func (l *life) check(now time.Duration) error {
	switch {
	case l.over != nil:
		return l.over
	case !l.valid(now):
		return ErrSuspended
	default:
		return nil
	}
}
