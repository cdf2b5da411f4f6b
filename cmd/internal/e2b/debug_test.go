package e2b_test

import (
	"context"
	"log/slog"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/e2b"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
)

// TestDebug: one sandbox is open without a token, to clients of this machine that are no
// pages, and nothing else is.
func TestDebug(t *testing.T) {
	t.Parallel()
	s := serve(t)
	api := e2b.New(e2b.Options{Host: s.host, Logger: slog.New(slog.DiscardHandler)})
	l, err := httpserver.Listen(t.Context(), httpserver.Options{Addr: "127.0.0.1:0"}, api.Debug())
	require.NoError(t, err)
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Serve(ctx) }() // ends with ctx
	t.Cleanup(func() {
		end()
		require.NoError(t, <-ended)
		api.Close()
	})
	other := s.make(`{}`)
	other.write("f", "secret")

	// What the SDKs send, with the id of another sandbox, which does not count.
	as := []string{"E2b-Sandbox-Id", other.id, "E2b-Sandbox-Port", "49983"}
	require.Equal(t, http.StatusNoContent, s.ask("GET", l.URL()+"/health", "", as...).status)
	require.Equal(t, http.StatusNotFound, s.ask("GET", l.URL()+"/files?path=f", "", as...).status)
	a := s.ask("POST", l.URL()+"/execute", `{"code":"open('f', 'w').write('mine')"}`)
	require.Equal(t, http.StatusOK, a.status)
	require.Contains(t, a.text, `"text":"4"`)
	require.Equal(t, "mine", s.ask("GET", l.URL()+"/files?path=f", "", as...).text)
	require.Equal(t, "secret", other.read("f"))

	for name, tc := range map[string]struct {
		path    string
		headers []string
		want    int
	}{
		"a page of another origin": {"/health", []string{"Origin", "http://example.org"}, http.StatusForbidden},
		"a form of a page":         {"/health", []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		"other sandboxes":          {"/v2/sandboxes", nil, http.StatusNotFound},
		"the rest of the server":   {"/e2b/v2/sandboxes", nil, http.StatusNotFound},
	} {
		require.Equal(t, tc.want, s.ask("GET", l.URL()+tc.path, "", tc.headers...).status, name)
	}
	for _, addr := range e2b.DebugAddrs {
		require.Regexp(t, `^127\.0\.0\.1:`, addr)
	}
}
