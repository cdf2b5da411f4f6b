package jupyter

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// What answers a request from before an execution, on another socket and from another
// thread of the kernel, may come after its end: that is no loss. It is one when it has not
// come during a whole execution more.
func TestAnAnswerThatIsLateIsNoLoss(t *testing.T) {
	t.Parallel()
	k := &Kernel{}
	next := 0
	comes := func(numbers ...int) {
		for _, n := range numbers {
			k.numbers.observe(fmt.Sprintf("kernel_7_%d", n))
		}
	}
	run := func(lost int) (dropped int64) { // an execution of which so many messages never come
		m := k.markLocked()
		comes(next)
		next += 1 + lost
		comes(next, next+1)
		next += 2
		return k.droppedLocked(m)
	}
	require.Zero(t, run(0))
	require.EqualValues(t, 2, run(2))

	k.owed.ask("ping")
	next++ // its reply has this number
	late := next - 1
	require.Zero(t, run(0), "it is on its way")
	comes(late)
	for range answersOfAnAsk {
		k.owed.answer("ping")
	}
	require.EqualValues(t, 1, run(1), "all answers have come")

	// Answers that come while an execution goes on take nothing from what it lost.
	k.owed.ask("ping")
	m := k.markLocked()
	comes(next, next+1, next+2, next+6)
	for range answersOfAnAsk {
		k.owed.answer("ping")
	}
	require.EqualValues(t, 3, k.droppedLocked(m))
	next += 7
	m = k.markLocked()
	comes(next-2, next, next+2) // the first is from before
	require.EqualValues(t, 1, k.droppedLocked(m))
	next += 3

	k.owed.ask("never answered")
	require.Zero(t, run(3))
	require.EqualValues(t, 3, run(3), "that of an execution ago is not waited for")
	require.Empty(t, k.owed.open)
}
