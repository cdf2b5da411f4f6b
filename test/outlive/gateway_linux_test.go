package outlive_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
)

// countTo is what a cell prints that counts up to n, a message for each line.
func countTo(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

// counts is the code of that. It writes a file when it has ended.
func counts(n int, pause, over string) string {
	return fmt.Sprintf("import time\nfor n in range(%d):\n    print('line', n, flush=True); time.sleep(%s)\nopen(%q, 'w').close()\nn", n, pause, over)
}

// TestAKernelPrintsWithoutAHost: what a cell in a shared gateway prints while there is no host is
// in the result of the next one, each line once, also when it ends meanwhile, when it is far ahead, and
// when several hosts are killed one after the other.
func TestAKernelPrintsWithoutAHost(t *testing.T) {
	const few, many = 200, 1000 // a cell that is far ahead waits for its host
	_, _, rounds := size()
	for range rounds {
		r := newRoleOf(t, true)
		ended, ahead, slow := filepath.Join(r.Home, "ended"), filepath.Join(r.Home, "ahead"), filepath.Join(r.Home, "slow")
		r.Calls = [][]string{{counts(few, ".002", ended)}, {counts(many, "0", ahead)}, {counts(many, ".001", slow), "print('next', n)"}}
		r.Sessions = len(r.Calls)
		v := begin(t, r)
		most := rand.IntN(few)
		v.until(t, func() bool {
			return strings.Count(textOf(v.seen[name(0)]), "\n") >= most && len(v.seen) == len(r.Calls)
		})
		v.kill()
		t.Logf("killed when %d lines were seen", strings.Count(textOf(v.seen[name(0)]), "\n"))
		require.Eventually(t, func() bool { _, err := os.Stat(ended); return err == nil }, patience, 20*time.Millisecond)

		middle := r
		middle.Sessions, middle.Calls = 0, nil
		for range 2 {
			w := begin(t, middle)
			require.NoError(t, w.next())
			w.kill()
		}
		host := next(t, r)
		kept := byID(host)
		for i, want := range []string{countTo(few), countTo(many), countTo(many) + fmt.Sprintf("next %d\n", many-1)} {
			k := kept["call-"+name(i)]
			require.NotNil(t, k, "call %d", i)
			seen := v.seen[name(i)]
			if final(seen) { // how long it waited is of the host that tells it
				seen = seen[:len(seen)-1]
			}
			check(t, k, seen, want)
			result, err := k.Result(t.Context())
			require.NoError(t, err)
			require.Equal(t, messages.OutcomeOK, result.Outcome, result.Text)
			require.NotContains(t, result.Cells[0].Output, "not complete")
			again, err := host.Session(name(i), coppice.In(r.Home)).Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: "print(x, n)"}}})
			require.NoError(t, err)
			require.Equal(t, messages.StateKept, again.State)
			require.Equal(t, fmt.Sprint(i, " ", map[bool]int{true: few, false: many}[i == 0]-1), again.Cells[0].Output)
		}
		require.True(t, host.Shutdown(context.Background()).Clean())

		last := next(t, r) // what was told is not told again
		require.Empty(t, last.Kept())
		require.True(t, last.Shutdown(context.Background()).Clean())
		r.gone(t)
	}
}

// TestAHostOfKernelsIsKilledAtAnyInstant: a call is known to the next host and goes on to its end with
// each cell once, or it had not begun; whatever was handed on of it is there.
func TestAHostOfKernelsIsKilledAtAnyInstant(t *testing.T) {
	_, _, rounds := size()
	for range 2 * rounds {
		const calls, cells, lines = 3, 4, 5
		r := newRoleOf(t, true)
		r.Sessions, r.Setup = calls, "ran = []"
		var code, want []string
		for n := range cells {
			code = append(code, fmt.Sprintf("ran.append(%d)\nfor i in range(%d): print('cell %d line', i, flush=True)", n, lines, n))
			for i := range lines {
				want = append(want, fmt.Sprintf("cell %d line %d\n", n, i))
			}
		}
		for range calls {
			r.Calls = append(r.Calls, code)
		}
		v := begin(t, r)
		most, seen := rand.IntN(calls*cells*(lines+2)), 0
		v.until(t, func() bool {
			seen = 0
			for _, events := range v.seen {
				seen += len(events)
			}
			return v.ready && seen >= most
		})
		v.kill()
		t.Logf("killed when %d events were seen", seen)
		host := next(t, r)
		kept := byID(host)
		for i := range calls {
			all := "[0, 1, 2, 3]"
			if k := kept["call-"+name(i)]; k == nil {
				require.Empty(t, v.seen[name(i)])
				all = "[]"
			} else {
				seen := v.seen[name(i)]
				if final(seen) {
					seen = seen[:len(seen)-1]
				}
				check(t, k, seen, strings.Join(want, ""))
				result, err := k.Result(t.Context())
				require.NoError(t, err)
				require.Equal(t, messages.OutcomeOK, result.Outcome, result.Text)
			}
			result, err := host.Session(name(i), coppice.In(r.Home)).Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: "print(ran)"}}})
			require.NoError(t, err)
			require.Equal(t, messages.StateKept, result.State)
			require.Equal(t, all, result.Cells[0].Output)
		}
		require.True(t, host.Shutdown(context.Background()).Clean())
		r.gone(t)
	}
}

// TestAHostOfKernelsIsShutDown: a call that does not end in time goes on in the next host.
func TestAHostOfKernelsIsShutDown(t *testing.T) {
	r := newRoleOf(t, true)
	gate := filepath.Join(r.Home, "gate")
	r.Sessions, r.Leave, r.Shut = 1, true, true
	r.Calls = [][]string{{"print('first', flush=True)\n" + fmt.Sprintf(waits, gate) + "print('second')", "print('third')"}}
	v := begin(t, r)
	v.shows(t, 1, isText)
	require.NoError(t, v.stdin.Close())
	for v.next() == nil { // until it has ended
	}
	require.NoError(t, v.cmd.Wait())
	v.over = true
	host := next(t, r)
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	k := byID(host)["call-s0"]
	require.NotNil(t, k)
	check(t, k, nil, "first\nsecond\nthird\n")
	require.True(t, host.Shutdown(context.Background()).Clean())
}

// TestWhatIsNotedOfAKernelIsChanged: it is not believed, and the session is as it was.
func TestWhatIsNotedOfAKernelIsChanged(t *testing.T) {
	r := newRoleOf(t, true)
	r.Sessions, r.Calls = 1, [][]string{{"print('first', flush=True)\nn = 1"}}
	v := begin(t, r)
	v.until(t, func() bool { return final(v.seen[name(0)]) })
	v.kill()
	logs, err := filepath.Glob(filepath.Join(r.Home, ".coppice", "agent", "python-gateway", "sessions", "*.log"))
	require.NoError(t, err)
	require.Len(t, logs, 1)
	info, err := os.Stat(logs[0])
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	data, err := os.ReadFile(logs[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(logs[0], []byte(strings.Replace(string(data), "first", "worst", 1)), 0o600))
	host := next(t, r)
	require.Empty(t, host.Kept())
	result, err := host.Session(name(0), coppice.In(r.Home)).Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: "print(x, n)"}}})
	require.NoError(t, err)
	require.Equal(t, messages.StateKept, result.State)
	require.Equal(t, "0 1", result.Cells[0].Output)
	require.True(t, host.Shutdown(context.Background()).Clean())
}
