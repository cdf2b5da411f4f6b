package jupyterapi_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/jupyterapi"
	"github.com/coppice-run/coppice/test/testpython"
)

// TestKernelsOutliveTheirServer: the next server of the same home has the kernels and the
// documents of the one before, with what was in them; a kernel whose session is gone begins
// anew, and says so.
func TestKernelsOutliveTheirServer(t *testing.T) {
	t.Parallel()
	home, cwd, left := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "jupyter.json")
	next := func() (s *server, leave func()) {
		o := coppice.Options{Home: home, Backend: coppice.Runner(coppice.RunnerOptions{}), Python: testpython.Path(t), Env: os.Environ(), KeepSessions: true, KeepFor: 10 * time.Minute}
		s, end := begin(t, o, jupyterapi.Options{Cwd: cwd, Left: left})
		return s, func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			require.True(t, s.host.Leave(ctx).Clean())
			end()
		}
	}
	s, end := next()
	var doc struct {
		ID     string
		Kernel struct{ ID string }
	}
	s.rest("POST", "/api/sessions", `{"path":"a.ipynb","name":"a","type":"notebook","kernel":{"name":"python3"}}`, http.StatusCreated, &doc)
	s.dial(doc.Kernel.ID).execute("x = 41")
	other := s.start()
	s.dial(other).execute("y = 1")
	gone := s.start()
	s.rest("DELETE", "/api/kernels/"+gone, "", http.StatusNoContent, nil)
	end()

	s, end = next()
	var list []object
	s.rest("GET", "/api/kernels", "", http.StatusOK, &list)
	require.Len(t, list, 2)
	for _, k := range list {
		require.Equal(t, "idle", k["execution_state"])
	}
	var again struct {
		Path   string
		Kernel struct{ ID string }
	}
	s.rest("GET", "/api/sessions/"+doc.ID, "", http.StatusOK, &again)
	require.Equal(t, "a.ipynb", again.Path)
	require.Equal(t, doc.Kernel.ID, again.Kernel.ID)
	all := s.dial(doc.Kernel.ID).execute("x + 1")
	require.Equal(t, object{"text/plain": "42"}, of(t, all, "execute_result")["data"])
	require.InDelta(t, 2, of(t, all, "execute_reply")["execution_count"], 0, "it goes on to count")
	for _, m := range all {
		require.False(t, isStatus(m, "restarting"), kinds(all))
	}
	require.NoError(t, s.host.Session(other, coppice.In(cwd)).Close(t.Context()))
	all = s.dial(other).execute("y")
	require.True(t, isStatus(all[0], "restarting"), kinds(all))
	end()

	// What is not a record is not taken for one, and who keeps nothing begins with nothing.
	require.NoError(t, os.WriteFile(left, []byte("{"), 0o600))
	s, end = next()
	s.rest("GET", "/api/kernels", "", http.StatusOK, &list)
	require.Empty(t, list)
	for _, id := range []string{other, doc.Kernel.ID} {
		require.NoError(t, s.host.Session(id, coppice.In(cwd)).Close(t.Context()))
	}
	end()
}
