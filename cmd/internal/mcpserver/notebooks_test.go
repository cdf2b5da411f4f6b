package mcpserver_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// TestNotebooks are made, run and read by tools, and are resources; nothing
// outside of the working directory is one.
func TestNotebooks(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Tools.Notebooks = true
	cs := client(t, o, nil)
	r := call(t, cs, "notebook_edit", map[string]any{"path": "a b.ipynb", "edits": []any{map[string]any{"action": "insert", "source": "x = 6 * 7\nx"}}})
	require.False(t, r.IsError, text(r))
	r = call(t, cs, "notebook_run", map[string]any{"path": "a b.ipynb"})
	require.False(t, r.IsError, text(r))
	require.Contains(t, text(r), "[cell:0] ok\n42")
	require.Equal(t, "ok", r.StructuredContent.(map[string]any)["outcome"])
	require.Equal(t, "42", text(call(t, cs, "python", cells("x"))), "the session is shared")
	r = call(t, cs, "notebook_edit", map[string]any{"path": "a b.ipynb", "edits": []any{map[string]any{"action": "delete", "cell": 7}}})
	require.True(t, r.IsError)
	require.Contains(t, text(r), "notebook_edit: edits[0].cell: there is no cell 7")

	list, err := cs.ListResources(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, list.Resources, 1)
	require.Equal(t, "notebook://a%20b.ipynb", list.Resources[0].URI)
	read, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: list.Resources[0].URI})
	require.NoError(t, err)
	require.Equal(t, "# %% [code] cell:0\nx = 6 * 7\nx", read.Contents[0].Text)

	outside := filepath.Join(t.TempDir(), "secret.ipynb")
	b, err := os.ReadFile(filepath.Join(o.Cwd, "a b.ipynb"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(outside, b, 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(o.Cwd, "link.ipynb")))
	for _, uri := range []string{"notebook://" + outside, "notebook://../x.ipynb", "notebook://..%2Fx.ipynb", "notebook://link.ipynb", "notebook://none.ipynb", "notebook:///etc/passwd"} {
		_, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		require.Error(t, err, uri)
		require.NotContains(t, err.Error(), "6 * 7")
	}
	list, err = cs.ListResources(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, list.Resources, 1, "a link that leads out is not listed")
}
