package mcpserver_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-run/coppice/test/notfile"
)

// TestNotebookIsNoFile: a model that names what is no notebook file, as its own code
// may have made it, is told so at once.
func TestNotebookIsNoFile(t *testing.T) {
	o := options(t)
	o.Tools.Notebooks = true
	cs := client(t, o, nil)
	for _, kind := range notfile.Kinds {
		notfile.Make(t, kind, filepath.Join(o.Cwd, "odd.ipynb"))
		for tool, args := range map[string]map[string]any{
			"notebook_read": {"path": "odd.ipynb"},
			"notebook_edit": {"path": "odd.ipynb", "edits": []any{map[string]any{"action": "insert", "source": "x"}}},
			"notebook_run":  {"path": "odd.ipynb"},
		} {
			notfile.AtOnce(t, func() {
				r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
				if err != nil || !r.IsError || !strings.Contains(text(r), "is "+string(kind)+", not a regular file; ") {
					t.Errorf("%s of %s: %v %v", tool, kind, r, err)
				}
			})
		}
		notfile.AtOnce(t, func() {
			if _, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "notebook://odd.ipynb"}); err == nil {
				t.Errorf("%s was read", kind)
			}
		})
	}
}
