package opportunity

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/process"
)

type thread = process.Thread

const (
	asleep  = process.Asleep
	wanting = process.Wanting
)

func TestLedger(t *testing.T) {
	t.Parallel()
	const s = time.Second
	type look struct {
		at                    time.Duration
		threads               []thread
		waited, disk, pending time.Duration
	}
	one := func(state process.ThreadState, ran, waited time.Duration, turns uint64) []thread {
		return []thread{{ID: 1, State: state, Ran: ran, Waited: waited, Turns: turns, Counted: true}}
	}
	two := func(a, b thread) []thread { a.ID, b.ID = 1, 2; return []thread{a, b} }
	blind := func(state process.ThreadState, ran time.Duration) []thread {
		return []thread{{ID: 1, State: state, Ran: ran}}
	}
	for name, looks := range map[string][]look{
		"it sleeps":              {{threads: one(asleep, 5*s, 3*s, 9)}, {at: 9 * s, threads: one(asleep, 5*s, 3*s, 9)}},
		"it runs":                {{threads: one(wanting, 0, 0, 1)}, {at: 9 * s, threads: one(wanting, 9*s, 0, 1)}},
		"it is stopped":          {{threads: one(process.Halted, 0, 0, 1)}, {at: 9 * s, threads: one(process.Halted, 0, 0, 1)}},
		"it shares a processor":  {{threads: one(wanting, 0, 0, 1)}, {at: 9 * s, threads: one(wanting, 3*s, 6*s, 90), waited: 6 * s}},
		"it waits all the time":  {{threads: one(asleep, 0, 0, 1)}, {at: 3 * s, threads: one(wanting, 0, 0, 1), pending: 3 * s}, {at: 5 * s, threads: one(wanting, 0, 0, 1), pending: 5 * s}, {at: 6 * s, threads: one(asleep, s/2, 4*s, 2), waited: 4 * s}},
		"it wants by chance":     {{threads: one(asleep, 0, 0, 1)}, {at: 3 * s, threads: one(wanting, 0, 0, 5), pending: 3 * s}, {at: 4 * s, threads: one(asleep, 0, s/10, 6), waited: s / 10}},
		"a disk":                 {{threads: one(process.OnDisk, 0, 0, 1)}, {at: 3 * s, threads: one(process.OnDisk, 0, 0, 1), disk: 3 * s}, {at: 4 * s, threads: one(asleep, 0, 0, 2), disk: 3 * s}},
		"a wait from before":     {{threads: one(wanting, 0, 0, 1)}, {at: 2 * s, threads: one(asleep, 0, 60*s, 2), waited: 2 * s}},
		"at the same time":       {{threads: two(one(wanting, 0, 0, 1)[0], one(wanting, 0, 0, 1)[0])}, {at: 4 * s, threads: two(one(asleep, 0, 3*s, 2)[0], one(asleep, 0, 4*s, 2)[0]), waited: 4 * s}},
		"one after the other":    {{threads: two(one(asleep, 0, 0, 1)[0], one(asleep, 0, 0, 1)[0])}, {at: 4 * s, threads: two(one(asleep, 0, 4*s, 2)[0], one(asleep, 0, 0, 1)[0]), waited: 4 * s}, {at: 8 * s, threads: two(one(asleep, 0, 4*s, 2)[0], one(asleep, 0, 4*s, 2)[0]), waited: 8 * s}},
		"a new thread":           {{threads: one(asleep, 0, 0, 1)}, {at: 2 * s, threads: two(one(asleep, 0, 0, 1)[0], one(asleep, 0, s, 1)[0]), waited: s}},
		"its number again":       {{threads: one(asleep, 9*s, 9*s, 90)}, {at: 2 * s, threads: one(asleep, 0, s, 1), waited: s}},
		"not counted, it waits":  {{threads: blind(wanting, 0)}, {at: 4 * s, threads: blind(wanting, s), waited: 3 * s}, {at: 5 * s, threads: blind(asleep, s), waited: 3 * s}},
		"not counted, by chance": {{threads: blind(asleep, 0)}, {at: 4 * s, threads: blind(wanting, s), pending: 3 * s}, {at: 5 * s, threads: blind(asleep, s)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l ledger
			for _, x := range looks {
				l.add(time.Unix(1e9, 0).Add(x.at), x.threads)
				require.Equal(t, x.waited, l.waited, "waited at %v", x.at)
				require.Equal(t, x.disk, l.disk, "disk at %v", x.at)
				require.Equal(t, x.pending, l.pending, "pending at %v", x.at)
			}
		})
	}
}
