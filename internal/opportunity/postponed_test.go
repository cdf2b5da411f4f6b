package opportunity

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A verdict counts as put off when a fixed limit would have been reached before: once,
// however often it is looked at, and not on a machine in order.
func TestPostponed(t *testing.T) { // alone: the count is that of the process
	b := Budget{Opportunity: 2 * time.Second, Ceiling: 30 * time.Second}
	for name, tc := range map[string]struct {
		side    side
		answers time.Duration // 0: never
		want    int64
	}{
		"it has its chance":            {},
		"it answers in time":           {side: side{share: 1, well: time.Second}, answers: time.Second},
		"it waited a moment":           {side: side{share: 1, well: 50 * time.Millisecond}},
		"it waits, then answers":       {side: side{share: 1, well: 20 * time.Second}, answers: 21 * time.Second, want: 1},
		"it waits, and then is silent": {side: side{share: .5, well: time.Hour}, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w Watch
				s, before := tc.side, Postponed()
				s.begun = time.Now()
				answer := make(chan struct{})
				if tc.answers > 0 {
					time.AfterFunc(tc.answers, func() { close(answer) })
				}
				err := Wait(t.Context(), b, Begin(&s, &w), answer)
				require.Equal(t, tc.answers > 0, err == nil, "%v", err)
				require.Equal(t, tc.want, Postponed()-before)
				require.Equal(t, tc.want, w.Postponed())
			})
		})
	}
}
