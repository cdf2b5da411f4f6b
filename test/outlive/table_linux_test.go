package outlive_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel/jupyter"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/test/proc"
)

// waits is code that waits until there is a file.
const waits = "import os, time\nwhile not os.path.exists(%q): time.sleep(.005)\n"

// ends are the ways in which a host ends while something goes on in its session, where x is 0
// before, and what the next host has of that.
var ends = []struct {
	name  string
	setup string
	cells []string // of the call that runs then; %q is a file that is there once the next host is
	reset bool
	until func(events []messages.Event) bool
	leave bool // the host leaves; else it is killed
	// keeper says that what keeps the session is killed, too.
	keeper bool
	// answer is given to a question of the call.
	answer string
	// call is what the next host says of the call; "": it does not know it.
	call map[string]messages.Outcome
	// state and shows are of the next result, which shows x and n.
	state map[string]messages.State
	shows map[string]string
}{
	{name: "nothing runs", state: both(messages.StateKept), shows: both("0 None")},
	{
		name: "a cell prints", cells: []string{"print('first')\n" + waits + "print('second'); n = 1"}, until: printed1,
		call: both(messages.OutcomeOK), state: both(messages.StateKept), shows: both("0 1"),
	},
	{
		name: "the host leaves while a cell prints", leave: true, cells: []string{"print('first')\n" + waits + "print('second'); n = 1"}, until: printed1,
		call: both(messages.OutcomeOK), state: both(messages.StateKept), shows: both("0 1"),
	},
	{
		name: "a cell waits for input", cells: []string{"n = input('who? ') # %q"}, until: asks, answer: "me",
		call: both(messages.OutcomeOK), state: both(messages.StateKept), shows: both("0 me"),
	},
	{
		name: "a further cell waits for its turn", cells: []string{"print('first')\n" + waits + "n = 1", "n = 2 # %q"}, until: printed1,
		call: both(messages.OutcomeOK), state: both(messages.StateKept), shows: both("0 2"),
	},
	{
		name: "a cell runs after a reset", reset: true, cells: []string{"print('first')\n" + waits + "n = 1"}, until: printed1,
		call: both(messages.OutcomeOK), state: both(messages.StateKept), shows: both("None 1"),
	},
	{
		name: "what keeps the session is killed, too", keeper: true, cells: []string{"print('first')\n" + waits}, until: printed1,
		call: both(messages.OutcomeLost), state: both(messages.StateFresh), shows: both("None None"),
	},
}

func on[T any](runner, gateway T) map[string]T {
	return map[string]T{backends.Runner: runner, backends.Gateway: gateway}
}

func both[T any](of T) map[string]T { return on(of, of) }

func printed1(events []messages.Event) bool { return strings.Contains(textOf(events), "first") }

// TestEndsOfAHost: whatever goes on when a host ends, the next one says of the session and of
// the call what is so, on both backends.
func TestEndsOfAHost(t *testing.T) {
	for _, backend := range []string{backends.Runner, backends.Gateway} {
		for _, row := range ends {
			t.Run(backend+"/"+row.name, func(t *testing.T) {
				r := newRoleOf(t, backend == backends.Gateway)
				r.Sessions, r.Setup, r.Leave, r.Reset = 1, row.setup, row.leave, row.reset
				gate := filepath.Join(r.Home, "gate")
				var cells []string
				for _, code := range row.cells {
					cells = append(cells, fmt.Sprintf(code, gate))
				}
				if cells != nil {
					r.Calls = [][]string{cells}
				}
				v := begin(t, r)
				v.until(t, func() bool { return v.ready && (row.until == nil || row.until(v.seen[name(0)])) })
				if row.leave {
					require.NoError(t, v.stdin.Close())
					for v.next() == nil { // until it has ended
					}
					require.NoError(t, v.cmd.Wait())
					v.over = true
				} else {
					v.kill()
				}
				if row.keeper {
					r.killKeepers(t)
				}
				host := next(t, r)
				require.NoError(t, os.WriteFile(gate, nil, 0o600))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				k := byID(host)["call-s0"]
				if want := row.call[backend]; want == "" {
					require.Nil(t, k)
				} else {
					require.NotNil(t, k)
					if row.answer != "" {
						answer(ctx, t, host, k, row.answer)
					}
					result, err := k.Result(ctx)
					require.NoError(t, err)
					require.Equal(t, want, result.Outcome, result.Text)
				}
				result, err := host.Session(name(0), coppice.In(r.Home)).Execute(ctx, coppice.Request{Owner: "owner", Cells: []messages.Cell{{Code: "print(globals().get('x'), globals().get('n'))"}}})
				require.NoError(t, err)
				require.Equal(t, messages.OutcomeOK, result.Outcome, result.Text)
				require.Equal(t, row.state[backend], result.State)
				require.Equal(t, row.shows[backend], result.Cells[0].Output)
				if row.state[backend] == messages.StateFresh && !row.reset { // which was asked for
					require.NotEmpty(t, result.Reason)
				}
				require.True(t, host.Shutdown(context.Background()).Clean())
			})
		}
	}
}

// answer answers the question of a call that goes on.
func answer(ctx context.Context, t *testing.T, host *coppice.Host, k *coppice.KeptCall, text string) {
	t.Helper()
	asked := 0
	for e, err := range k.Events(ctx, 0) {
		require.NoError(t, err)
		if q, is := e.(messages.InputRequest); is {
			if asked++; asked > 1 { // the first time it was the earlier host that asked
				status, err := host.SubmitInput(q.ID, text)
				require.NoError(t, err)
				require.Equal(t, messages.InputAccepted, status)
				return
			}
		}
	}
}

// killKeepers kills what keeps the sessions of a host that has ended.
func (r role) killKeepers(t *testing.T) {
	t.Helper()
	pids := custodians(t, r)
	if r.Gateway {
		shared, err := jupyter.LookShared(t.Context(), filepath.Join(r.Home, ".coppice"))
		require.NoError(t, err)
		for _, g := range shared {
			pids = append(pids, g.PID)
		}
	}
	require.NotEmpty(t, pids)
	for _, pid := range pids {
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	if !r.Gateway {
		require.Eventually(t, func() bool { return len(proc.WithEnv(marker, r.Mark)) == 0 }, patience, 20*time.Millisecond)
	}
}

// TestNobodyComes: everything ends, and without KeepSessions with the host.
func TestNobodyComes(t *testing.T) {
	for _, backend := range []string{backends.Runner, backends.Gateway} {
		for _, plain := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, plain %v", backend, plain), func(t *testing.T) {
				r := newRoleOf(t, backend == backends.Gateway)
				r.Sessions, r.KeepFor, r.Plain = 2, 200*time.Millisecond, plain
				r.Calls = [][]string{{"import subprocess\nsubprocess.Popen(['sleep', '3600'], start_new_session=True)\nprint('first')\nwhile True: pass"}}
				v := begin(t, r)
				v.shows(t, 1, isText)
				v.kill()
				r.left(t)
			})
		}
	}
}
