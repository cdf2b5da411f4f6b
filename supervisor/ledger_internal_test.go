package supervisor

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestLedger: two accounts have what was taken into them and is neither settled nor moved to the
// other, whatever is done to them.
func TestLedger(t *testing.T) {
	t.Parallel()
	errOver := errors.New("over")
	rapid.Check(t, func(t *rapid.T) {
		ledgers := []*ledger{{}, {}}
		want := make([][]*ticket, 2)
		var works []Work
		index := rapid.IntRange(0, 1)
		forget := func(k *ticket) {
			for i := range want {
				want[i] = slices.DeleteFunc(slices.Clone(want[i]), func(o *ticket) bool { return o == k })
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"new": func(t *rapid.T) {
				w, _ := NewWork[int](len(works))
				works = append(works, w)
				i := index.Draw(t, "in")
				require.True(t, ledgers[i].add(w.t))
				want[i] = append(want[i], w.t)
			},
			"add again": func(t *rapid.T) {
				if len(works) == 0 {
					return
				}
				k := rapid.SampledFrom(works).Draw(t, "work").t
				if k.settled.Load() {
					return
				}
				i := index.Draw(t, "in")
				require.True(t, ledgers[i].add(k))
				if !slices.Contains(want[i], k) {
					forget(k)
					want[i] = append(want[i], k)
				}
			},
			"remove": func(t *rapid.T) {
				if len(works) == 0 {
					return
				}
				k := rapid.SampledFrom(works).Draw(t, "work").t
				i := index.Draw(t, "from")
				ledgers[i].remove(k)
				if slices.Contains(want[i], k) {
					forget(k)
				}
			},
			"settle": func(t *rapid.T) {
				if len(works) > 0 {
					w := rapid.SampledFrom(works).Draw(t, "work")
					w.Settle(1)
					forget(w.t)
				}
			},
			"": func(t *rapid.T) {
				for i, l := range ledgers {
					var got []*ticket
					for k := l.head; k != nil; k = k.next {
						require.True(t, k.next == nil || k.next.prev == k)
						got = append(got, k)
					}
					slices.Reverse(got)
					require.True(t, slices.Equal(want[i], got), "%d: %d, and not %d", i, len(got), len(want[i]))
				}
			},
		})
		for i, l := range ledgers {
			require.Equal(t, len(want[i]), l.close(errOver))
			w, _ := NewWork[int](0)
			require.False(t, l.add(w.t), "it is closed")
		}
		for _, w := range works {
			w.Settle(2) // those that were removed, too
			require.True(t, w.Settled())
		}
	})
}
