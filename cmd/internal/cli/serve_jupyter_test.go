package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
)

// TestTheTokenForJupyterIsForATerminal prints it there alone: what a file or a log holds
// does not open the server.
func TestTheTokenForJupyterIsForATerminal(t *testing.T) {
	t.Parallel()
	for _, terminal := range []bool{true, false} {
		a, stdout, _ := testApp(t, "")
		a.Out.Terminal = terminal
		f := serveFlags{jupyter: true}
		record := client.Record{URL: "http://127.0.0.1:7", Token: "sesame"}
		require.NoError(t, a.tellWhere(f, record, "/x/serve.json", "/x/serve.html"))
		require.Contains(t, stdout.String(), "http://127.0.0.1:7/jupyter")
		if terminal {
			require.Contains(t, stdout.String(), "export JUPYTER_GATEWAY_AUTH_TOKEN=sesame\n")
		} else {
			require.NotContains(t, stdout.String(), "sesame")
			require.Contains(t, stdout.String(), `eval "$(coppice health --export jupyter)"`)
		}
		a, stdout, _ = testApp(t, "")
		f.json = true
		require.NoError(t, a.tellWhere(f, record, "/x/serve.json", "/x/serve.html"))
		require.Contains(t, stdout.String(), `"jupyter_url":"http://127.0.0.1:7/jupyter"`)
		require.NotContains(t, stdout.String(), "sesame")
	}
}
