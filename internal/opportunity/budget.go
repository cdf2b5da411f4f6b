package opportunity

import (
	"fmt"
	"time"
)

// Budget is how long another process is waited for.
type Budget struct {
	// Opportunity is how long the other side may have had the chance to speak.
	Opportunity time.Duration
	// Ceiling ends the wait all the same, after so much time in which we listened:
	// a side that gets no processor for ever is of no use. Our own standing still
	// is not counted. 0: 20 times Opportunity; less than Opportunity: as much as that.
	Ceiling time.Duration
}

// Starting is the budget of a start, of a process or of what it makes: so much
// opportunity, 0 for two minutes, and so long at most, 0 for five times that.
func Starting(opportunity, ceiling time.Duration) Budget {
	const usual, most = 2 * time.Minute, 5
	if opportunity <= 0 {
		opportunity = usual
	}
	if ceiling <= 0 {
		ceiling = most * opportunity
	}
	return Budget{Opportunity: opportunity, Ceiling: ceiling}
}

// ceilings is how often Opportunity fits into the default ceiling.
const ceilings = 20

func (b Budget) ceiling() time.Duration {
	if b.Ceiling <= 0 {
		return ceilings * b.Opportunity
	}
	return max(b.Ceiling, b.Opportunity)
}

// End is which part of a budget has been spent.
type End int

// The ends of a budget.
const (
	// Open: neither.
	Open End = iota
	// ByOpportunity: the other side had its chance.
	ByOpportunity
	// ByCeiling: it had not, and there is an end to patience.
	ByCeiling
)

// Expired says whether the budget is spent, and which part of it.
func (b Budget) Expired(m Measure) End {
	switch {
	case m.Opportunity >= b.Opportunity:
		return ByOpportunity
	case m.Listened >= b.ceiling():
		return ByCeiling
	default:
		return Open
	}
}

// Bounds of the time after which an undecided measure is looked at again.
const (
	settleLeast = 25 * time.Millisecond
	settleMost  = 500 * time.Millisecond
	settleShare = 16
	// leastLeft keeps a side that gets a share of a processor from being looked at
	// ever more often towards the end.
	leastLeft = 5 * time.Millisecond
)

// Left says when it is worth looking again: no earlier can the budget be spent, but
// for a measure that is undecided because a thread wants a processor at this moment.
// That is looked at again shortly. 0: the budget is spent.
func (b Budget) Left(m Measure) time.Duration {
	if b.Expired(m) != Open {
		return 0
	}
	left := b.Opportunity - m.Opportunity
	if b.Opportunity <= m.Most {
		left = min(left, max(settleLeast, min(settleMost, (m.Most-m.Opportunity)/settleShare)))
	} else {
		left = min(left, max(settleLeast, b.Opportunity-m.Most))
	}
	return m.owed + max(leastLeft, min(left, b.ceiling()-m.Listened))
}

// SpentError says that a budget is spent.
type SpentError struct {
	Budget  Budget
	Measure Measure
	By      End
}

// Error tells how long was waited and what became of the time: "no answer in 30 s,
// of which it waited 22 s for a processor".
func (e *SpentError) Error() string {
	text := "no answer in " + e.Measure.String()
	if e.By == ByCeiling {
		return fmt.Sprintf("%s; it had only %s to answer in, and is waited for no longer than %s", text, seconds(e.Measure.Opportunity), seconds(e.Budget.ceiling()))
	}
	return text
}
