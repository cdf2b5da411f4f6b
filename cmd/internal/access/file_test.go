package access_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/access"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
)

func TestTheFileHasNoToken(t *testing.T) {
	t.Parallel()
	f := access.File{Path: filepath.Join(t.TempDir(), "below", "tokens.json")}
	_, err := f.Load(t.Context())
	require.ErrorIs(t, err, fs.ErrNotExist)
	text, made, err := f.Create(t.Context(), "acme", httpserver.Read, time.Hour)
	require.NoError(t, err)
	data, err := os.ReadFile(f.Path)
	require.NoError(t, err)
	require.NotContains(t, string(data), text)
	info, err := os.Stat(f.Path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	list, err := f.Load(t.Context())
	require.NoError(t, err)
	require.Equal(t, []access.Token{made}, list)

	revoked, err := f.Revoke(t.Context(), made.ID)
	require.NoError(t, err)
	require.False(t, revoked.Opens(time.Now()))
	again, err := f.Revoke(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, revoked, again)
	_, err = f.Revoke(t.Context(), "nothing")
	require.ErrorIs(t, err, access.ErrUnknownToken)
}

func TestTokensThatCannotBeMade(t *testing.T) {
	t.Parallel()
	f := access.File{Path: filepath.Join(t.TempDir(), "tokens.json")}
	for name, tc := range map[string]struct {
		tenant string
		scope  httpserver.Scope
		lives  time.Duration
	}{
		"a tenant":       {"../x", httpserver.Run, time.Hour},
		"a scope":        {"a", "root", time.Hour},
		"no scope":       {"a", "", time.Hour},
		"no time":        {"a", httpserver.Run, 0},
		"a time before":  {"a", httpserver.Run, -time.Hour},
		"a time too far": {"a", httpserver.Run, access.MaxLife + time.Hour},
	} {
		_, _, err := f.Create(t.Context(), tc.tenant, tc.scope, tc.lives)
		require.ErrorIs(t, err, access.ErrOptions, name)
	}
	require.NoFileExists(t, f.Path)
}

func TestAFileThatOthersCanReadIsRefused(t *testing.T) {
	t.Parallel()
	f := access.File{Path: filepath.Join(t.TempDir(), "tokens.json")}
	_, made, err := f.Create(t.Context(), "acme", httpserver.Run, time.Hour)
	require.NoError(t, err)
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o620, 0o602} {
		require.NoError(t, os.Chmod(f.Path, mode))
		_, err := f.Load(t.Context())
		require.ErrorIs(t, err, access.ErrOpenToOthers, mode)
		require.ErrorContains(t, err, "chmod 600 "+f.Path)
		_, err = f.Revoke(t.Context(), made.ID)
		require.ErrorIs(t, err, access.ErrOpenToOthers, mode)
	}
}

// TestManyProgramsChangeTheFile: nothing that one has written is lost by another.
func TestManyProgramsChangeTheFile(t *testing.T) {
	t.Parallel()
	f := access.File{Path: filepath.Join(t.TempDir(), "tokens.json")}
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 4 {
				_, _, err := f.Create(t.Context(), "acme", httpserver.Run, time.Hour)
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	list, err := f.Load(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 32)

	lock := flock.New(f.Path + ".lock")
	require.NoError(t, lock.Lock())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = f.Revoke(ctx, list[0].ID)
	require.ErrorIs(t, err, context.Canceled, "another program has it")
	require.NoError(t, lock.Unlock())
}
