package sinks_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/sinks"
)

// The actor of a result is woken late. That must neither hold up a call that has used
// its credit, nor let what waits grow.
func TestAResultIsGatheredLateAndInBounds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		credit int64
		text   string
		n      int
		most   int64 // bytes that wait when all was emitted
	}{
		"short":            {0, "a line\n", 3, 1000},
		"many":             {0, "a line\n", 10_000, 40 * 80},
		"large":            {0, strings.Repeat("x", 9000) + "\n", 9, 16 << 10},
		"beyond a credit":  {150, "a line\n", 50, 150},
		"larger than that": {10, "a line\n", 20, 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := start(t, sinks.HubOptions{Credit: tc.credit})
				c := h.open(t, "a")
				for range tc.n {
					require.NoError(t, c.Emit(t.Context(), out(tc.text)))
				}
				synctest.Wait()
				require.LessOrEqual(t, c.InUse(0), tc.most)
				o := c.Flush(t.Context())
				require.Empty(t, o.Lost)
				require.EqualValues(t, 0, c.InUse(0))
				require.Contains(t, o.Cells[0].Text, tc.text[:5])
				c.Close()
				require.NoError(t, c.Reports()[0].Err)
				require.NoError(t, c.Emit(t.Context(), out("too late")))
			})
		})
	}
}

// A call that is closed without a flush, or while its actor works, ends in order.
func TestACallThatIsClosedAtOnceLeavesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		h := start(t, sinks.HubOptions{Artifacts: dir})
		for i := range 100 {
			c := h.open(t, fmt.Sprint(i))
			for range i {
				require.NoError(t, c.Emit(t.Context(), out(strings.Repeat("y", 100*i)+"\n")))
			}
			if i%3 == 0 {
				c.Flush(t.Context())
			}
			c.Close()
		}
		synctest.Wait()
		require.Zero(t, h.Results(), "no subscription of a result is left")
	})
}
