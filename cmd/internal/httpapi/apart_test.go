package httpapi_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
	"github.com/coppice-run/coppice/messages"
)

// TestTwoClientsMeetByNameOnly: a session has the variables of who names it, and
// there is none that is meant by leaving the name out, on any route.
func TestTwoClientsMeetByNameOnly(t *testing.T) {
	t.Parallel()
	s, ctx := serve(t, coppice.Options{MaxSessions: 10}, httpapi.Options{}), t.Context()
	other, err := client.New(client.Options{URL: s.url, Token: token})
	require.NoError(t, err)
	t.Cleanup(other.Close)
	require.Equal(t, messages.OutcomeOK, s.run("mine", "x = 1").Outcome)
	for _, session := range []string{"yours", "default", "Mine", "mine "} {
		x, err := other.Start(ctx, client.Execute{Session: session, Cells: cells("'x' in globals()")})
		require.NoError(t, err)
		x, err = other.Wait(ctx, x.ID)
		require.NoError(t, err)
		require.Equal(t, "False", x.Result.Cells[0].Output, session)
	}
	require.Equal(t, "1", s.run("mine", "x").Cells[0].Output)

	for name, ask := range map[string]func() error{
		"execute":  func() error { _, err := other.Start(ctx, client.Execute{Cells: cells("x")}); return err },
		"open":     func() error { _, err := other.Open(ctx, client.Open{}); return err },
		"notebook": func() error { _, err := other.RunNotebook(ctx, client.RunNotebook{Path: "a.ipynb"}); return err },
	} {
		require.Equal(t, http.StatusBadRequest, statusOf(t, ask()), name)
		require.ErrorContains(t, ask(), "there is no session", name)
	}
	none := messages.SessionKey{}
	for name, err := range map[string]error{
		"interrupt": other.Interrupt(ctx, none), "reset": other.Reset(ctx, none), "close": other.CloseSession(ctx, none), "pin": other.Pin(ctx, none, true),
	} {
		require.ErrorIs(t, err, client.ErrNoSession, name)
	}
	_, err = other.Session(ctx, none)
	require.ErrorIs(t, err, client.ErrNoSession)
	_, err = other.Fork(ctx, none, 1, "")
	require.ErrorIs(t, err, client.ErrNoSession)
}

// TestANumberSignInAName is a letter like any other, in a session's name and in its
// folder's: what is named so is seen and looked after.
func TestANumberSignInAName(t *testing.T) {
	t.Parallel()
	s, ctx := serve(t, coppice.Options{MaxSessions: 10}, httpapi.Options{}), t.Context()
	folder := filepath.Join(t.TempDir(), "x#y")
	require.NoError(t, os.Mkdir(folder, 0o700))
	for _, key := range []messages.SessionKey{{Session: "a#b"}, {Session: "#"}, {Session: "plain", Cwd: folder}} {
		x, err := s.Start(ctx, client.Execute{Session: key.Session, Cwd: key.Cwd, Cells: cells("x = 1")})
		require.NoError(t, err)
		x, err = s.Wait(ctx, x.ID)
		require.NoError(t, err)
		require.Equal(t, messages.OutcomeOK, x.Outcome)
		one, err := s.Session(ctx, key)
		require.NoError(t, err, key)
		require.Equal(t, key.Session, one.Session)
		list, err := s.Sessions(ctx)
		require.NoError(t, err)
		require.Len(t, list, 1, key)
		require.NoError(t, s.CloseSession(ctx, key), key)
		require.Eventually(t, func() bool {
			list, err := s.Sessions(ctx)
			return err == nil && len(list) == 0
		}, time.Minute, 10*time.Millisecond)
	}
}
