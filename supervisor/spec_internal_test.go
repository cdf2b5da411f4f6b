package supervisor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/opportunity"
)

// TestSpecDefaults: the zero value is what the documentation says.
func TestSpecDefaults(t *testing.T) {
	t.Parallel()
	var s Spec
	require.Equal(t, 30*time.Second, s.startTimeout(false))
	require.Equal(t, 5*time.Minute, s.startTimeout(true))
	require.Equal(t, 5*time.Second, s.stopTimeout(false))
	require.Equal(t, time.Minute, s.stopTimeout(true))
	require.Equal(t, 8, s.inbox())
	s = Spec{StartTimeout: 1, StopTimeout: 2, Inbox: 3}
	for _, supervises := range []bool{false, true} {
		require.EqualValues(t, 1, s.startTimeout(supervises))
		require.EqualValues(t, 2, s.stopTimeout(supervises))
	}
	require.Equal(t, 3, s.inbox())
}

// TestOnlyTheLatestFailuresAreKept, and of these the last ones.
func TestOnlyTheLatestFailuresAreKept(t *testing.T) {
	t.Parallel()
	var l []instant
	for i := range instant(10) {
		l = appendBounded(l, i, 4)
		require.Len(t, l, min(int(i)+1, 4))
	}
	require.Equal(t, []instant{6, 7, 8, 9}, l)
	require.Equal(t, []instant{8, 9, 10}, appendBounded(l, 10, 3))
}

// TestTheGraceHalves with each floor, so that those below have given up what is below them
// before those above give them up.
func TestTheGraceHalves(t *testing.T) {
	t.Parallel()
	s := Supervisor{ctx: &Ctx{c: &incarnation{}}}
	require.Equal(t, lastGrace/2, s.grace())
	s.ctx.c.depth = 2
	require.Equal(t, lastGrace/8, s.grace())
}

// opened is a Handler that tells how deep its supervisor is.
type opened struct {
	BaseHandler
	depth *int
}

func (o opened) Open(s *Supervisor) error {
	*o.depth = int(s.ctx.c.depth)
	return nil
}

// TestDepth counts the floors from the top, which is what the graces go by.
func TestDepth(t *testing.T) {
	t.Parallel()
	var depths [3]int
	var child []Spec
	for i := len(depths) - 1; i >= 0; i-- {
		o := Options{Handler: opened{depth: &depths[i]}, Children: child}
		child = []Spec{{Key: "below", New: func() Behaviour { return New(o) }}}
	}
	sys, err := Start(t.Context(), SystemOptions{Children: child})
	require.NoError(t, err)
	sys.Shutdown(t.Context())
	require.Equal(t, [...]int{1, 2, 3}, depths)
}

// TestWhatWasPutOff counts the ends of children, and what others have put off with the same watch.
func TestWhatWasPutOff(t *testing.T) {
	t.Parallel()
	w := &opportunity.Watch{}
	opportunity.Begin(opportunity.Unknown{}, w).Left(opportunity.Budget{Opportunity: time.Second, Ceiling: time.Hour}, opportunity.Measure{Wall: time.Minute, Listened: time.Minute})
	require.EqualValues(t, 1, w.Postponed())
	s := &commons{stalls: w}
	s.postpone(2)
	require.EqualValues(t, 3, s.busy().Postponed)
}
