package access_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/access"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
)

var quiet = slog.New(slog.DiscardHandler)

// tokens are those of a new file.
func tokens(t *testing.T) (access.File, *access.Tokens) {
	t.Helper()
	f := access.File{Path: filepath.Join(t.TempDir(), "tokens.json")}
	_, _, err := f.Create(t.Context(), "first", httpserver.Run, time.Hour)
	require.NoError(t, err)
	list, err := access.Watch(t.Context(), f, quiet)
	require.NoError(t, err)
	t.Cleanup(list.Close)
	return f, list
}

// create makes a token.
func create(t *testing.T, f access.File, tenant string, scope httpserver.Scope, lives time.Duration) (string, access.Token) {
	t.Helper()
	text, made, err := f.Create(t.Context(), tenant, scope, lives)
	require.NoError(t, err)
	return text, made
}

func isOver(p httpserver.Pass) bool {
	select {
	case <-p.Over:
		return true
	default:
		return false
	}
}

func TestTokensAreReadAgain(t *testing.T) {
	t.Parallel()
	f, list := tokens(t)
	text, made := create(t, f, "acme", httpserver.Read, time.Hour)
	p, ok := list.Opens(text)
	require.True(t, ok)
	require.Equal(t, httpserver.Pass{ID: made.ID, Tenant: "acme", Scope: httpserver.Read, Over: p.Over}, p)
	by, ok := list.Vouch(made.ID)
	require.True(t, ok)
	require.Equal(t, p, by)
	require.Equal(t, []string{"acme", "first"}, list.Tenants())
	require.Contains(t, list.Issuers(), made.ID)
	for _, other := range []string{"", made.ID, made.Hash, text + "x", text[1:]} {
		_, ok := list.Opens(other)
		require.False(t, ok, other)
	}

	create(t, f, "third", httpserver.Run, time.Hour)
	again, ok := list.Opens(text)
	require.True(t, ok)
	require.Equal(t, p.Over, again.Over, "another token changes nothing for it")
	require.False(t, isOver(p))

	_, err := f.Revoke(t.Context(), made.ID)
	require.NoError(t, err)
	<-p.Over // no one asks, and it ends all the same
	_, ok = list.Opens(text)
	require.False(t, ok)
	_, ok = list.Vouch(made.ID)
	require.False(t, ok)
	require.NotContains(t, list.Issuers(), made.ID)
	require.Equal(t, []string{"first", "third"}, list.Tenants())
}

func TestTokensExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, list := tokens(t)
		text, made := create(t, f, "acme", httpserver.Run, time.Minute)
		p, ok := list.Opens(text)
		require.True(t, ok)
		time.Sleep(59 * time.Second)
		require.False(t, isOver(p))
		<-p.Over // no one asks
		require.LessOrEqual(t, time.Since(made.Created), 61*time.Second)
		_, ok = list.Opens(text)
		require.False(t, ok)
	})
}

// TestAFileThatCannotBeReadOpensNothing, until it can again.
func TestAFileThatCannotBeReadOpensNothing(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(path string) error{
		"others can read it": func(path string) error { return os.Chmod(path, 0o644) },
		"it is gone":         os.Remove,
		"it is no such file": func(path string) error { return os.WriteFile(path, []byte("{"), 0o600) },
		"it is a folder": func(path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Mkdir(path, 0o700)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, list := tokens(t)
			text, _ := create(t, f, "acme", httpserver.Run, time.Hour)
			p, ok := list.Opens(text)
			require.True(t, ok)
			kept, err := os.ReadFile(f.Path)
			require.NoError(t, err)
			require.NoError(t, spoil(f.Path))
			<-p.Over
			_, ok = list.Opens(text)
			require.False(t, ok)
			require.Empty(t, list.Tenants())
			require.NoError(t, os.RemoveAll(f.Path))
			require.NoError(t, os.WriteFile(f.Path, kept, 0o600))
			_, ok = list.Opens(text)
			require.True(t, ok)
		})
	}
}
