package outlive_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
)

// lines is how many lines a cell prints before it waits for the gate, and as many after.
const lines = 1500

// printing prints, waits until there is a file, and prints on.
func printing(gate string) []string {
	return []string{
		// One stream after the other, so that no two lines come as one event.
		fmt.Sprintf("import sys\nfor n in range(%d): print('line', n, '.' * 60, file=(sys.stdout, sys.stderr)[n %% 2])", lines),
		fmt.Sprintf(`import os, sys, time
while not os.path.exists(%q): time.sleep(.005)
for n in range(%d, %d): print('line', n, '.' * 60)
print('end', file=sys.stderr)
x`, gate, lines, 2*lines),
	}
}

func printed() string {
	var b strings.Builder
	for n := range 2 * lines {
		fmt.Fprintf(&b, "line %d %s\n", n, strings.Repeat(".", 60))
	}
	return b.String() + "end\n"
}

// size is how many sessions there are, of how many a call runs, and how often.
func size() (sessions, calls, rounds int) {
	if os.Getenv("COPPICE_TEST_FULL") != "" {
		return 200, 20, 10
	}
	return 20, 4, 1
}

// TestAHostIsKilled: the next one has all sessions with their variables, and the results of
// the calls that ran, with every event under its number.
func TestAHostIsKilled(t *testing.T) {
	sessions, calls, rounds := size()
	for range rounds {
		r := newRole(t)
		gate := filepath.Join(r.Home, "gate")
		r.Sessions, r.Calls = sessions, slices.Repeat([][]string{printing(gate)}, calls)
		v := begin(t, r)
		seen, most := 0, rand.IntN(calls*lines)
		counted := map[string]int{}
		v.until(t, func() bool {
			for session, events := range v.seen {
				seen += strings.Count(textOf(events[counted[session]:]), "\n")
				counted[session] = len(events)
			}
			return seen > most && len(v.seen) == calls || seen >= calls*lines
		})
		v.kill()
		t.Logf("killed when %d lines were seen", seen)

		host := next(t, r)
		kept := byID(host)
		require.NoError(t, os.WriteFile(gate, nil, 0o600))
		for i := range calls {
			k := kept["call-"+name(i)]
			require.NotNil(t, k, "call %d", i)
			check(t, k, v.seen[name(i)], printed())
			result, err := k.Result(t.Context())
			require.NoError(t, err)
			require.Equal(t, messages.OutcomeOK, result.Outcome, result.Reason)
			require.Equal(t, messages.StateKept, result.State)
		}
		for i := range sessions {
			result, err := host.Session(name(i), coppice.In(r.Home)).Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: "print(x)"}}})
			require.NoError(t, err)
			require.Equal(t, messages.StateKept, result.State)
			require.Equal(t, fmt.Sprint(i), result.Cells[0].Output)
		}
		require.True(t, host.Shutdown(context.Background()).Clean())
		r.gone(t)
	}
}

func byID(host *coppice.Host) map[string]*coppice.KeptCall {
	all := map[string]*coppice.KeptCall{}
	for _, k := range host.Kept() {
		all[k.ID] = k
	}
	return all
}

// check compares the events of a call with those that the host before had handed on, and
// with all that the call has printed.
func check(t *testing.T, k *coppice.KeptCall, seen []messages.Event, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var all []messages.Event
	for e, err := range k.Events(ctx, 0) {
		require.NoError(t, err)
		require.Equal(t, uint64(len(all)+1), e.Pos().Seq)
		all = append(all, e)
	}
	require.GreaterOrEqual(t, len(all), len(seen))
	for i, e := range seen {
		require.Equal(t, e, all[i])
	}
	require.Equal(t, text, textOf(all))
}
