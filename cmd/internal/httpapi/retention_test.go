package httpapi

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/internal/eventlog"
)

// The oldest of those that have ended are forgotten first; what runs stays, and so does the
// newest.
func TestRetention(t *testing.T) {
	t.Parallel()
	const entry = 1000
	for name, tc := range map[string]struct {
		keep   Retention
		ages   []time.Duration // since they ended, the oldest first; negative: it runs
		untold int             // of how many, the oldest, nobody has seen the end
		left   string
	}{
		"the defaults":              {ages: []time.Duration{25 * time.Hour, 23 * time.Hour, 0}, left: "1 2"},
		"too many":                  {keep: Retention{Keep: 2}, ages: []time.Duration{4, 3, 2, 1}, left: "2 3"},
		"nobody has seen the first": {keep: Retention{Keep: 2}, ages: []time.Duration{4, 3, 2, 1}, untold: 1, left: "0 2 3"},
		"nobody has seen many":      {keep: Retention{Keep: 1}, ages: make([]time.Duration, 20), untold: 19, left: "3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19"},
		"too much that was not":     {keep: Retention{KeepBytes: 2 * entry}, ages: []time.Duration{3, 2, 1, 0}, untold: 4, left: "2 3"},
		"too old":                   {keep: Retention{KeepFor: time.Minute}, ages: []time.Duration{time.Hour, time.Second}, left: "1"},
		"too much":                  {keep: Retention{KeepBytes: 2 * entry}, ages: []time.Duration{3, 2, 1, 0}, left: "2 3"},
		"one that alone is more":    {keep: Retention{KeepBytes: 1}, ages: []time.Duration{2, 1}, left: "1"},
		"the newest is old":         {keep: Retention{KeepFor: time.Minute}, ages: []time.Duration{2 * time.Hour, time.Hour}, left: "1"},
		"those that run stay":       {keep: Retention{Keep: 1, KeepBytes: 1}, ages: []time.Duration{-1, 3, -1, 2, -1}, left: "0 2 3 4"},
		"and are not counted":       {keep: Retention{Keep: 2}, ages: []time.Duration{3, -1, 2, -1, -1}, left: "0 1 2 3 4"},
		"where nothing is over":     {keep: Retention{Keep: 1}, ages: []time.Duration{-1, -1}, left: "0 1"},
		"where there never was one": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			logger := slog.New(slog.DiscardHandler)
			a := &API{o: Options{Retention: tc.keep.settle(), Logger: logger}, table: map[string]*execution{}}
			for n, age := range tc.ages {
				x := &execution{log: eventlog.New(eventlog.Options{Dir: t.TempDir(), Memory: 1 << 20, Max: 1 << 20}), ended: make(chan struct{})}
				t.Cleanup(func() { x.close(logger) })
				x.info = client.Execution{ID: fmt.Sprint(n), State: client.Running}
				x.told.Store(n >= tc.untold)
				require.NoError(t, x.log.Append(func(uint64) ([]byte, error) { return make([]byte, entry), nil }))
				if age >= 0 {
					x.info.State, x.info.Ended = client.Ended, time.Now().Add(-age)
					close(x.ended)
				}
				a.order, a.table[x.info.ID] = append(a.order, x), x
			}
			a.forgetLocked()
			var left []string
			for _, x := range a.order {
				left = append(left, x.info.ID)
				require.Same(t, x, a.table[x.info.ID])
			}
			require.Equal(t, tc.left, strings.Join(left, " "))
			require.Len(t, a.table, len(left))
		})
	}
}
