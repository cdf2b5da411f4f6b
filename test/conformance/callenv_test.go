//go:build linux

package conformance_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
)

// looks prints what the session has of the variables, as Python, C and a child see them.
const looks = "import os, subprocess, ctypes\ndef seen():\n    libc = ctypes.CDLL(None); libc.getenv.restype = ctypes.c_char_p\n" +
	"    return [(n, os.environ.get(n), libc.getenv(n.encode()), subprocess.run(['/bin/sh', '-c', 'echo ${' + n + '-none}'], capture_output=True, text=True).stdout.strip()) for n in ('HAD', 'NEW')]"

// before is what they are before each call, and after it.
const before = "[('HAD', 'old', b'old', 'old'), ('NEW', None, None, 'none')]"

// TestCallEnv: the variables of a call are there while its cells run, and what they were
// before afterwards, whatever became of the call, and whatever it did to them.
func TestCallEnv(t *testing.T) {
	t.Parallel()
	call := map[string]string{"HAD": "one ☃", "NEW": "two"}
	during := "[('HAD', 'one ☃', b'one \\xe2\\x98\\x83', 'one ☃'), ('NEW', 'two', b'two', 'two')]"
	for _, backend := range []string{backends.Gateway, backends.Runner} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			held(t, backend)
			s := plain(t, backend).Session("env", coppice.In(t.TempDir()))
			for i, st := range []step{
				{cells: []string{looks + "\nseen()"}, env: map[string]string{"HAD": "old"}, output: before},
				{cells: []string{"seen()"}, callEnv: call, output: during},
				{cells: []string{"print(seen())\n1 / 0"}, callEnv: call, outcome: raised, contains: []string{during}},
				{cells: []string{"os.environ['NEW'] = 'mine'; del os.environ['HAD']; os.environ['STAYS'] = 'x'", "os.environ['NEW'], 'HAD' in os.environ"}, callEnv: call, output: "('mine', False)"},
				{cells: []string{"os.environ.pop('STAYS')"}, output: "'x'"},
				{cells: []string{"os.putenv('NEW', 'hidden')"}, callEnv: call},
				{cells: []string{"kept = os.environ; os.environ = dict(os.environ)"}, callEnv: call},
				{cells: []string{"same = seen(); os.environ = kept; same == seen()"}, output: "True"},
				{cells: []string{"os.environ['NEW']"}, env: map[string]string{"NEW": "for good"}, callEnv: map[string]string{"NEW": "for now"}, output: "'for now'"},
				{cells: []string{"os.environ.pop('NEW')"}, output: "'for good'"},
				{cells: []string{"raise SystemExit"}, callEnv: call, outcome: raised},
				{cells: []string{"import time\nwhile True: time.sleep(0.01)"}, callEnv: call, timeout: time.Second, outcome: timedOut},
				{cells: []string{"try:\n    while True: time.sleep(0.01)\nexcept KeyboardInterrupt:\n    os.environ['HAD'] = 'late'\n    raise"}, callEnv: call, timeout: time.Second, outcome: timedOut},
				{cells: []string{"import asyncio\nawait asyncio.sleep(0)\nos.environ['NEW']"}, callEnv: call, output: "'two'"},
				{cells: []string{"x = ("}, callEnv: call, outcome: raised},
				{cells: []string{"!echo $NEW"}, callEnv: call, contains: []string{"two"}},
				{cells: []string{"os.environ.clear(); os.environ['HAD'] = 'z'"}, callEnv: call},
			} {
				r := run(t, s, st)
				check(t, "step "+st.cells[0], r, st, backend)
				if i > 0 {
					require.Equal(t, messages.StateKept, r.State, st.cells[0])
				}
				last := step{cells: []string{"seen()"}, output: before, state: kept}
				if st.env["NEW"] == "" && st.cells[0] != "kept = os.environ; os.environ = dict(os.environ)" {
					check(t, "after "+st.cells[0], run(t, s, last), last, backend)
				}
			}
			_, err := s.Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: "1"}}, CallEnv: map[string]string{"A=B": "secret"}})
			require.ErrorContains(t, err, "environment variable")
			require.NotContains(t, err.Error(), "secret")
		})
	}
}
