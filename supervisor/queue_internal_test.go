package supervisor

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestQueue: a queue is the list of what was put in and not taken out, whatever is done to it.
func TestQueue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var f fifo
		var want []Work
		n := 0
		made := func() Work {
			n++
			w, _ := NewWork[int](n)
			return w
		}
		settled := func(w Work) bool { return w.Settled() }
		t.Repeat(map[string]func(*rapid.T){
			"push": func(*rapid.T) {
				w := made()
				f.push(w)
				want = append(want, w)
			},
			"push many": func(*rapid.T) {
				for range 40 {
					w := made()
					f.push(w)
					want = append(want, w)
				}
			},
			"put back": func(*rapid.T) {
				w := made()
				f.pushFront(w)
				want = slices.Insert(want, 0, w)
			},
			"pop": func(t *rapid.T) {
				for range rapid.IntRange(1, 50).Draw(t, "how many") {
					if len(want) > 0 {
						require.True(t, f.peek().same(want[0]))
						require.True(t, f.pop().same(want[0]))
						want = want[1:]
					}
				}
			},
			"remove": func(t *rapid.T) {
				require.False(t, f.remove(made()), "it was never there")
				if len(want) > 0 {
					i := rapid.IntRange(0, len(want)-1).Draw(t, "which")
					require.True(t, f.remove(want[i]))
					require.False(t, f.remove(want[i]))
					want = slices.Delete(slices.Clone(want), i, i+1)
				}
			},
			"settle": func(t *rapid.T) {
				for _, w := range want {
					if rapid.Bool().Draw(t, "is settled") {
						w.Settle(ErrGone)
					}
				}
			},
			"trim": func(*rapid.T) {
				f.trim()
				for len(want) > 0 && want[0].Settled() {
					want = want[1:]
				}
			},
			"drop": func(t *rapid.T) {
				want = slices.DeleteFunc(slices.Clone(want), settled)
				require.Equal(t, len(want), f.drop())
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(want), f.len())
				require.Equal(t, len(want) == 0, f.l == nil, "an empty one has no memory")
				require.True(t, slices.EqualFunc(want, f.all(), Work.same))
			},
		})
	})
}

// TestQueueForgets what has left it, also when it is never empty.
func TestQueueForgets(t *testing.T) {
	t.Parallel()
	for _, most := range []int{5, 200} {
		var f fifo
		for i := range 10_000 {
			w, _ := NewWork[int](i)
			f.push(w)
			if i >= most {
				require.Equal(t, i-most, f.pop().Msg)
			}
		}
		require.Equal(t, most, f.len())
		require.Less(t, len(f.l.w), 3*most+100)
	}
}
