package httpapi_test

import (
	"net/http"
	"runtime"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
)

// totals asks for limits of everything together, and for what is used of them.
func (s *server) totals() {
	t, ctx := s.t, s.t.Context()
	total := client.WorkspaceTotal{Output: 1 << 20}
	if runtime.GOOS == "linux" {
		total.Memory, total.Processes = 1<<30, 50
	}
	made, err := s.CreateWorkspace(ctx, client.NewWorkspace{Name: "t", Total: total, Isolation: &client.Isolation{Private: true}})
	require.NoError(t, err)
	require.Equal(t, total, made.Total)
	if runtime.GOOS == "linux" {
		require.Regexp(t, "control group", made.Kept)
	}
	for runtime.GOOS == "linux" && made.Usage == nil { // it is looked at within a second
		made, err = s.Workspace(ctx, "t")
		require.NoError(t, err)
	}
	status, answer := s.ask("POST", "/api/workspaces", `{"name":"t","total":{"output_bytes":7}}`)
	require.Equal(t, http.StatusConflict, status, answer)
	require.NoError(t, s.EndWorkspace(ctx, "t"))
}
