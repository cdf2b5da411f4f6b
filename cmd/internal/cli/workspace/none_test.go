package workspace

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
)

// TestNoSuchWorkspace: what a command line names may have ended, which does not make it a wrong one.
func TestNoSuchWorkspace(t *testing.T) {
	for _, line := range []string{"show nope", "change nope --label a=b", "end nope", "files nope", "get nope a " + filepath.Join(t.TempDir(), "a"), "exec nope -- ls"} {
		home, _ := serve(t, nil)
		_, _, err := run(t, home, "", strings.Fields(line)...)
		require.ErrorContains(t, err, "workspaces/nope", line)
		exit, decided := errors.AsType[*console.Exit](err)
		require.False(t, decided && exit.Code == console.Usage, "%s: %v", line, err)
	}
}
