//go:build linux

package toolapi_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/toolapi"
	"github.com/coppice-run/coppice/test/notfile"
	"github.com/coppice-run/coppice/test/toolbox"
)

// TestFileIsNoFile: a client that asks for what a tool has made in place of a file is
// answered, and the server ends as ever.
func TestFileIsNoFile(t *testing.T) {
	s := serve(t, toolapi.Options{}, toolbox.Tool{ID: "a"})
	status, body := s.ask("POST", "/api/tools/a/run", `{"run_id":"r1","inputs":{"do":"write","arg":{"files":1,"bytes":4}}}`)
	require.Equal(t, 200, status, body)
	runs, err := filepath.Glob(filepath.Join(s.home, ".coppice", "tool-runs", "a", "*", "r1"))
	require.NoError(t, err)
	require.Len(t, runs, 1)
	for _, kind := range notfile.Kinds {
		notfile.Make(t, kind, filepath.Join(runs[0], "odd"))
		notfile.AtOnce(t, func() {
			status, body := s.ask("GET", "/api/tools/a/files/r1/odd", "")
			if status != 404 || kind == notfile.FIFO && !strings.Contains(body, "is a FIFO, not a regular file") {
				t.Errorf("%s: %d %s", kind, status, body)
			}
		})
	}
	status, body = s.ask("GET", "/api/tools/a/files/r1/f0.bin", "")
	require.Equal(t, 200, status)
	require.Equal(t, "xxxx", body)
}
