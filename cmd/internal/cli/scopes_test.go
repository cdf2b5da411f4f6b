package cli

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/cmd/internal/e2b"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/cmd/internal/jupyterapi"
	"github.com/coppice-run/coppice/cmd/internal/liveview"
	"github.com/coppice-run/coppice/cmd/internal/liveview/vitals"
	"github.com/coppice-run/coppice/cmd/internal/mcpserver"
	"github.com/coppice-run/coppice/cmd/internal/toolapi"
	"github.com/coppice-run/coppice/cmd/internal/workspaceapi"
)

// everyMount is every part that any server of this program has.
func everyMount(t *testing.T) []httpserver.Mount {
	t.Helper()
	dir := t.TempDir()
	host, err := coppice.Start(t.Context(), coppice.Options{Home: dir, Backend: coppice.Runner(coppice.RunnerOptions{}), Launcher: &launcher.Options{Dir: dir}})
	require.NoError(t, err)
	api, err := httpapi.New(httpapi.Options{Host: host, Cwd: dir})
	require.NoError(t, err)
	v := vitals.New()
	page, err := liveview.Mounts(liveview.Options{Cwd: dir, Vitals: v})
	require.NoError(t, err)
	dialect := e2b.New(e2b.Options{Host: host})
	kernels := jupyterapi.New(jupyterapi.Options{Host: host, Cwd: dir})
	protocol, err := mcpserver.New(mcpserver.Options{Host: host, Cwd: dir})
	require.NoError(t, err)
	t.Cleanup(func() {
		protocol.Close()
		kernels.Close()
		dialect.Close()
		require.NoError(t, api.Close())
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.True(t, host.Shutdown(ctx).Clean())
	})
	all := &tenants{metrics: newRegistry(), logger: slog.New(slog.DiscardHandler)}
	return slices.Concat(api.Mounts(), page, dialect.Mounts(), []httpserver.Mount{dialect.Debug(), mcpserver.Mount(protocol, mcpserver.Options{Host: host}), all.allMetrics()},
		kernels.Mounts(), toolapi.Mounts(toolapi.Options{Tools: host.Launcher()}), workspaceapi.Mounts(workspaceapi.Options{Host: host}))
}

// TestEveryRouteDeclaresItsScope: a route that says nothing is answered to no token, and
// one that changes something is not for those who may only look.
func TestEveryRouteDeclaresItsScope(t *testing.T) {
	routes := map[string]httpserver.Scope{}
	for _, m := range everyMount(t) {
		if m.Routes == nil {
			routes[m.Pattern] = m.Scope
			continue
		}
		for pattern, scope := range m.Routes.Declared() {
			method, path, found := strings.Cut(pattern, " ")
			if !found {
				method, path = "", pattern
			}
			routes[strings.TrimSpace(method+" "+m.Prefix+path)] = scope
		}
	}
	require.Greater(t, len(routes), 120)
	// What looks though it is no GET, what only says that there is nothing, and what
	// runs something by a GET.
	looks := []string{"POST /api/notebooks/show"}
	runs := []string{
		"GET /api/tools/{id}/validate", "GET /api/tools/{id}/autocomplete/{endpoint...}", "GET /jupyter/api/kernels/{id}/channels",
	}
	admin := []string{"GET /api/tenants/metrics"}
	for pattern, scope := range routes {
		method, path, found := strings.Cut(pattern, " ")
		lacking := strings.Contains(path, "/templates") || strings.Contains(path, "/volumes") || strings.Contains(path, "/secrets") || strings.HasSuffix(path, "/network")
		switch {
		case slices.Contains(admin, pattern):
			require.Equal(t, httpserver.Admin, scope, pattern)
		case slices.Contains(runs, pattern):
			require.Equal(t, httpserver.Run, scope, pattern)
		case !found, slices.Contains(looks, pattern), lacking:
			require.Contains(t, []httpserver.Scope{httpserver.Read, httpserver.Run}, scope, pattern)
		case method == "GET":
			require.Equal(t, httpserver.Read, scope, pattern)
		default:
			require.Equal(t, httpserver.Run, scope, pattern)
		}
	}
}
