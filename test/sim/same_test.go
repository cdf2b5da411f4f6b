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
	for seed := range uint64(100) {
		s := generate(seed + 1)
		if s.burst > 0 {
			continue
		}
		first, second := simulate(t, s), simulate(t, s)
		require.Empty(t, cmp.Diff(sorted(first), sorted(second)), "seed %d", s.seed)
	}
}

func sorted(w *world) []string {
	lines := strings.Split(w.histories(), "\n")
	slices.Sort(lines)
	return lines
}
