package escape_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/environment"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/workspace"
)

// bombs are code that uses up what it can get.
var bombs = []struct {
	limit messages.Limit
	// or is a limit that it goes beyond as well, so that the system may end it for that before
	// anyone sees how many processes there are.
	or   messages.Limit
	code string
}{
	{messages.LimitProcesses, messages.LimitMemory, "import os, time\nwhile True:\n    if os.fork() == 0:\n        os.setsid(); time.sleep(600)"},
	{messages.LimitProcesses, messages.LimitMemory, "import os, time\nwhile True:\n    if os.fork() == 0:\n        b = bytearray(b'x') * (2 << 20); os.setsid(); time.sleep(600)"},
	{messages.LimitMemory, "", "b = []\nwhile True: b.append(bytearray(b'x') * (8 << 20))"},
	{messages.LimitDisk, "", "import itertools\nfor i in itertools.count(): open(f'f{i}', 'wb').write(bytes(1 << 20))"},
	{messages.LimitOutput, "", "while True: print('x' * 1000)"},
}

// TestBombs lets code of one workspace use up what it can get, again and again, while a
// session of another goes on answering. Every call that does not end well says by which
// limit, also one that finds the session given up. The short form has three of the bombs once,
// on one rung.
func TestBombs(t *testing.T) {
	tried := []string{kernel.IsolationUser, kernel.IsolationBubblewrap, kernel.IsolationPrivileges}
	for _, rung := range tried {
		if why := environment.LacksRung(rung); why != nil {
			t.Logf("RUNG %s as uid %d: not here: %v", rung, os.Geteuid(), why)
			continue
		}
		t.Run(rung, func(t *testing.T) { //nolint:paralleltest // it uses up what it can get
			h := host(t, python(t), rung, shared(t), func(o *coppice.Options) { o.Home, o.MaxSessions = shared(t), 8 })
			_, err := h.Workspace(t.Context(), "victim", workspace.Options{})
			require.NoError(t, err)
			w, err := h.Workspace(t.Context(), "attacker", workspace.Options{
				Total: workspace.Total{Memory: 256 << 20, Processes: 60, Output: 1 << 20}, Quota: 16 << 20,
				Limits: coppice.Limits{Runtime: 30 * time.Second},
			})
			require.NoError(t, err)
			at, by := h.Session("s", coppice.InWorkspace("victim")), h.Session("s", coppice.InWorkspace("attacker"))
			require.Equal(t, messages.OutcomeOK, call(t, at, "n = 1").Outcome)
			rounds, all := 1, bombs[:3]
			if full {
				rounds, all = 5, bombs
			}
			for range rounds {
				for _, bomb := range all {
					r := beside(t, at, func() messages.Result { return try(t, by, bomb.code, false) })
					require.NotNil(t, r.Exceeded, "%s: %s", bomb.limit, r.Text)
					require.Contains(t, []messages.Limit{bomb.limit, bomb.or}, r.Exceeded.Limit, r.Text)
					recovers(t, w, by)
				}
				for range 3 { // the session is given up for them
					r := try(t, by, bombs[2].code, false)
					require.NotNil(t, r.Exceeded, r.Text)
					require.Equal(t, messages.LimitMemory, r.Exceeded.Limit, r.Text)
					require.True(t, slices.Contains([]messages.Outcome{messages.OutcomeLost, messages.OutcomeNotStarted}, r.Outcome), r.Text)
				}
				recovers(t, w, by)
			}
		})
		if !full {
			break
		}
	}
}

// try makes a call that may fail.
func try(t *testing.T, s *coppice.Session, code string, reset bool) messages.Result {
	t.Helper()
	r, _ := s.Execute(t.Context(), coppice.Request{Reset: reset, Cells: []messages.Cell{{Code: code}}}) // the result says it, too
	return r
}

// beside does something while a session goes on answering.
func beside(t *testing.T, s *coppice.Session, do func() messages.Result) messages.Result {
	t.Helper()
	results, begun := make(chan messages.Result, 1), time.Now()
	go func() { results <- do() }() // ends with the call
	slowest, calls := time.Duration(0), 0
	for {
		select {
		case r := <-results:
			t.Logf("RUNG %s: %s after %v: %v; %d calls of a neighbour meanwhile, the slowest %v", t.Name(), r.Outcome, time.Since(begun).Round(time.Millisecond), r.Exceeded, calls, slowest.Round(time.Millisecond))
			return r
		default:
			begin := time.Now()
			require.Equal(t, messages.OutcomeOK, call(t, s, "n").Outcome)
			slowest = max(slowest, time.Since(begin))
			calls++
		}
	}
}

// clean removes what a bomb has left in the folder.
const clean = "import glob, os\nfor f in glob.glob('f*'): os.remove(f)"

// recovers waits until a session can be used again: it may meet what a bomb has left for a
// moment, and says so then.
func recovers(t *testing.T, w *workspace.Workspace, s *coppice.Session) {
	t.Helper()
	for {
		r := try(t, s, clean, true)
		if r.Outcome == messages.OutcomeOK {
			return
		}
		require.NotNil(t, r.Exceeded, r.Text)
		require.NoError(t, w.Err())
	}
}

// TestANeighbourHasItsTime compares how long the calls of a session take while the code of another
// workspace uses up what it can get, again and again, with how long they take while nothing does. The
// figures are told, and not judged: they are those of the machine as well. In a real-time class all
// but the attacker is in it.
func TestANeighbourHasItsTime(t *testing.T) {
	load := 0.0
	told, err := os.ReadFile("/proc/loadavg")
	require.NoError(t, err)
	_, err = fmt.Sscan(string(told), &load)
	require.NoError(t, err)
	tried := kernel.IsolationBubblewrap
	if environment.LacksRung(tried) != nil {
		tried = kernel.IsolationPrivileges
	}
	h := host(t, python(t), tried, shared(t), func(o *coppice.Options) { o.Home, o.MaxSessions = shared(t), 8 })
	_, err = h.Workspace(t.Context(), "victim", workspace.Options{})
	require.NoError(t, err)
	o := workspace.Options{Total: workspace.Total{Memory: 256 << 20, Processes: 100, Output: 1 << 20, Processors: 0.5}, Quota: 64 << 20}
	w, err := h.Workspace(t.Context(), "attacker", o)
	if refused, is := errors.AsType[*workspace.OptionsError](err); is {
		t.Logf("without a limit of processors: %v", refused)
		o.Total.Processors = 0
		w, err = h.Workspace(t.Context(), "attacker", o)
	}
	require.NoError(t, err)
	at, by := h.Session("s", coppice.InWorkspace("victim")), h.Session("s", coppice.InWorkspace("attacker"))
	require.Equal(t, messages.OutcomeOK, call(t, at, "n = 1").Outcome)
	calls := 50
	if full {
		calls = 1000
	}
	// Where the tests are in a real-time class (chrt -r 1), the attacker is not.
	const ordinary = "import os; os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))\n"
	const pace = 5 * time.Millisecond // one after the other would itself take the processors
	took := func(n int, until func() bool) (all []time.Duration) {
		for tick := time.NewTicker(pace); len(all) < n || !until(); <-tick.C {
			begin := time.Now()
			require.Equal(t, messages.OutcomeOK, call(t, at, "n").Outcome)
			all = append(all, time.Since(begin))
		}
		return all
	}
	p99 := func(all []time.Duration) time.Duration {
		slices.Sort(all)
		return all[len(all)*99/100]
	}
	for _, bomb := range []struct {
		limit messages.Limit
		code  string
	}{
		{messages.LimitMemory, "b = bytearray(b'x') * (1 << 30)"},
		{messages.LimitProcesses, "import subprocess\nall = [subprocess.Popen(['sleep', '600'], start_new_session=True) for _ in range(10_000)]"},
		{messages.LimitDisk, "import itertools\nfor i in itertools.count(): open(f'f{i}', 'wb').write(bytes(1 << 20))"},
		{messages.LimitOutput, "while True: print('x' * 1000)"},
	} {
		t.Run(string(bomb.limit), func(t *testing.T) { //nolint:paralleltest // it uses up what it can get
			// Windows of all kinds come by turns: what else goes on is in each.
			var quiet, beside, after []time.Duration
			ends := 0
			during := func(do func() messages.Result) (messages.Result, []time.Duration) {
				done := make(chan messages.Result, 1)
				go func() { done <- do() }() // ends with the call
				var r messages.Result
				all := took(1, func() bool {
					select {
					case r = <-done:
						return true
					default:
						return false
					}
				})
				return r, all
			}
			for ; len(beside) < calls; ends++ { // it ends before there are enough of them
				quiet = append(quiet, took(max(calls/20, len(beside)-len(quiet)), func() bool { return true })...)
				r, all := during(func() messages.Result { return try(t, by, ordinary+bomb.code, false) })
				beside = append(beside, all...)
				require.NotNil(t, r.Exceeded, "%s: %s %s", bomb.limit, r.Outcome, r.Text)
				require.Equal(t, bomb.limit, r.Exceeded.Limit, r.Text)
				for again := true; again; again = r.Outcome != messages.OutcomeOK {
					r, all = during(func() messages.Result { return try(t, by, clean, true) })
					after = append(after, all...)
					require.True(t, r.Outcome == messages.OutcomeOK || r.Exceeded != nil, r.Text)
					require.NoError(t, w.Err())
				}
			}
			usual, whole := p99(quiet), p99(slices.Concat(beside, after))
			n, worst := len(beside), p99(beside)
			t.Logf("LIMIT %s on %s, load %.1f: %d ends; p99 of %d calls of a neighbour until it was ended %v, %.2f times; of %d until it goes on %v, %.2f times; of %d while it is quiet %v; p50 %v and %v", bomb.limit, tried, load, ends,
				n, worst.Round(10*time.Microsecond), float64(worst)/float64(usual), n+len(after), whole.Round(10*time.Microsecond), float64(whole)/float64(usual), len(quiet), usual.Round(10*time.Microsecond),
				beside[n/2].Round(10*time.Microsecond), quiet[len(quiet)/2].Round(10*time.Microsecond))
		})
	}
}
