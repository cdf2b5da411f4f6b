package opportunity

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/process"
)

// side is another side of a test: share of the time until it is well it waits for a
// processor, which it wants at every look, and gets at none when share is 1.
type side struct {
	begun time.Time
	well  time.Duration
	share float64
	gone  bool
	looks int
}

func (s *side) Look(now time.Time) (Sample, error) {
	s.looks++
	if s.gone {
		return Sample{}, process.ErrNoProcess
	}
	passed := now.Sub(s.begun)
	waited := time.Duration(s.share * float64(min(passed, s.well)))
	if s.share == 1 && passed < s.well {
		return Sample{Pending: waited, Known: Waits}, nil
	}
	return Sample{Waited: waited, Known: Waits}, nil
}

func TestWait(t *testing.T) {
	t.Parallel()
	b := Budget{Opportunity: 2 * time.Second, Ceiling: 30 * time.Second}
	for name, tc := range map[string]struct {
		side    side
		answers time.Duration // 0: never
		takes   time.Duration
		by      End
		most    int // how often it may be looked at
		text    string
	}{
		"it answers":                 {answers: time.Second, takes: time.Second, most: 2},
		"it has its chance":          {takes: 2 * time.Second, by: ByOpportunity, most: 3, text: "no answer in 2 s"},
		"it is gone":                 {side: side{gone: true}, takes: 2 * time.Second, by: ByOpportunity, most: 1, text: "no answer in 2 s"},
		"it waits half of the time":  {side: side{share: .5, well: time.Hour}, takes: 4 * time.Second, by: ByOpportunity, most: 15, text: "no answer in 4 s, of which it waited 2 s for a processor"},
		"it waits, then answers":     {side: side{share: 1, well: 20 * time.Second}, answers: 21 * time.Second, takes: 21 * time.Second, most: 120},
		"it waits, then is silent":   {side: side{share: 1, well: 20 * time.Second}, takes: 22 * time.Second, by: ByOpportunity, most: 120, text: "no answer in 22 s, of which it waited 20 s for a processor"},
		"it never gets a processor":  {side: side{share: 1, well: time.Hour}, takes: 30 * time.Second, by: ByCeiling, most: 120, text: "no answer in 30 s, of which it waited 30 s for a processor; it had only 0 ms to answer in, and is waited for no longer than 30 s"},
		"nearly no processor at all": {side: side{share: .99, well: time.Hour}, takes: 30 * time.Second, by: ByCeiling, most: 120, text: "no answer in 30 s, of which it waited 29 s for a processor; it had only 300 ms to answer in, and is waited for no longer than 30 s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := tc.side
				begin := time.Now()
				s.begun = begin
				m := Begin(&s, nil)
				done := make(chan struct{})
				if tc.answers > 0 {
					time.AfterFunc(tc.answers, func() { close(done) })
				}
				err := Wait(t.Context(), b, m, done)
				const early = time.Second                                               // how much later than need be it may come to see that a wait was over
				require.GreaterOrEqual(t, time.Since(begin), tc.takes-time.Microsecond) // share is a fraction
				require.Less(t, time.Since(begin), tc.takes+early)
				require.LessOrEqual(t, s.looks, tc.most)
				if tc.by == Open {
					require.NoError(t, err)
					return
				}
				var spent *SpentError
				require.ErrorAs(t, err, &spent)
				require.Equal(t, tc.by, spent.By)
				require.EqualError(t, err, tc.text)
			})
		})
	}
}

func TestWaitHeedsItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		enough := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, enough)
		defer cancel()
		begin := time.Now()
		require.ErrorIs(t, Wait(ctx, Budget{Opportunity: time.Minute}, Begin(nil, nil), nil), enough)
		require.Equal(t, time.Second, time.Since(begin))
	})
}

// stalls is a process of a test that stands still for an hour from one second after
// it began.
type stalls struct{ begun time.Time }

func (s stalls) Stalled() time.Duration {
	return between(0, time.Since(s.begun)-time.Second, time.Hour)
}

// An hour in which we stood still is nobody's fault, and what came in it is read
// before there is a verdict.
func TestWaitDoesNotCountOurOwnStall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		err := Wait(t.Context(), Budget{Opportunity: 2 * time.Second, Ceiling: 3 * time.Second}, Begin(nil, stalls{begin}), nil)
		var spent *SpentError
		require.ErrorAs(t, err, &spent)
		require.Equal(t, ByOpportunity, spent.By)
		require.Equal(t, time.Hour+2*time.Second+catchUp, time.Since(begin))
		require.EqualError(t, err, "no answer in 3602 s, of which this program stood still for 3600 s")
	})
}

// What is there when we look has come in time, however late we look.
func TestAnAnswerThatIsThereCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := Begin(nil, nil)
		time.Sleep(time.Hour)
		done := make(chan struct{})
		close(done)
		require.NoError(t, Wait(t.Context(), Budget{Opportunity: time.Second}, m, done))
		require.Equal(t, time.Hour, m.Opportunity())
	})
}

func TestBudget(t *testing.T) {
	t.Parallel()
	s := time.Second
	for name, tc := range map[string]struct {
		b    Budget
		m    Measure
		end  End
		left time.Duration
	}{
		"at the beginning":            {b: Budget{Opportunity: 5 * s}, left: 5 * s},
		"nothing to wait for":         {b: Budget{}, end: ByOpportunity},
		"some of it":                  {b: Budget{Opportunity: 5 * s}, m: Measure{Opportunity: 2 * s, Most: 2 * s, Listened: 9 * s}, left: 3 * s},
		"spent":                       {b: Budget{Opportunity: 5 * s}, m: Measure{Opportunity: 5 * s, Most: 5 * s, Listened: 9 * s}, end: ByOpportunity},
		"a trifle is left":            {b: Budget{Opportunity: 5 * s}, m: Measure{Opportunity: 5*s - 1, Most: 5*s - 1, Listened: 9 * s}, left: 5 * time.Millisecond},
		"the default ceiling is near": {b: Budget{Opportunity: 5 * s}, m: Measure{Listened: 99 * s}, left: s},
		"the default ceiling":         {b: Budget{Opportunity: 5 * s}, m: Measure{Listened: 100 * s}, end: ByCeiling},
		"a ceiling too low":           {b: Budget{Opportunity: 5 * s, Ceiling: s}, m: Measure{Opportunity: s, Most: s, Listened: 2 * s}, left: 3 * s},
		"undecided":                   {b: Budget{Opportunity: 5 * s}, m: Measure{Opportunity: s, Most: 5 * s, Listened: 5 * s}, left: 250 * time.Millisecond},
		"undecided for long":          {b: Budget{Opportunity: 50 * s}, m: Measure{Opportunity: s, Most: 50 * s, Listened: 50 * s}, left: 500 * time.Millisecond},
		"perhaps soon":                {b: Budget{Opportunity: 5 * s}, m: Measure{Opportunity: s, Most: 4 * s, Listened: 5 * s}, left: s},
		"after a stall":               {b: Budget{Opportunity: 5 * s}, m: Measure{Opportunity: 2 * s, Most: 2 * s, Listened: 2 * s, owed: s}, left: 4 * s},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.end, tc.b.Expired(tc.m))
			require.Equal(t, tc.left, tc.b.Left(tc.m))
		})
	}
}

func TestMeasureText(t *testing.T) {
	t.Parallel()
	s := time.Second
	for want, m := range map[string]Measure{
		"30 s, of which it waited 22 s for a processor": {Wall: 30 * s, Waited: 22 * s},
		"1.5 s":                          {Wall: 1500 * time.Millisecond, Waited: 20 * time.Millisecond},
		"120 ms":                         {Wall: 120 * time.Millisecond},
		"2 s; it is stopped by a signal": {Wall: 2 * s, Stopped: true},
		"30 s, of which it waited 22 s for a processor and it waited 3 s for a disk and this program stood still for 2.5 s": {Wall: 30 * s, Waited: 22 * s, Disk: 3 * s, Stalled: 2500 * time.Millisecond},
		"9 s; besides, the machine slept for 7200 s": {Wall: 9 * s, Slept: 2 * time.Hour},
	} {
		require.Equal(t, want, m.String())
	}
}

func TestWithin(t *testing.T) {
	t.Parallel()
	b := Budget{Opportunity: 2 * time.Second, Ceiling: 30 * time.Second}
	for name, tc := range map[string]struct {
		side  side
		takes time.Duration
	}{
		"it has its chance":      {takes: 2 * time.Second},
		"it waits, and is quiet": {side: side{share: 1, well: 20 * time.Second}, takes: 22 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := tc.side
				s.begun = time.Now()
				ctx, done := Within(t.Context(), b, &s)
				<-ctx.Done()
				require.InDelta(t, tc.takes, time.Since(s.begun), float64(time.Second))
				var spent *SpentError
				require.ErrorAs(t, context.Cause(ctx), &spent)
				done()
			})
		})
	}
	synctest.Test(t, func(t *testing.T) { // nothing is left of one that was in time
		ctx, done := Within(t.Context(), b, nil)
		time.Sleep(time.Second)
		require.NoError(t, ctx.Err())
		done()
		done()
		require.ErrorIs(t, context.Cause(ctx), context.Canceled)
	})
}

// slow is another side that is looked at for long now and then, since we stand still
// meanwhile.
type slow struct {
	look  time.Duration
	looks int
}

func (s *slow) Look(time.Time) (Sample, error) {
	if s.looks++; s.looks%2 == 0 {
		time.Sleep(s.look)
	}
	return Sample{Known: Waits}, nil
}

// mostly is a process that stands still for nine parts of ten.
type mostly struct{ begun time.Time }

func (m mostly) Stalled() time.Duration { return time.Since(m.begun) * 9 / 10 }

// What we stood still while we looked is no opportunity either, of whichever span.
func TestWeStandStillWhileWeLook(t *testing.T) {
	t.Parallel()
	for _, look := range []time.Duration{0, 50 * time.Millisecond, 300 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			m := Begin(&slow{look: look}, mostly{time.Now()})
			for range 100 {
				time.Sleep(20 * time.Millisecond)
				m.Measure()
			}
			seen := m.Measure()
			require.LessOrEqual(t, seen.Opportunity, seen.Wall/10)
			require.GreaterOrEqual(t, seen.Opportunity, seen.Wall/20)
		})
	}
}

// TestASideThatCannotBeSeenIsNotJudged: a host without descriptors cannot see whether the other side
// waits, and takes none of the time for a chance; what it sees later counts.
func TestASideThatCannotBeSeenIsNotJudged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &hidden{}
		m := Begin(s, nil)
		time.Sleep(time.Second)
		require.Equal(t, time.Second, m.Measure().Opportunity)
		s.err = fmt.Errorf("look: %w", syscall.EMFILE)
		time.Sleep(10 * time.Second)
		m.Measure()
		time.Sleep(10 * time.Second)
		require.Equal(t, time.Second, m.Measure().Opportunity)
		s.err, s.waited = nil, 15*time.Second
		require.Equal(t, 6*time.Second, m.Measure().Opportunity, "it had waited for 15 of the 20 s")
	})
}

// hidden is another side that cannot be seen while err says so.
type hidden struct {
	err    error
	waited time.Duration
}

func (h *hidden) Look(time.Time) (Sample, error) {
	return Sample{Waited: h.waited, Known: Waits}, h.err
}

// halting is stopped, and the second look at it fails.
type halting struct {
	looks int
	err   error
}

func (h *halting) Look(time.Time) (Sample, error) {
	h.looks++
	if h.looks == 2 {
		return Sample{}, h.err
	}
	return Sample{Stopped: true, Known: Waits}, nil
}

// Only the end of the other side is one: after a look that failed for another reason what it
// told before stands, and it is looked at again.
func TestALookThatFailsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, tc := range []struct {
			err     error
			stopped bool
			looks   int
		}{{err: process.ErrNoProcess, looks: 2}, {err: process.ErrUnsupported, looks: 2}, {err: fs.ErrNotExist, looks: 2}, {err: syscall.EINTR, stopped: true, looks: 3}} {
			subject := &halting{err: fmt.Errorf("look: %w", tc.err)}
			m := Begin(subject, nil)
			require.True(t, m.sample.Stopped, "%v", tc.err)
			time.Sleep(time.Second)
			seen := m.Measure()
			require.Equal(t, tc.stopped, seen.Stopped, "%v", tc.err)
			require.Equal(t, time.Second, seen.Opportunity, "%v", tc.err)
			require.Equal(t, tc.stopped, m.Measure().Stopped, "%v", tc.err)
			require.Equal(t, tc.looks, subject.looks, "%v", tc.err)
		}
	})
}
