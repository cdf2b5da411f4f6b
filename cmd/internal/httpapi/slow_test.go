package httpapi_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/cmd/internal/workspaceapi"
	"github.com/coppice-run/coppice/messages"
)

// slow asks for everything that takes a body with one that never comes, of a server
// that has little patience.
func (s *server) slow() {
	t := s.t
	x, err := s.Start(t.Context(), client.Execute{Session: "slow", Cells: cells("1")})
	require.NoError(t, err)
	_, err = s.CreateWorkspace(t.Context(), client.NewWorkspace{Name: "slow"})
	require.NoError(t, err)
	p, err := s.StartProcess(t.Context(), "slow", client.NewProcess{Args: []string{"cat"}, Input: true})
	require.NoError(t, err)
	const little = 100 * time.Millisecond
	mounts := slices.DeleteFunc(slices.Clone(s.mounts), func(m httpserver.Mount) bool { return strings.Contains(m.Pattern, "/api/workspaces") })
	mounts = append(mounts, workspaceapi.Mounts(workspaceapi.Options{Host: s.host, Silence: little})...)
	l, err := httpserver.Listen(t.Context(), httpserver.Options{Addr: "127.0.0.1:0", Token: token, BodyTime: little}, mounts...)
	require.NoError(t, err)
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Serve(ctx) }() // ends below
	for path, methods := range s.spec.Paths {
		for method, operation := range methods {
			if _, told := operation.Responses["408"]; !told {
				continue
			}
			at := strings.NewReplacer("/api/executions/{id}", "/api/executions/"+x.ID, "{workspace}", "slow", "{process}", p.ID).Replace(path)
			if strings.HasSuffix(at, "/files") {
				at += "?path=late"
			}
			kind := "application/json"
			if path == "/api/workspaces/{workspace}/files" && method == "post" {
				kind = "multipart/form-data; boundary=b"
			}
			never, given := io.Pipe()
			req, err := http.NewRequestWithContext(t.Context(), strings.ToUpper(method), l.URL()+filled(at), never)
			require.NoError(t, err)
			req.ContentLength = 2
			req.Header.Set("Authorization", "Bearer "+token)
			req.Header.Set("Content-Type", kind)
			req.Header.Set("Expect", "100-continue") // the transport of the tests reads other bodies itself
			resp, err := s.http.Do(req)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.NoError(t, given.Close())
			require.Equal(t, http.StatusRequestTimeout, resp.StatusCode, "%s %s", method, path)
			require.True(t, resp.Close, path)
		}
	}
	end()
	require.NoError(t, <-ended)
	require.NoError(t, s.EndWorkspace(t.Context(), "slow"))
	require.NoError(t, s.CloseSession(t.Context(), messages.SessionKey{Session: "slow"}))
}
