package console_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
)

// TestToolDir: a folder that somebody names has tools, or they hear why not.
func TestToolDir(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	tool := func(dir, id, text string) {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir, id), 0o700))
		if text != "" {
			require.NoError(t, os.WriteFile(filepath.Join(root, dir, id, "tool.json"), []byte(text), 0o600))
		}
	}
	tool("whole", "a", `{"id":"a","name":"A","inputs":[],"outputs":[]}`)
	tool("whole", "no-tool", "")
	tool("broken", "b", `{`)
	tool("none", "no-tool", "")
	for name, tc := range map[string]struct{ dir, told, err string }{
		"whole":      {dir: "whole"},
		"a broken":   {dir: "broken", told: "coppice: the tool b cannot be used: DIR/broken/b/tool.json: "},
		"no tools":   {dir: "none", told: "coppice: there are no tools in DIR/none\n"},
		"no folder":  {dir: "nope", err: "--tool-dir: there is no folder DIR/nope; coppice tool new --tools makes one"},
		"a file":     {dir: "whole/a/tool.json", err: "is not a folder of tools"},
		"none named": {},
	} {
		var stderr bytes.Buffer
		c := console.New(strings.NewReader(""), &bytes.Buffer{}, &stderr, []string{"COPPICE_HOME=" + root})
		dir := tc.dir
		if dir != "" {
			dir = filepath.Join(root, dir)
		}
		o, err := c.Tools(t.Context(), console.ToolDir(dir))
		told := strings.ReplaceAll(stderr.String(), root, "DIR")
		if tc.err != "" {
			var usage console.UsageError
			require.ErrorAs(t, err, &usage, name)
			require.Contains(t, strings.ReplaceAll(err.Error(), root, "DIR"), tc.err, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, dir != "", o != nil, name)
		require.Equal(t, tc.told == "", told == "", told)
		require.Contains(t, told, tc.told, name)
	}
}
