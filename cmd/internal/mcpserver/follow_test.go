//go:build linux

package mcpserver_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/mcpserver"
	"github.com/coppice-run/coppice/test/testpython"
)

// TestPythonIsOfferedWhenItCanBeUsed: a client that was given bash alone hears of the tool
// for Python when that comes to run, without asking for it, and can call it.
func TestPythonIsOfferedWhenItCanBeUsed(t *testing.T) {
	t.Parallel()
	python := filepath.Join(t.TempDir(), "python")
	require.NoError(t, os.WriteFile(python, []byte("#!/bin/sh\necho 'it is broken' >&2\nexit 1\n"), 0o700))
	host, err := coppice.Start(t.Context(), coppice.Options{Home: t.TempDir(), Backend: coppice.Runner(coppice.RunnerOptions{}), Python: python, Bash: true, Env: os.Environ()})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.True(t, host.Shutdown(ctx).Clean())
	})
	changed := make(chan struct{}, 16)
	o := mcpserver.Options{Host: host, Version: "test", Cwd: t.TempDir(), LookAgain: 100 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
	cs := client(t, o, &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} }})
	tools := func() map[string]string {
		all := map[string]string{}
		for tool, err := range cs.Tools(t.Context(), nil) {
			require.NoError(t, err)
			all[tool.Name] = tool.Description
		}
		return all
	}
	before := tools()
	require.NotContains(t, before, "python")
	require.Contains(t, before["bash"], "There is no tool for Python in this session")

	works := python + ".works"
	require.NoError(t, os.WriteFile(works, []byte("#!/bin/sh\nexec '"+testpython.Path(t)+"' \"$@\"\n"), 0o700))
	require.NoError(t, os.Rename(works, python))
	require.Eventually(t, func() bool {
		select {
		case <-changed:
			_, there := tools()["python"]
			return there
		default:
			return false
		}
	}, time.Minute, 10*time.Millisecond)
	require.NotContains(t, tools()["bash"], "There is no tool for Python")
	require.Equal(t, "42", text(call(t, cs, "python", cells("40 + 2"))))
}
