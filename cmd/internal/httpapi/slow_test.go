package httpapi_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/messages"
)

// slow asks for everything that takes a body with one that never comes, of a server
// that has little patience.
func (s *server) slow() {
	t := s.t
	x, err := s.Start(t.Context(), client.Execute{Session: "slow", Cells: cells("1")})
	require.NoError(t, err)
	l, err := httpserver.Listen(t.Context(), httpserver.Options{Addr: "127.0.0.1:0", Token: token, BodyTime: 100 * time.Millisecond}, s.mounts...)
	require.NoError(t, err)
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Serve(ctx) }() // ends below
	for path, methods := range s.spec.Paths {
		if _, told := methods["post"].Responses["408"]; !told {
			continue
		}
		path = filled(strings.Replace(path, "/api/executions/{id}", "/api/executions/"+x.ID, 1))
		never, given := io.Pipe()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, l.URL()+path, never)
		require.NoError(t, err)
		req.ContentLength = 2
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Expect", "100-continue") // the transport of the tests reads other bodies itself
		resp, err := s.http.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.NoError(t, given.Close())
		require.Equal(t, http.StatusRequestTimeout, resp.StatusCode, path)
		require.True(t, resp.Close, path)
	}
	end()
	require.NoError(t, <-ended)
	require.NoError(t, s.CloseSession(t.Context(), messages.SessionKey{Session: "slow"}))
}
