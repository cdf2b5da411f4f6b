package kernel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/messages"
)

// starvedUntil is who gets no processor until a time has passed, and then all of it.
type starvedUntil struct{ begun, until time.Time }

func (s starvedUntil) Look(now time.Time) (opportunity.Sample, error) {
	if now.Before(s.until) {
		return opportunity.Sample{Pending: now.Sub(s.begun), Known: opportunity.Waits}, nil
	}
	return opportunity.Sample{Waited: s.until.Sub(s.begun), Known: opportunity.Waits}, nil
}

// A start is bounded by the chance that the interpreter had, not by the clock: what it
// waits for others, in whatever way, is not its own.
func TestAStartIsBoundedByItsChance(t *testing.T) {
	o := kernel.Options{StartTimeout: 10 * time.Second, StartCeiling: time.Minute}
	starve := func(d time.Duration) opportunity.Subject {
		return starvedUntil{time.Now(), time.Now().Add(d)}
	}
	for name, tc := range map[string]struct {
		waits func() []wait
		delay time.Duration
		ready bool
		at    time.Duration // at most a second later
		text  string
	}{
		"in time":     {delay: 9 * time.Second, ready: true, at: 9 * time.Second},
		"not in time": {delay: time.Hour, at: 10 * time.Second, text: "it was not ready in time: no answer in 10 s"},
		"after its turn": {
			waits: func() []wait { return []wait{{kernel.Waiting{Turn: true}, time.Hour}} }, delay: 9 * time.Second, ready: true,
			at: time.Hour + 9*time.Second,
		},
		"after the process": {
			waits: func() []wait { return []wait{{kernel.Waiting{Shared: true}, 50 * time.Second}} }, delay: 9 * time.Second, ready: true,
			at: 59 * time.Second,
		},
		"the process does not come": {
			waits: func() []wait { return []wait{{kernel.Waiting{Shared: true, Again: true}, time.Hour}} },
			at:    time.Minute, text: "no answer in 60 s",
		},
		"without a processor": {
			waits: func() []wait { return []wait{{kernel.Waiting{Subject: starve(40 * time.Second)}, 45 * time.Second}} }, delay: 9 * time.Second, ready: true,
			at: 54 * time.Second,
		},
		"without a processor for ever": {
			waits: func() []wait { return []wait{{kernel.Waiting{Subject: starve(time.Hour)}, time.Hour}} },
			at:    time.Minute, text: "no answer in 60 s, of which it waited 60 s for a processor; it had only 0 ms to answer in",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := &fakeBackend{startDelay: tc.delay}
			o := o
			o.Backend = b
			inTree(t, o, func(t *testing.T, tr *tree) {
				if tc.waits != nil {
					b.waits = tc.waits()
				}
				begin := time.Now()
				r, err := tr.begin("call", &fakeOutlet{}, "count").Wait(t.Context())
				require.GreaterOrEqual(t, time.Since(begin), tc.at)
				require.Less(t, time.Since(begin), tc.at+time.Second)
				if tc.ready {
					require.NoError(t, err)
					require.Equal(t, messages.OutcomeOK, r.Outcome, r.Reason)
					return
				}
				require.ErrorIs(t, err, kernel.ErrStart)
				require.ErrorContains(t, err, tc.text)
			})
		})
	}
}
