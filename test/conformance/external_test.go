//go:build linux

package conformance_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/external"
	"github.com/coppice-run/coppice/test/proc"
	"github.com/coppice-run/coppice/test/testpython"
)

// eventually asks until the answer is yes, for half a minute.
func eventually(yes func() bool) bool {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(30 * time.Second); !yes(); <-tick.C {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// The same behaviours on servers that somebody else runs, with their default
// settings: they restart kernels that die, limit the rate of output, and do not
// list kernels.
func TestConformanceOfExternalServers(t *testing.T) {
	for _, kind := range external.Kinds(external.JupyterServer) {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			server := external.Start(t, kind, external.Options{BasePath: "/some/base"})
			host := start(t, coppice.BackendGateway, coppice.Options{},
				"PI_PYTHON_GATEWAY_URL="+server.URL+"/", "PI_PYTHON_GATEWAY_TOKEN="+server.Token, "KERNEL_USERNAME=somebody")
			conform(t, host, coppice.BackendGateway)
			require.NotContains(t, server.Log(), server.Token, "the token is in the server's log")
			var left []proc.Process
			if !eventually(func() bool { left = proc.WithEnv("HOME", server.Dir); return len(left) == 1 }) {
				require.Empty(t, left, "more than the server is left behind")
			}
		})
	}
}

// The same where the interpreter has Jupyter Server and no Kernel Gateway: then we
// run that.
func TestConformanceOfOurJupyterServer(t *testing.T) {
	t.Parallel()
	host := start(t, coppice.BackendGateway, coppice.Options{Python: testpython.JupyterServerOnly(t)})
	if os.Getenv("COPPICE_TEST_FULL") != "" {
		conform(t, host, coppice.BackendGateway)
		return
	}
	s := host.Session(messages.SessionKey{Session: "a", Cwd: t.TempDir()})
	for _, st := range []step{{cells: []string{"x = 41"}}, {cells: []string{"print(x + 1)"}, state: kept, output: "42"}} {
		check(t, "a short one", run(t, s, st), st, coppice.BackendGateway)
	}
}
