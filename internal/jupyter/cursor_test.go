package jupyter_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/internal/jupyter"
)

// lossy is a kernel and everything between it and its host: it forgets, and what
// is on its way is lost, repeated and overtaken. It knows nothing of cursors.
type lossy struct {
	sent      int
	forgotten map[int]bool // by the kernel
	flying    []int        // on their way, in any order
	arrived   map[int]bool // were on their way and came, or came in an answer
	got       []int        // what left the cursor: numbers, and -n for n lost
}

func (l *lossy) take(steps []jupyter.CursorStep) {
	for _, s := range steps {
		if s.Lost > 0 {
			l.got = append(l.got, -int(s.Lost))
		} else {
			l.got = append(l.got, int(s.Number))
		}
	}
}

// left returns how far the output got, and fails when it is out of order.
func (l *lossy) left(t require.TestingT) (next int) {
	next = 1
	for _, n := range l.got {
		if n < 0 {
			for i := next; i < next-n; i++ {
				require.True(t, l.forgotten[i], "%d is called lost, and the kernel remembers it", i)
				require.False(t, l.arrived[i], "%d is called lost, and it came", i)
			}
			next -= n
			continue
		}
		require.Equal(t, next, n, "twice, or out of order")
		next++
	}
	return next
}

// Whatever happens on the way, each message leaves once and in its place, or is
// counted there as lost; and it is counted only when it cannot be had any more.
func TestCursorAgainstALossyServer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := &lossy{forgotten: map[int]bool{}, arrived: map[int]bool{}}
		c := jupyter.NewCursor()
		most := rapid.IntRange(1, 8).Draw(t, "page")
		ask := func() {
			since, until := c.Question()
			require.Equal(t, l.left(t), since+1, "the question is for what is missing")
			var numbers []int64
			through, more := l.sent, false
			if until > 0 {
				through = min(through, until)
			}
			for n := since + 1; n <= through; n++ {
				if l.forgotten[n] {
					continue
				}
				if len(numbers) == most {
					through, more = int(numbers[most-1]), true
					break
				}
				numbers = append(numbers, int64(n))
			}
			// The answer counts when everything older has come or never will.
			for _, n := range l.flying {
				l.arrived[n] = true
				l.take(c.Take(int64(n)))
			}
			l.flying = nil
			for _, n := range numbers {
				l.arrived[int(n)] = true
			}
			l.take(c.Answer(numbers, int64(through), int64(l.sent), more))
		}
		t.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				for range rapid.IntRange(1, 20).Draw(t, "n") {
					l.sent++
					l.flying = append(l.flying, l.sent)
				}
			},
			"arrive": func(t *rapid.T) {
				for range rapid.IntRange(1, 20).Draw(t, "n") {
					if len(l.flying) == 0 {
						return
					}
					i := rapid.IntRange(0, min(3, len(l.flying)-1)).Draw(t, "which")
					n := l.flying[i]
					l.arrived[n] = true
					l.take(c.Take(int64(n)))
					if !rapid.Bool().Draw(t, "again") {
						l.flying = slices.Delete(l.flying, i, i+1)
					}
				}
			},
			"lose": func(t *rapid.T) {
				n := rapid.IntRange(0, len(l.flying)).Draw(t, "n")
				l.flying = l.flying[n:]
			},
			"forget": func(t *rapid.T) {
				for range rapid.IntRange(1, 5).Draw(t, "n") {
					if l.sent > 0 {
						l.forgotten[rapid.IntRange(1, l.sent).Draw(t, "which")] = true
					}
				}
			},
			"ask": func(*rapid.T) { ask() },
			"":    func(t *rapid.T) { l.left(t) },
		})
		for i := 0; l.left(t) <= l.sent; i++ {
			require.Less(t, i, l.sent+2, "no end")
			ask()
		}
		require.False(t, c.Behind())
	})
}

// Numbers that no kernel gives cost nothing.
func TestCursorAgainstAHostileServer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := jupyter.NewCursor()
		next := int64(1)
		check := func(steps []jupyter.CursorStep) {
			for _, s := range steps {
				if s.Lost > 0 {
					next += s.Lost
					continue
				}
				require.Equal(t, next, s.Number)
				next++
			}
		}
		number := rapid.OneOf(rapid.Int64Range(1, 30), rapid.Int64Range(1, 1<<53))
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) { check(c.Take(number.Draw(t, "n"))) },
			"answer": func(t *rapid.T) {
				numbers := rapid.SliceOfNDistinct(number, 0, 5, rapid.ID[int64]).Draw(t, "numbers")
				slices.Sort(numbers)
				through := number.Draw(t, "through")
				if len(numbers) > 0 {
					through = max(through, numbers[len(numbers)-1])
				}
				check(c.Answer(numbers, through, number.Draw(t, "sent"), rapid.Bool().Draw(t, "more")))
			},
			"give up": func(*rapid.T) {
				check(c.GiveUp())
				require.False(t, c.Behind())
			},
			"": func(t *rapid.T) { require.GreaterOrEqual(t, next, int64(1), fmt.Sprint(next)) },
		})
	})
}

// What waits for its turn is bounded.
func TestCursorHoldsLittle(t *testing.T) {
	t.Parallel()
	c := jupyter.NewCursor()
	for n := range int64(100_000) {
		require.Empty(t, c.Take(n+2))
	}
	require.Less(t, c.Held(), 20_000)
	require.True(t, c.Behind())
	got := len(c.Answer([]int64{1}, 1, 1, false))
	require.Equal(t, c.Next(), got)
	require.True(t, c.Behind(), "what found no room is known to be missing")
}
