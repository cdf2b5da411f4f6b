package supervisor

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestHeard: a look at those that may be silent finds all that a look at every one finds, at
// whatever instant, and however long ago is too long.
func TestHeard(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var h heard
		var all []*child
		last := map[*child]instant{} // when each was heard of
		now := instant(time.Hour)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(*rapid.T) {
				ch := &child{order: len(all)}
				all, last[ch] = append(all, ch), now
				h.add(ch, now)
			},
			"remove": func(t *rapid.T) {
				if len(all) > 0 {
					i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
					all[i].removed = true
					all = slices.Delete(all, i, i+1)
				}
			},
			"time": func(t *rapid.T) {
				now += instant(rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "goes on"))
			},
			"heard": func(t *rapid.T) {
				for _, ch := range all {
					if rapid.Bool().Draw(t, "beats") {
						last[ch] = now
					}
				}
			},
			"": func(t *rapid.T) {
				limit := now - instant(rapid.Int64Range(0, int64(30*time.Second)).Draw(t, "patience"))
				var want, got []int
				for _, ch := range all {
					if last[ch] <= limit {
						want = append(want, ch.order)
					}
				}
				h.visit(limit, func(ch *child) instant {
					if last[ch] <= limit {
						got = append(got, ch.order)
					}
					return last[ch]
				})
				slices.Sort(want)
				slices.Sort(got)
				if !slices.Equal(want, got) {
					t.Fatalf("silent at %v for %v: %v, found %v", now, limit, want, got)
				}
			},
		})
	})
}

// TestHeardOften: those that are heard of again and again are looked at once in the time that
// they may be silent for, however often that is asked.
func TestHeardOften(t *testing.T) {
	t.Parallel()
	const second, patience, children, seconds = instant(time.Second), 10, 100, 200
	var h heard
	now := instant(time.Hour)
	for i := range children {
		h.add(&child{order: i}, now)
	}
	looks := 0
	for range seconds {
		now += second
		h.visit(now-patience*second, func(*child) instant {
			looks++
			return now
		})
	}
	if most := children * seconds / patience; looks == 0 || looks > most {
		t.Fatalf("%d looks in %d seconds at %d children, at most %d", looks, seconds, children, most)
	}
}
