//go:build linux

package integration_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
)

func TestCells(t *testing.T) {
	t.Parallel()
	host := shared(t)
	s := session(host, t.Name())

	r := run(t, s, cells("x=40", "x+2"))
	require.Equal(t, messages.OutcomeOK, r.Outcome, "%+v", r)
	require.Equal(t, messages.StateFresh, r.State)
	require.Equal(t, "gateway", r.Backend)
	require.Equal(t, "42", strings.TrimSpace(r.Cells[1].Output))
	for _, c := range r.Cells {
		require.Equal(t, messages.CellComplete, c.Status)
	}

	r = run(t, s, cells("print(1)", "1/0", "print(3)"))
	require.Equal(t, messages.OutcomeError, r.Outcome)
	require.Equal(t, messages.StateKept, r.State)
	require.Equal(t, "ZeroDivisionError", r.Cells[1].Error.Name)
	require.Equal(t, messages.CellPending, r.Cells[2].Status)
	require.Contains(t, r.Text, "Cell 2 failed (exit code 1)")
	require.Contains(t, r.Text, "ZeroDivisionError: division by zero")
	require.Equal(t, "40", strings.TrimSpace(run(t, s, cells("x")).Text))

	rich := run(t, s, cells("from IPython.display import display, HTML, JSON, Markdown\ndisplay(Markdown('**m**'))\ndisplay(JSON({'a': 1}))"))
	require.Equal(t, messages.OutcomeOK, rich.Outcome)
	require.Contains(t, rich.Text, "**m**")
	require.JSONEq(t, `{"a":1}`, string(rich.JSON[0]))

	r = run(t, s, cells("input('name? ')"))
	require.Equal(t, messages.OutcomeError, r.Outcome)
	require.True(t, r.StdinRequested)
	require.Contains(t, r.Text, "interactive input is not supported")
}

func TestCwdEnvironmentAndImports(t *testing.T) {
	t.Parallel()
	host := shared(t)
	dir := t.TempDir()
	s := host.Session(t.Name(), coppice.In(dir))
	req := cells("import os, sys\nprint(os.getcwd() == os.path.realpath("+quote(dir)+"))\nprint("+quote(dir)+" in sys.path)\nprint(os.environ['MARK'])",
		"print('KG_AUTH_TOKEN' in os.environ, any('TOKEN' in k for k in os.environ))")
	req.Env = map[string]string{"MARK": "naïve \"quoted\" \\ 🌲\nline"}
	r := run(t, s, req)
	require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
	require.Equal(t, "True\nTrue\nnaïve \"quoted\" \\ 🌲\nline", strings.TrimSpace(r.Cells[0].Output))
	require.Equal(t, "False False", strings.TrimSpace(r.Cells[1].Output))

	_, err := host.Session("", coppice.In(dir+"/none")).Execute(t.Context(), cells("1"))
	require.ErrorContains(t, err, "Working directory does not exist: "+dir+"/none")
}

func quote(s string) string { return "'" + s + "'" }

func TestATimeoutEndsTheCellAndKeepsTheSession(t *testing.T) {
	t.Parallel()
	host := shared(t)
	s := session(host, t.Name())
	require.Equal(t, messages.OutcomeOK, run(t, s, cells("kept = 'here'")).Outcome)
	for name, code := range map[string]string{
		"loop":  "while True: pass",
		"sleep": "import time; time.sleep(100)",
		"await": "import asyncio\nawait asyncio.sleep(100)",
	} {
		t.Run(name, func(t *testing.T) {
			req := cells(code)
			req.Timeout = time.Second
			r := run(t, s, req)
			require.Equal(t, messages.OutcomeTimeout, r.Outcome, r.Text)
			require.Equal(t, messages.StateKept, r.State)
			require.Contains(t, r.Text, "Command timed out after 1 seconds")
			require.Equal(t, "'here'", strings.TrimSpace(run(t, s, cells("kept")).Text))
		})
	}
}

func TestACellThatSwallowsTheInterruptLosesTheState(t *testing.T) {
	t.Parallel()
	host := shared(t)
	s := session(host, t.Name())
	run(t, s, cells("gone = 1"))
	req := cells("import time\nwhile True:\n    try:\n        time.sleep(10)\n    except KeyboardInterrupt: pass")
	req.Timeout = time.Second
	r := run(t, s, req)
	require.Equal(t, messages.OutcomeTimeout, r.Outcome)
	require.Equal(t, messages.StateLost, r.State)
	require.Contains(t, r.Text, "Command timed out after 1 seconds")

	r = run(t, s, cells("'gone' in globals()"))
	require.Equal(t, messages.StateFresh, r.State)
	require.Contains(t, r.Text, "False")
}

func TestACallerThatLeavesInterruptsItsCallOnly(t *testing.T) {
	t.Parallel()
	host := shared(t)
	s := session(host, t.Name())
	run(t, s, cells("n = 7"))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(500*time.Millisecond, cancel)
	r, err := s.Execute(ctx, cells("import time; time.sleep(60)"))
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeCancelled, r.Outcome)
	require.Equal(t, messages.StateKept, r.State)
	require.Equal(t, "7", strings.TrimSpace(run(t, s, cells("n")).Text))
}

func TestAKernelThatKillsItselfIsLost(t *testing.T) {
	t.Parallel()
	host := shared(t)
	s := session(host, t.Name())
	run(t, s, cells("x = 1"))
	r := run(t, s, cells("print('before', flush=True)", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "x"))
	require.Equal(t, messages.OutcomeLost, r.Outcome)
	require.Equal(t, messages.StateLost, r.State)
	require.Contains(t, r.Cells[0].Output, "before")
	require.Equal(t, messages.CellPending, r.Cells[2].Status)

	r = run(t, s, cells("'x' in globals()"))
	require.Equal(t, messages.StateFresh, r.State)
	require.Contains(t, r.Text, "False")
}

func TestAnIdleKernelThatIsKilledGrowsBackOnce(t *testing.T) {
	t.Parallel()
	host := shared(t)
	s := session(host, t.Name())
	run(t, s, cells("x = 1"))
	first := kernels(t, host)[s.Key().ID()]
	require.NotZero(t, first)
	require.NoError(t, syscall.Kill(first, syscall.SIGKILL))
	require.Eventually(t, func() bool {
		pid := kernels(t, host)[s.Key().ID()]
		return pid != 0 && pid != first
	}, time.Minute, 50*time.Millisecond, "no new kernel")
	r := run(t, s, cells("'x' in globals()"))
	require.Equal(t, messages.StateFresh, r.State)
	require.Contains(t, r.Text, "False")
	require.NotEmpty(t, r.Reason)
}

func TestStreamEndsWithTheResult(t *testing.T) {
	t.Parallel()
	host := shared(t)
	s := session(host, t.Name())
	var types []string
	var text strings.Builder
	seq := uint64(0)
	for e, err := range s.Stream(t.Context(), cells("for i in range(3): print(i, flush=True)", "6*7")) {
		require.NoError(t, err)
		seq++
		require.Equal(t, seq, e.Pos().Seq)
		types = append(types, e.Type())
		if st, ok := e.(messages.Stream); ok {
			text.WriteString(st.Text)
		}
	}
	require.Equal(t, "0\n1\n2\n", text.String())
	require.Equal(t, "final", types[len(types)-1])
	require.Contains(t, types, "result")

	// A consumer that leaves interrupts the call and gets its session back.
	for _, err := range s.Stream(t.Context(), cells("import time\nfor i in range(1000): print(i, flush=True); time.sleep(.05)")) {
		require.NoError(t, err)
		break
	}
	require.Equal(t, messages.StateKept, run(t, s, cells("i")).State)
}

// TestHostsFunctionPanicsInStream: the panic is the caller's, as it is in Execute, and
// the session is well.
func TestHostsFunctionPanicsInStream(t *testing.T) {
	t.Parallel()
	s := session(shared(t), t.Name())
	r := cells("1+1")
	r.OnQueued = func() { panic("on purpose") }
	require.PanicsWithValue(t, "on purpose", func() {
		for _, err := range s.Stream(t.Context(), r) {
			require.NoError(t, err)
		}
	})
	require.Equal(t, "42", run(t, s, cells("6*7")).Text)
}

func TestOddOutput(t *testing.T) {
	t.Parallel()
	host := shared(t)
	s := session(host, t.Name())

	r := run(t, s, cells("import sys\nsys.stdout.flush(); import os; os.write(1, b'raw \\xff\\xfe bytes\\n'); print('\\udc80 lone')"))
	require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)

	r = run(t, s, cells("print('x' * 10_000_000)"))
	require.Equal(t, messages.OutcomeOK, r.Outcome)
	require.NotNil(t, r.Truncation)
	require.Less(t, len(r.Text), 200_000)

	r = run(t, s, cells("from IPython.display import display, Image\nimport base64\npng = base64.b64decode('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==')\nfor _ in range(100): display(Image(png))"))
	require.Equal(t, messages.OutcomeOK, r.Outcome)
	require.NotEmpty(t, r.Images)
}
