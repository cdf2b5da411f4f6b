package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
)

// TestTheKeyOfE2BIsForATerminal prints it there alone: what a file or a log holds does
// not open the server.
func TestTheKeyOfE2BIsForATerminal(t *testing.T) {
	t.Parallel()
	for _, terminal := range []bool{true, false} {
		a, stdout, _ := testApp(t, "")
		a.Out.Terminal = terminal
		f := serveFlags{e2b: true}
		require.NoError(t, a.tellWhere(f, client.Record{URL: "http://127.0.0.1:7", Token: "sesame"}, "/x/serve.json", "/x/serve.html"))
		require.Contains(t, stdout.String(), "http://127.0.0.1:7/e2b")
		if terminal {
			require.Contains(t, stdout.String(), "export E2B_API_URL=http://127.0.0.1:7/e2b\n")
			require.Contains(t, stdout.String(), "export E2B_SANDBOX_URL=http://127.0.0.1:7/e2b\n")
			require.Contains(t, stdout.String(), "export E2B_API_KEY=sesame\n")
		} else {
			require.NotContains(t, stdout.String(), "sesame")
			require.Contains(t, stdout.String(), `eval "$(coppice health --export e2b)"`)
		}
		a, stdout, _ = testApp(t, "")
		f.json = true
		require.NoError(t, a.tellWhere(f, client.Record{URL: "http://127.0.0.1:7", Token: "sesame"}, "/x/serve.json", "/x/serve.html"))
		require.Contains(t, stdout.String(), `"e2b_url":"http://127.0.0.1:7/e2b"`)
		require.NotContains(t, stdout.String(), "sesame")
	}
}
