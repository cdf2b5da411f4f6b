//go:build linux

package conformance_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/test/testpython"
)

// What the README says that one backend refuses is refused, and the refusal names
// the other one.
func TestWhatOneBackendRefuses(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]coppice.Options{
		"memory":    {Backend: backends.Named(backends.Gateway), Limits: coppice.Limits{Memory: 1 << 30}},
		"processor": {Backend: backends.Named(backends.Gateway), Limits: coppice.Limits{CPU: time.Second}},
		"processes": {Backend: backends.Named(backends.Gateway), Limits: coppice.Limits{Processes: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := backends.Runner
			if o.Backend.Name() == other {
				other = backends.Gateway
			}
			o.Python, o.Home = testpython.Path(t), t.TempDir()
			_, err := coppice.Start(t.Context(), o)
			require.ErrorIs(t, err, coppice.ErrOptions)
			require.ErrorContains(t, err, "use the "+other+" backend")
		})
	}
	t.Run("fork", func(t *testing.T) {
		t.Parallel()
		host := plain(t, backends.Gateway)
		_, err := host.Session("a", coppice.In(t.TempDir())).Fork(t.Context(), coppice.ForkOptions{Copies: 1})
		refused, ok := errors.AsType[*messages.ForkRefused](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, messages.ForkUnsupported, refused.Reason)
	})
}

// TestTheBridgeVariables are there where a host offers functions, and open
// nothing to others.
func TestTheBridgeVariables(t *testing.T) {
	t.Parallel()
	host := start(t, backends.Gateway, coppice.Options{HostCalls: coppice.HostCallOptions{Functions: functions(nil)}})
	s := host.Session("", coppice.In(t.TempDir()))
	require.NoError(t, os.WriteFile(s.Key().Cwd+"/call.py", []byte(`
import json, os, sys, urllib.error, urllib.request
def post(path="/v1/tool", token=os.environ["PI_TOOL_BRIDGE_TOKEN"], body=None, **more):
    q = {"session": os.environ["PI_TOOL_BRIDGE_SESSION"], "run": "1", "name": "add", "args": {"X": 1, "Y": 2}, **more}
    req = urllib.request.Request(os.environ["PI_TOOL_BRIDGE_URL"] + path, json.dumps(q).encode() if body is None else body, {"Authorization": "Bearer " + token})
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(req) as r: return r.status, json.load(r)
    except urllib.error.HTTPError as e: return e.code, json.load(e)
print(post(), post(name="key", args={}), post(path="/other"), post(token="x"), post(body=b"{"), post(run=""), post(session="other"), sep="\n")
`), 0o600))
	r := run(t, s, step{cells: []string{"import subprocess, sys\nprint(subprocess.run([sys.executable, 'call.py'], capture_output=True, text=True).stdout)"}})
	require.Equal(t, []string{
		"(200, {'ok': True, 'value': 3})",
		`(200, {'ok': False, 'error': "no page 'x'", 'error_type': 'KeyError'})`,
		"(404, {'ok': False, 'error': 'there is only POST /v1/tool', 'error_type': 'HostCallError'})",
		"(403, {'ok': False, 'error': 'the token is not that of a session', 'error_type': 'HostCallError'})",
		"(400, {'ok': False, 'error': 'Invalid JSON body', 'error_type': 'HostCallError'})",
		"(400, {'ok': False, 'error': 'Missing session/run/name', 'error_type': 'HostCallError'})",
		"(200, {'ok': False, 'error': 'No active Python tool bridge session: other:1', 'error_type': 'HostCallError'})",
	}, strings.Split(strings.TrimSpace(r.Cells[0].Output), "\n"))
}
