package main

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// step is what a client asks: one more in a session, of which it knows an epoch.
type step struct {
	session string
	epoch   int
}

// came is what it was told: how many there are in which epoch, and whether it is said that the
// session is new. Unknown: it may have been done, or not, now or later.
type came struct {
	unknown      bool
	epoch, value int
	fresh        bool
}

// counter is a session as it is: the epoch of its last call that ran, and how many have in it. Of
// an epoch that is vague it is known that it is that one or a later one.
type counter struct {
	epoch, value int
	vague        bool
}

// sessions is the model: a call runs once or not at all, in the epoch of the last one or in a later
// one, never in an older one; in a later one it counts from nothing, and is told so.
var sessions = porcupine.NondeterministicModel{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		by := map[string][]porcupine.Operation{}
		for _, o := range history {
			name := o.Input.(step).session
			by[name] = append(by[name], o)
		}
		return slices.Collect(maps.Values(by))
	},
	Init: func() []any { return []any{counter{}} },
	Step: func(state, input, output any) []any {
		was, asked, told := state.(counter), input.(step), output.(came)
		if told.unknown {
			later := counter{epoch: max(was.epoch+1, asked.epoch), value: 1, vague: true}
			more := was
			more.value++
			return []any{was, more, later}
		}
		var next []any
		add := func(ran counter) {
			if told.epoch >= asked.epoch && told.value == ran.value && told.fresh == (ran.value == 1) {
				next = append(next, ran)
			}
		}
		if was.value > 0 && (told.epoch == was.epoch || was.vague && told.epoch > was.epoch) {
			add(counter{epoch: told.epoch, value: was.value + 1})
		}
		if told.epoch > was.epoch {
			add(counter{epoch: told.epoch, value: 1})
		}
		return next
	},
	Equal:             func(a, b any) bool { return a == b },
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
	DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
}

// TestTheModelOfSessions: what must not be is not.
func TestTheModelOfSessions(t *testing.T) {
	t.Parallel()
	op := func(at int64, epoch int, told came) porcupine.Operation {
		end := at + 1
		if told.unknown {
			end = 1 << 40
		}
		return porcupine.Operation{Input: step{"s", epoch}, Output: told, Call: at, Return: end}
	}
	first := op(0, 1, came{epoch: 1, value: 1, fresh: true})
	for name, c := range map[string]struct {
		want    bool
		history []porcupine.Operation
	}{
		"counts":                     {true, []porcupine.Operation{first, op(2, 1, came{epoch: 1, value: 2})}},
		"a new epoch":                {true, []porcupine.Operation{first, op(2, 2, came{epoch: 2, value: 1, fresh: true})}},
		"on, in a later epoch":       {true, []porcupine.Operation{first, op(2, 1, came{epoch: 3, value: 1, fresh: true})}},
		"unknown ran":                {true, []porcupine.Operation{op(0, 1, came{unknown: true}), op(2, 1, came{epoch: 1, value: 2})}},
		"unknown ran in a later one": {true, []porcupine.Operation{first, op(2, 1, came{unknown: true}), op(4, 1, came{epoch: 4, value: 2})}},
		"unknown did not":            {true, []porcupine.Operation{op(0, 1, came{unknown: true}), op(2, 1, came{epoch: 1, value: 1, fresh: true})}},
		"twice":                      {false, []porcupine.Operation{first, op(2, 1, came{epoch: 1, value: 3})}},
		"lost and kept":              {false, []porcupine.Operation{first, op(2, 2, came{epoch: 2, value: 2})}},
		"an older epoch":             {false, []porcupine.Operation{op(0, 2, came{epoch: 2, value: 1, fresh: true}), op(2, 1, came{epoch: 1, value: 1, fresh: true})}},
		"older than it named":        {false, []porcupine.Operation{op(0, 2, came{epoch: 1, value: 1, fresh: true})}},
		"forgotten in its epoch":     {false, []porcupine.Operation{first, op(2, 1, came{epoch: 1, value: 1, fresh: true})}},
		"said to be kept, and new":   {false, []porcupine.Operation{op(0, 1, came{epoch: 1, value: 1})}},
	} {
		require.Equal(t, c.want, porcupine.CheckOperations(sessions.ToModel(), c.history), name)
	}
}
