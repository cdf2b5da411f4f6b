package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// MaxKept is the length of what a record is called, in bytes.
const MaxKept = 64

// Kept is what the record is called that has what the key had, for this owner to take; "":
// there is none.
func (o *Ownership) Kept() string {
	kept, _ := o.kept.Load().(string)
	return kept
}

// Keep says that what the key has was written down, in a record of a name that was never used
// before and that is there until a time; whoever owns the key next finds it. It is for who
// then ends what the key has. After an error the key has it still, and it is not known
// whether a later owner goes by the record: before anything else of this owner is answered, it
// is settled that nobody does.
//
// One goroutine at a time calls Keep, [Ownership.Take] and [Ownership.Drop].
func (o *Ownership) Keep(ctx context.Context, record string, until time.Time) error {
	if record == "" || len(record) > MaxKept || !until.After(time.Now()) {
		return fmt.Errorf("say what is kept: %q is called by 1 to %d bytes, and is there for a while", record, MaxKept)
	}
	if err := o.note(ctx, record, until.Unix()); err != nil {
		return fmt.Errorf("say what is kept: %w", err)
	}
	return nil
}

// Take says that the key has again what was kept, so that nobody else takes it: it is called
// before anything is done with that. After an error it is kept as before.
func (o *Ownership) Take(ctx context.Context) error {
	if err := o.note(ctx, "", 0); err != nil {
		return fmt.Errorf("take what is kept: %w", err)
	}
	return nil
}

// Drop says that nothing is kept, for good: after an error no turn begins and no answer
// leaves before that is acknowledged. nil says as well that the key was this owner's then.
func (o *Ownership) Drop(ctx context.Context) error {
	if err := o.turn.take(context.WithoutCancel(ctx)); err != nil { // who has it does not have it for long
		return err
	}
	defer o.turn.free()
	if !o.doubt.Load() && o.claim.Kept == "" && o.claim.Written == 0 {
		if err := o.stillMine(ctx); err != nil { // a later owner may have kept something
			return fmt.Errorf("drop what is kept: %w", err)
		}
		return nil
	}
	o.kept.Store("")
	o.until, o.written = 0, 0
	o.doubt.Store(true)
	if err := o.settled(ctx); err != nil {
		return fmt.Errorf("drop what is kept: %w", err)
	}
	return nil
}

// stillMine reports, as an error, whether nobody else could own the key at a moment after it was
// called. The caller has the turn.
func (o *Ownership) stillMine(ctx context.Context) error {
	if err := o.m.Err(); err != nil {
		return err
	}
	if o.over() {
		return ErrReleased
	}
	if o.m.o.Strict {
		return o.confirm(ctx, o.claim)
	}
	return o.m.Check()
}

// note writes to the claim what is kept. Where that has no answer, the claim is in doubt.
func (o *Ownership) note(ctx context.Context, record string, until int64) error {
	if err := o.turn.take(ctx); err != nil {
		return err
	}
	defer o.turn.free()
	if err := o.m.Err(); err != nil {
		return err
	}
	if o.over() {
		return ErrReleased
	}
	if err := o.settled(ctx); err != nil {
		return err
	}
	next := o.said()
	next.Kept, next.Until = record, until
	if record != "" {
		next.Written = time.Now().Unix()
	}
	o.doubt.Store(true)
	if err := o.confirm(ctx, next); err != nil {
		return err
	}
	o.kept.Store(record)
	o.until, o.written = until, next.Written
	o.doubt.Store(false)
	return nil
}

// said is the claim with what the owner has said of what is kept. The caller has the turn.
func (o *Ownership) said() Claim {
	next := o.claim
	next.Kept, next.Until, next.Written = o.Kept(), o.until, o.written
	return next
}

// settled has the claim say what the owner has said, if it may say something else. The
// caller has the turn.
func (o *Ownership) settled(ctx context.Context) error {
	if !o.doubt.Load() {
		return nil
	}
	if err := o.m.Err(); err != nil {
		return err
	}
	if o.over() {
		return ErrReleased
	}
	if err := o.confirm(ctx, o.said()); err != nil {
		return err
	}
	o.doubt.Store(false)
	return nil
}

// undoubted is settled for what is to leave: whoever goes by the claim would else have the key
// as it was before this.
func (t *Turn) undoubted(ctx context.Context) error {
	if err := t.o.turn.take(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrHeld, err)
	}
	defer t.o.turn.free()
	err := t.o.settled(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrReleased):
		return ErrLost
	case errors.Is(err, ErrOver):
		return fmt.Errorf("%w: %w", ErrLost, err)
	default:
		return fmt.Errorf("%w: %w", ErrHeld, err)
	}
}

// End is Release where what the key had has come to its end in order, with all turns
// answered: the next owner learns for what reason, a clause of at most 200 bytes, and may let
// whoever names this epoch go on ([Ownership.Past]).
func (o *Ownership) End(ctx context.Context, why string) error {
	return o.release(ctx, clause(why))
}

// clause is as much of a reason as a claim says.
func clause(why string) string {
	if len(why) <= maxWhy {
		return why
	}
	end := maxWhy
	for end > 0 && !utf8.RuneStart(why[end]) {
		end--
	}
	return why[:end]
}

// maxWhy bounds what a claim says of an end, in bytes.
const maxWhy = 200

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
