//go:build linux

package integration_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
)

// starving takes the processor from the kernel that runs it, for five seconds. Several
// burn it: they may be of low priority themselves, as in tests that run with nice.
const starving = `
import subprocess, sys, os, time
child = subprocess.Popen([sys.executable, '-c', '''
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
kernel, all = sys.argv[1], os.sched_getaffinity(0)
one = {min(all)}
def each(policy, cpus):
    for tid in map(int, os.listdir('/proc/' + kernel + '/task')):
        os.sched_setaffinity(tid, cpus)
        os.sched_setscheduler(tid, policy, os.sched_param(0))
os.sched_setaffinity(0, one)
end = time.monotonic() + 5
each(os.SCHED_IDLE, one)
others = [0 for _ in range(7)]
for i in range(7):
    others[i] = os.fork()
    if others[i] == 0:
        while time.monotonic() < end: pass
        os._exit(0)
while time.monotonic() < end: pass
each(os.SCHED_OTHER, all)
for pid in others: os.waitpid(pid, 0)
''', str(os.getpid())])
while True: time.sleep(1)
`

// A kernel that has no processor when it is interrupted keeps its state: it had no
// chance to heed that.
func TestAKernelWithoutAProcessorKeepsItsState(t *testing.T) {
	host := start(t, coppice.Options{Backend: backends.Named(backends.Gateway)})
	s := session(host, t.Name())
	require.Equal(t, messages.OutcomeOK, run(t, s, cells("x = 40")).Outcome)
	request := cells(starving)
	request.Timeout = time.Second
	begin := time.Now()
	r := run(t, s, request)
	require.Equal(t, messages.OutcomeTimeout, r.Outcome, "%+v", r)
	require.Greater(t, time.Since(begin), 4*time.Second, "it had a processor")
	r = run(t, s, cells("x + 2"))
	require.Equal(t, messages.StateKept, r.State, "%+v", r)
	require.Contains(t, r.Text, "42")
}
