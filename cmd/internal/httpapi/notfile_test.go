package httpapi_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
	"github.com/coppice-run/coppice/notebook"
	"github.com/coppice-run/coppice/test/notfile"
)

// TestNotebookIsNoFile: a client that names what is no notebook file, as code may have
// made it, is answered at once at every door.
func TestNotebookIsNoFile(t *testing.T) {
	s := serve(t, coppice.Options{}, httpapi.Options{})
	for _, kind := range notfile.Kinds {
		notfile.Make(t, kind, filepath.Join(s.cwd, "odd.ipynb"))
		for route, body := range map[string]string{
			"/api/notebooks/show":  `{"path":"odd.ipynb"}`,
			"/api/notebooks/apply": `{"path":"odd.ipynb","text":"# %%\nx"}`,
			"/api/notebooks/run":   `{"path":"odd.ipynb","session":"s"}`,
		} {
			notfile.AtOnce(t, func() {
				status, answer := s.ask("POST", route, body)
				if status != 422 || !strings.Contains(answer, "is "+string(kind)+", not a regular file; ") {
					t.Errorf("%s %s: %d %s", route, kind, status, answer)
				}
			})
		}
	}
	path := filepath.Join(s.cwd, "large.ipynb")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Truncate(path, notebook.MaxFile+1))
	status, answer := s.ask("POST", "/api/notebooks/show", `{"path":"large.ipynb"}`)
	require.Equal(t, 422, status)
	require.Contains(t, answer, "at most 512 MiB are read")
}
