package main

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// step is what a client asks: one more in a session, in the epoch that it knows.
type step struct {
	session string
	epoch   int
}

// came is what it was told. Unknown: it may have been done, or not, now or later.
type came struct {
	unknown bool
	value   int
	fresh   bool
}

// counter is a session as it is: the epoch of its last call that ran, and how many have in it.
type counter struct{ epoch, value int }

// sessions is the model: a call runs in the epoch that it names or not at all, that of a session
// only grows, and with each it counts from nothing.
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
		var next []any
		if asked.epoch >= was.epoch {
			ran := counter{asked.epoch, 1}
			if asked.epoch == was.epoch {
				ran.value = was.value + 1
			}
			if told.unknown || told.value == ran.value && told.fresh == (ran.value == 1) {
				next = append(next, ran)
			}
		}
		if told.unknown {
			next = append(next, was)
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
	for name, c := range map[string]struct {
		want    bool
		history []porcupine.Operation
	}{
		"counts":                   {true, []porcupine.Operation{op(0, 1, came{value: 1, fresh: true}), op(2, 1, came{value: 2})}},
		"a new epoch":              {true, []porcupine.Operation{op(0, 1, came{value: 1, fresh: true}), op(2, 2, came{value: 1, fresh: true})}},
		"unknown ran":              {true, []porcupine.Operation{op(0, 1, came{unknown: true}), op(2, 1, came{value: 2})}},
		"unknown did not":          {true, []porcupine.Operation{op(0, 1, came{unknown: true}), op(2, 1, came{value: 1, fresh: true})}},
		"twice":                    {false, []porcupine.Operation{op(0, 1, came{value: 1, fresh: true}), op(2, 1, came{value: 3})}},
		"lost and kept":            {false, []porcupine.Operation{op(0, 1, came{value: 1, fresh: true}), op(2, 2, came{value: 2})}},
		"an older epoch":           {false, []porcupine.Operation{op(0, 2, came{value: 1, fresh: true}), op(2, 1, came{value: 1, fresh: true})}},
		"forgotten in its epoch":   {false, []porcupine.Operation{op(0, 1, came{value: 1, fresh: true}), op(2, 1, came{value: 1, fresh: true})}},
		"said to be kept, and new": {false, []porcupine.Operation{op(0, 1, came{value: 1, fresh: false})}},
	} {
		require.Equal(t, c.want, porcupine.CheckOperations(sessions.ToModel(), c.history), name)
	}
}
