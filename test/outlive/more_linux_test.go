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
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/test/proc"
)

// shows waits until a call of the victim has shown an event of a kind.
func (v *victim) shows(t *testing.T, calls int, is func(messages.Event) bool) {
	t.Helper()
	v.until(t, func() bool {
		for i := range calls {
			shown := false
			for _, e := range v.seen[name(i)] {
				shown = shown || is(e)
			}
			if !shown {
				return false
			}
		}
		return true
	})
}

func isText(e messages.Event) bool { _, is := e.(messages.Stream); return is }

// custodians returns the processes that keep the sessions of a test: their folder is that
// of the test.
func custodians(t *testing.T, r role) []int {
	t.Helper()
	var pids []int
	for _, p := range proc.WithArgument("coppice-custodian") {
		if dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", p.PID)); err == nil && strings.HasPrefix(dir, r.Home) {
			pids = append(pids, p.PID)
		}
	}
	return pids
}

// TestWhatIsOpenWhenAHostIsKilled: a question is asked again, and answered; a call of a
// function of that host fails; a call is interrupted by its next host; one that had ended
// has its result; and a host that is killed in its turn has lost nothing either.
func TestWhatIsOpenWhenAHostIsKilled(t *testing.T) {
	t.Run(backends.Runner, func(t *testing.T) {
		whatIsOpen(t, newRoleOf(t, false), "whether it ran, and how far, is not known")
	})
	t.Run(backends.Gateway, func(t *testing.T) { whatIsOpen(t, newRoleOf(t, true), "the host cannot be reached") })
}

// whatIsOpen is the test for a backend. called is what code is told of a function of the host.
func whatIsOpen(t *testing.T, r role, called string) {
	t.Helper()
	r.Calls = [][]string{
		{"print('first'); print(input('who? '))"},
		{"print('first')\ntry:\n    tool.never()\nexcept Exception as e:\n    print(type(e).__name__, e)"},
		{"print('first')\nimport time\ntry:\n    time.sleep(3600)\nexcept KeyboardInterrupt:\n    print('interrupted')\n    raise"},
		{"print('first')"},
		{"print('first')\nx += 1", "import time\nprint('second')\ntime.sleep(3600)"},
	}
	r.Sessions = len(r.Calls)
	v := begin(t, r)
	v.shows(t, len(r.Calls), isText)
	v.until(t, func() bool {
		return asks(v.seen[name(0)]) && final(v.seen[name(3)]) && strings.Contains(textOf(v.seen[name(4)]), "second") && v.calls == 1
	})
	v.kill()

	middle := r
	middle.Sessions, middle.Calls = 0, nil
	second := begin(t, middle)
	require.NoError(t, second.next()) // it is ready
	second.kill()

	host := next(t, r)
	kept := byID(host)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	asked := false
	for e, err := range kept["call-s0"].Events(ctx, uint64(len(v.seen[name(0)]))) {
		require.NoError(t, err)
		if q, is := e.(messages.InputRequest); is && !asked {
			asked = true
			status, err := host.SubmitInput(q.ID, "me")
			require.NoError(t, err)
			require.Equal(t, messages.InputAccepted, status)
		}
	}
	require.True(t, asked)
	kept["call-s2"].Cancel()
	kept["call-s4"].Cancel()
	want := []struct {
		outcome messages.Outcome
		text    string
	}{
		{messages.OutcomeOK, "me"},
		{messages.OutcomeOK, called},
		{messages.OutcomeCancelled, "interrupted"},
		{messages.OutcomeOK, "first"},
		{messages.OutcomeCancelled, "first"},
	}
	for i, w := range want {
		result, err := kept["call-"+name(i)].Result(ctx)
		require.NoError(t, err)
		require.Equal(t, w.outcome, result.Outcome, "call %d: %s", i, result.Text)
		require.Equal(t, messages.StateKept, result.State)
		require.Contains(t, result.Cells[0].Output, w.text)
		require.Equal(t, 1, strings.Count(result.Cells[0].Output, "first"))
		again, err := host.Session(name(i), coppice.In(r.Home)).Execute(ctx, coppice.Request{Cells: []messages.Cell{{Code: "x"}}})
		require.NoError(t, err)
		require.Equal(t, messages.StateKept, again.State)
	}
	require.True(t, host.Shutdown(context.Background()).Clean())
}

func asks(events []messages.Event) bool {
	for _, e := range events {
		if _, is := e.(messages.InputRequest); is {
			return true
		}
	}
	return false
}

func final(events []messages.Event) bool {
	if len(events) == 0 {
		return false
	}
	_, is := events[len(events)-1].(messages.Final)
	return is
}

// TestAHostIsKilledWithinACharacter: what was written of it before and after are one, where a
// cell waits within one and where it writes byte for byte.
func TestAHostIsKilledWithinACharacter(t *testing.T) {
	const many = 400
	r := newRole(t)
	gate := filepath.Join(r.Home, "gate")
	r.Calls = [][]string{
		{fmt.Sprintf(`import os, sys, time
os.write(1, b'a ' + '\U0001f600'.encode()[:2])
os.write(2, b'b ' + '\u20ac'.encode()[:1])
print('half', file=sys.stderr)
while not os.path.exists(%q): time.sleep(.005)
os.write(1, '\U0001f600'.encode()[2:] + b' c\n')
os.write(2, '\u20ac'.encode()[1:] + b' d\n')`, gate)},
		{fmt.Sprintf("import os, time\nfor n in range(%d):\n    for b in '\u00e9\u20ac\U0001f600'.encode():\n        os.write(1, bytes([b])); time.sleep(.0005)", many)},
	}
	r.Sessions = len(r.Calls)
	v := begin(t, r)
	v.until(t, func() bool {
		return strings.Contains(textOf(v.seen[name(0)]), "half") && len(v.seen[name(1)]) > many/4
	})
	v.kill()
	host := next(t, r)
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	kept := byID(host)
	check(t, kept["call-s0"], v.seen[name(0)], "a b half\n\U0001f600 c\n\u20ac d\n")
	check(t, kept["call-s1"], v.seen[name(1)], strings.Repeat("\u00e9\u20ac\U0001f600", many))
	for i := range r.Calls {
		result, err := kept["call-"+name(i)].Result(t.Context())
		require.NoError(t, err)
		require.Equal(t, messages.OutcomeOK, result.Outcome, result.Reason)
		require.Empty(t, result.Reason)
	}
	require.True(t, host.Shutdown(context.Background()).Clean())
}

// TestAHostIsFollowedTwiceWhileACellIsSilent: what the second host asked the session while the
// cell had shown nothing is answered when the third one runs the next cell: it is not that
// cell's answer.
func TestAHostIsFollowedTwiceWhileACellIsSilent(t *testing.T) {
	t.Run(backends.Runner, func(t *testing.T) { followedTwice(t, newRoleOf(t, false)) })
	t.Run(backends.Gateway, func(t *testing.T) { followedTwice(t, newRoleOf(t, true)) })
}

func followedTwice(t *testing.T, r role) {
	t.Helper()
	begun, speak, end := filepath.Join(r.Home, "begun"), filepath.Join(r.Home, "speak"), filepath.Join(r.Home, "end")
	r.Sessions, r.Calls = 1, [][]string{{
		fmt.Sprintf("import os, time\nopen(%q, 'w').close()\nfor gate in (%q, %q):\n    while not os.path.exists(gate): time.sleep(.005)\n    print('spoken', flush=True)", begun, speak, end),
		"print('second')",
	}}
	v := begin(t, r)
	v.until(t, func() bool { return len(v.seen[name(0)]) > 0 })
	require.Eventually(t, func() bool { _, err := os.Stat(begun); return err == nil }, patience, 5*time.Millisecond)
	v.kill()

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	second := next(t, r)
	require.NoError(t, os.WriteFile(speak, nil, 0o600))
	for e, err := range byID(second)["call-s0"].Events(ctx, 0) {
		require.NoError(t, err)
		if isText(e) {
			break
		}
	}
	second.Leave(ctx)

	host := next(t, r)
	require.NoError(t, os.WriteFile(end, nil, 0o600))
	k := byID(host)["call-s0"]
	check(t, k, v.seen[name(0)], "spoken\nspoken\nsecond\n")
	result, err := k.Result(ctx)
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeOK, result.Outcome, result.Text)
	require.True(t, host.Shutdown(context.Background()).Clean())
}

// TestAHostLeaves: what it leaves goes on, also a call that runs.
func TestAHostLeaves(t *testing.T) {
	r := newRole(t)
	gate := filepath.Join(r.Home, "gate")
	r.Sessions, r.Calls, r.Leave = 3, [][]string{printing(gate)}, true
	v := begin(t, r)
	v.shows(t, 1, isText)
	require.NoError(t, v.stdin.Close())
	for v.next() == nil { // until it has ended
	}
	require.NoError(t, v.cmd.Wait())
	v.over = true
	host := next(t, r)
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	check(t, byID(host)["call-s0"], nil, printed())
	result, err := host.Session(name(2), coppice.In(r.Home)).Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: "x"}}})
	require.NoError(t, err)
	require.Equal(t, messages.StateKept, result.State)
	require.Equal(t, "2", result.Cells[0].Output)
	require.True(t, host.Shutdown(context.Background()).Clean())
}

// TestTheProcessThatKeepsIsKilled: a host that lives goes on, and knows that its sessions
// end with it; when there is none, they are told as lost.
func TestTheProcessThatKeepsIsKilled(t *testing.T) {
	r := newRole(t)
	host := next(t, r)
	first, err := host.Session("s0", coppice.In(r.Home)).Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: "x = 1"}}})
	require.NoError(t, err)
	require.Equal(t, messages.StateFresh, first.State)
	require.True(t, host.Keeps())
	for _, pid := range custodians(t, r) {
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	require.Eventually(t, func() bool { return !host.Keeps() }, patience, 10*time.Millisecond)
	for _, s := range []string{"s0", "other"} {
		again, err := host.Session(s, coppice.In(r.Home)).Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: "1"}}})
		require.NoError(t, err)
		require.Equal(t, messages.OutcomeOK, again.Outcome)
	}
	require.True(t, host.Shutdown(context.Background()).Clean())
	r.gone(t)

	r.Sessions, r.Calls = 2, [][]string{{"print('first')\nimport time\ntime.sleep(3600)"}}
	v := begin(t, r)
	v.shows(t, 1, isText)
	v.kill()
	left := custodians(t, r)
	require.NotEmpty(t, left)
	for _, pid := range left {
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	require.Eventually(t, func() bool { return len(proc.WithEnv(marker, r.Mark)) == 0 }, patience, 20*time.Millisecond)
	host = next(t, r)
	kept := byID(host)
	require.Contains(t, kept, "call-s0")
	result, err := kept["call-s0"].Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeLost, result.Outcome)
	require.Equal(t, messages.StateLost, result.State)
	after, err := host.Session("s1", coppice.In(r.Home)).Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: "1"}}})
	require.NoError(t, err)
	require.Equal(t, messages.StateFresh, after.State)
	require.Contains(t, after.Reason, "the process that kept the session")
	require.True(t, host.Shutdown(context.Background()).Clean())
}
