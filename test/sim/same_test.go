package sim_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// TestSimIsTheSameAgain runs schedules twice, in which no two things happen at
// one instant but those that cause each other, and compares all that happened.
// Within an instant the order is the scheduler's.
func TestSimIsTheSameAgain(t *testing.T) {
	for seed := range uint64(60) {
		s := generate(seed + 1)
		if s.burst > 0 || s.o.faults.start == 0 {
			continue
		}
		first, second := simulate(t, s), simulate(t, s)
		require.Empty(t, cmp.Diff(sorted(first), sorted(second)), "seed %d", s.seed)
	}
}

// sorted is what hosts and interpreters have seen, in a fixed order. What the
// actors tell of themselves is left out: a kernel that ends by itself at the
// instant at which it is asked to may say either.
func sorted(w *world) []string {
	lines := slices.DeleteFunc(strings.Split(w.histories(), "\n"), func(s string) bool { return strings.Contains(s, "s  actor ") })
	slices.Sort(lines)
	return lines
}
