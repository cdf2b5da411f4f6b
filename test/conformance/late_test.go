//go:build linux

package conformance_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
)

// TestLateOutput: what a thread prints after its cell is shown by the next one, between
// marks, and no more than is kept of it.
func TestLateOutput(t *testing.T) {
	t.Parallel()
	for _, backend := range []string{backends.Gateway, backends.Runner} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			held(t, backend)
			cwd := t.TempDir()
			s := plain(t, backend).Session("late", coppice.In(cwd))
			between := func(round int, prints, next string) messages.Result {
				gone, printed := fmt.Sprintf("go%d", round), filepath.Join(cwd, fmt.Sprintf("printed%d", round))
				r := run(t, s, step{cells: []string{fmt.Sprintf(`import os, threading, time
def late():
    while not os.path.exists(%q): time.sleep(0.01)
    %s
    open(%q, 'w').close()
t = threading.Thread(target=late); t.start()`, gone, prints, printed)}})
				require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
				require.NoError(t, os.WriteFile(filepath.Join(cwd, gone), nil, 0o600))
				require.Eventually(t, func() bool { _, err := os.Stat(printed); return err == nil }, 3*time.Minute, 10*time.Millisecond)
				return run(t, s, step{cells: []string{next}})
			}
			const begins, ends = "[late output] Background code of earlier cells printed this between the cells:", "[end of late output]"
			wait := "; import sys; sys.stdout.flush(); time.sleep(0.5)" // the streams of a kernel have a timer of their own
			r := between(1, "print('too late')"+wait, "print('now')")
			require.Equal(t, begins+"\ntoo late\n"+ends+"\nnow", r.Text)
			r = run(t, s, step{cells: []string{"print('again')"}})
			require.Equal(t, "again", r.Text, "once")
			r = between(2, "print('too late')"+wait, "1 / 0")
			require.True(t, strings.HasPrefix(r.Text, begins+"\ntoo late\n"+ends+"\n"), r.Text)
			require.Equal(t, messages.OutcomeError, r.Outcome)
			r = between(3, "print('x' * 200_000 + 'end')"+wait, "2")
			require.Regexp(t, `\(the first \d+ characters were not kept\)`, r.Text)
			require.Contains(t, r.Text, "xend\n"+ends+"\n2")
			r = between(4, "print('too late')"+wait, "pass")
			require.Equal(t, begins+"\ntoo late\n"+ends, r.Text)
		})
	}
}

// TestDescriptorsBelongToTheirCell: what a cell or its child writes to a descriptor at its
// very end is output of that cell, each time.
func TestDescriptorsBelongToTheirCell(t *testing.T) {
	t.Parallel()
	for _, backend := range []string{backends.Gateway, backends.Runner} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			held(t, backend)
			s := plain(t, backend).Session("descriptors", coppice.In(t.TempDir()))
			// A thread that reads gets its turn when the cell waits for something, not before.
			r := run(t, s, step{cells: []string{"import os, sys; sys.setswitchinterval(1)"}})
			require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
			for n := range 300 {
				line := fmt.Sprintf("line %d of descriptor 1", n)
				r := run(t, s, step{cells: []string{fmt.Sprintf("_ = os.write(1, b'%s\\n')", line)}})
				require.Equal(t, line, strings.TrimSpace(r.Text), "cell %d", n)
			}
		})
	}
}
