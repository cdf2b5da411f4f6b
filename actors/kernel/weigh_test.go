package kernel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
)

// The memory of an interpreter is not looked at for each of many short calls, and
// what the last of them did is seen all the same.
func TestMemoryIsLookedAtNowAndThenAndAfterTheLastCall(t *testing.T) {
	inTree(t, kernel.Options{HeartbeatEvery: 4 * time.Second}, func(t *testing.T, tr *tree) {
		rss := func() int64 {
			node, err := tr.system.Snapshot(t.Context())
			require.NoError(t, err)
			return node.Children[0].Children[0].RSS
		}
		for range 100 {
			tr.run("count")
		}
		i := tr.backend.last()
		require.LessOrEqual(t, i.weighed.Load(), int64(2), "no time has passed")
		require.EqualValues(t, 1<<20, rss())
		i.grown.Store(5 << 20)
		tr.run("count")
		time.Sleep(time.Second)
		require.EqualValues(t, 6<<20, rss(), "the last call is seen")
		seen := i.weighed.Load()
		time.Sleep(2 * time.Second)
		require.Equal(t, seen, i.weighed.Load(), "an idle interpreter is left alone")
		i.grown.Store(7 << 20)
		tr.run("count")
		require.EqualValues(t, 8<<20, rss(), "after a while it is looked at with the call")
	})
}
