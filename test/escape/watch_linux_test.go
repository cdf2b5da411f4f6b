package escape_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/environment"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/workspace"
)

// watches hears of a file in the working directory, and says what may not be watched.
const watches = `import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
queue = libc.inotify_init1(os.O_NONBLOCK)
assert libc.inotify_add_watch(queue, b'.', 0x100) > 0, os.strerror(ctypes.get_errno())
open('made', 'w').close()
assert b'made' in os.read(queue, 4096)
print('good')`

// TestASessionWatchesItsWorkspace: also where the folder is the host's alone, and opened to a
// session's own user by an access list.
func TestASessionWatchesItsWorkspace(t *testing.T) {
	for _, rung := range rungs {
		if why := environment.LacksRung(rung); why != nil {
			t.Logf("RUNG %s: not here: %v", rung, why)
			continue
		}
		t.Run(rung, func(t *testing.T) { //nolint:paralleltest // beside the others it takes longer
			h := host(t, python(t), rung, shared(t), func(o *coppice.Options) { o.Home = shared(t) })
			_, err := h.Workspace(t.Context(), "w", workspace.Options{})
			require.NoError(t, err)
			r := call(t, h.Session("s", coppice.InWorkspace("w")), watches)
			require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
			require.Contains(t, r.Text, "good")
			if rung == kernel.IsolationUser {
				r = call(t, h.Session("s", coppice.InWorkspace("w")), "print(os.stat('.').st_uid == os.getuid())")
				require.Contains(t, r.Text, "False", "the folder is another's")
			}
		})
	}
}
