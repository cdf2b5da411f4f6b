package httpserver_test

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
)

// ask returns the status and the text of an answer to a request without a token.
func ask(t *testing.T, client *http.Client, url string) (int, string) {
	t.Helper()
	r, err := client.Get(url)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Body.Close()) }()
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return r.StatusCode, string(text)
}

func TestHealthAndReadinessAreSaidWithoutAToken(t *testing.T) {
	t.Parallel()
	leave, left := make(chan struct{}), make(chan struct{})
	s, err := httpserver.Listen(t.Context(), httpserver.Options{
		Addr: "127.0.0.1:0", Token: "sesame",
		Ending: func(context.Context) { close(leave); <-left },
	})
	require.NoError(t, err)
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	for _, path := range []string{"/healthz", "/readyz"} {
		status, text := ask(t, client, s.URL()+path)
		require.Equal(t, http.StatusOK, status, path)
		require.JSONEq(t, `{"ok":true}`, text, path)
	}
	status, _ := ask(t, client, s.URL()+"/anything")
	require.Equal(t, http.StatusUnauthorized, status)

	end()
	<-leave
	status, text := ask(t, client, s.URL()+"/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.JSONEq(t, `{"ok":false}`, text)
	status, _ = ask(t, client, s.URL()+"/healthz")
	require.Equal(t, http.StatusOK, status)
	close(left)
	require.NoError(t, <-ended)
}
