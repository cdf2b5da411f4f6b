package supervisor

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBoxIsRewired: what is in a box already wakes its new reader, once it has one.
func TestBoxIsRewired(t *testing.T) {
	t.Parallel()
	var b box[int]
	woken := 0
	wake := func() { woken++ }
	b.rewire(wake)
	require.Zero(t, woken, "there is nothing")
	require.True(t, b.post(1))
	require.True(t, b.post(2))
	require.Equal(t, 1, woken)
	b.rewire(nil)
	b.rewire(wake)
	require.Equal(t, 2, woken)
}

// TestSliceOfABurst: it is not kept for reuse.
func TestSliceOfABurst(t *testing.T) {
	t.Parallel()
	require.Equal(t, 1024, cap(again(make([]int, 7, 1024))))
	require.Empty(t, again(make([]int, 7, 1024)))
	require.Zero(t, cap(again(make([]int, 7, 1025))))
}

// TestAlikeIdleChildren: of two that have been idle for as long, the one that was added first
// counts as the elder.
func TestAlikeIdleChildren(t *testing.T) {
	t.Parallel()
	var l childList
	first, second, elder := &child{lastDone: 5}, &child{lastDone: 5}, &child{lastDone: 4}
	for _, ch := range []*child{first, second, elder} {
		l.add(ch)
	}
	var order []*child
	for ch := l.eldest; ch != nil; ch = ch.younger {
		order = append(order, ch)
	}
	require.Len(t, order, 3)
	for i, ch := range []*child{elder, first, second} {
		require.Same(t, ch, order[i])
	}
	require.Same(t, second, l.youngest)
}
