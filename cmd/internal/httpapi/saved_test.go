package httpapi_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/messages"
)

// hint is what an answer with an error says besides, with its code.
func hint(t *testing.T, err error, code string) string {
	t.Helper()
	refused, ok := errors.AsType[*client.Error](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, code, refused.Code, refused.Message)
	return refused.Hint
}

// saves makes the requests about checkpoints on disk, with a server that keeps sessions there
// when nothing of them would be lost.
func (s *server) saves() {
	t, ctx := s.t, s.t.Context()
	key, other := messages.SessionKey{Session: "trains", Cwd: s.cwd}, messages.SessionKey{Session: "tries"}
	_, err := s.SaveCheckpoint(ctx, key, client.SaveCheckpoint{Name: "one"})
	require.Equal(t, http.StatusNotFound, statusOf(t, err))
	s.run("trains", "x = 40; sock = __import__('socket').socket()")
	_, err = s.SaveCheckpoint(ctx, key, client.SaveCheckpoint{Name: "one"})
	require.Equal(t, "lossy", hint(t, err, "hibernate_refused"))
	kept, err := s.SaveCheckpoint(ctx, key, client.SaveCheckpoint{Name: "one", Lossy: true})
	require.NoError(t, err)
	require.Equal(t, []string{"x"}, kept.Kept)
	require.Equal(t, "sock", kept.Lost[0].Name)
	require.Positive(t, kept.TookSeconds)
	_, err = s.SaveCheckpoint(ctx, key, client.SaveCheckpoint{Name: "one", Lossy: true})
	require.Equal(t, "exists", hint(t, err, "hibernate_refused"))
	require.Equal(t, http.StatusConflict, statusOf(t, err))
	_, err = s.SaveCheckpoint(ctx, key, client.SaveCheckpoint{Name: "a/b"})
	require.Equal(t, http.StatusUnprocessableEntity, statusOf(t, err))
	require.Equal(t, messages.StateKept, s.run("trains", "x = 41; sock.close(); del sock").State)

	list, err := s.SavedCheckpoints(ctx)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.WithinRange(t, list[0].Made, time.Now().Add(-time.Hour), time.Now())
	require.NotEmpty(t, list[0].Python)
	require.Equal(t, hibernate.UsualSavedAge, list[0].Expires.Sub(list[0].Made))
	list[0].Made, list[0].Expires, list[0].Python = time.Time{}, time.Time{}, ""
	require.Equal(t, client.SavedCheckpoint{Name: "one", Session: "trains", Cwd: s.cwd, Open: true, Bytes: kept.Bytes, Memory: kept.Memory}, list[0])

	// Into the same session, and into another one, any number of times.
	for _, to := range []messages.SessionKey{key, other, other} {
		restored, err := s.RestoreCheckpoint(ctx, to, client.RestoreCheckpoint{Name: "one"})
		require.NoError(t, err)
		require.Equal(t, kept.Memory, restored.Memory)
		r := s.run(to.Session, "x += 2; x")
		require.Equal(t, messages.StateRestored, r.State)
		require.Equal(t, "42", r.Cells[0].Output)
		require.Equal(t, "sock", r.Restored.Lost[0].Name)
	}
	_, err = s.SaveCheckpoint(ctx, other, client.SaveCheckpoint{Name: "one", Replace: true})
	require.NoError(t, err)
	_, err = s.Hibernate(ctx, other)
	require.NoError(t, err)
	s.gone(other)
	_, err = s.SaveCheckpoint(ctx, other, client.SaveCheckpoint{Name: "asleep"})
	require.NoError(t, err, "it needs no kernel")
	restored, err := s.RestoreCheckpoint(ctx, key, client.RestoreCheckpoint{Name: "asleep"})
	require.NoError(t, err)
	require.Equal(t, []string{"x"}, restored.Kept)
	require.Equal(t, "42", s.run("trains", "x").Cells[0].Output)

	// Another owner has none of it.
	x, err := s.Start(ctx, client.Execute{Session: "owned", Owner: "me", Cells: cells("x = 'secret'")})
	require.NoError(t, err)
	_, err = s.Wait(ctx, x.ID)
	require.NoError(t, err)
	_, err = s.SaveCheckpoint(ctx, messages.SessionKey{Session: "owned"}, client.SaveCheckpoint{Name: "owned", Owner: "me"})
	require.NoError(t, err)
	for _, owner := range []string{"", "you"} {
		_, err = s.RestoreCheckpoint(ctx, key, client.RestoreCheckpoint{Name: "owned", Owner: owner})
		require.Equal(t, "owner", hint(t, err, "restore_refused"))
	}
	require.Equal(t, http.StatusConflict, statusOf(t, s.DropSavedCheckpoint(ctx, messages.CheckpointKey{Name: "owned"}, "you")))
	require.Equal(t, messages.StateKept, s.run("trains", "x").State, "it goes on")

	for name, to := range map[string]messages.SessionKey{"a/b": key, "none": key, "one": {Session: "trains", Cwd: "/none"}} {
		_, err = s.RestoreCheckpoint(ctx, to, client.RestoreCheckpoint{Name: name})
		want := http.StatusUnprocessableEntity
		if name == "none" {
			want = http.StatusNotFound
		}
		require.Equal(t, want, statusOf(t, err), name)
	}
	_, err = s.RestoreCheckpoint(ctx, messages.SessionKey{Session: strings.Repeat("x", 201)}, client.RestoreCheckpoint{Name: "one"})
	require.Equal(t, http.StatusUnprocessableEntity, statusOf(t, err))
	for name, owner := range map[string]string{"one": "", "asleep": "", "owned": "me"} {
		drop := func() error { return s.DropSavedCheckpoint(ctx, messages.CheckpointKey{Name: name}, owner) }
		require.NoError(t, drop())
		require.Equal(t, http.StatusNotFound, statusOf(t, drop()))
	}
	list, err = s.SavedCheckpoints(ctx)
	require.NoError(t, err)
	require.Empty(t, list)
	for _, name := range []string{"trains", "tries", "owned"} {
		if err := s.CloseSession(ctx, messages.SessionKey{Session: name}); err != nil {
			require.Equal(t, http.StatusNotFound, statusOf(t, err))
		}
	}
}

// TestCheckpointsOnDisk, and a server that keeps nothing there.
func TestCheckpointsOnDisk(t *testing.T) {
	t.Parallel()
	s := serve(t, coppice.Options{Hibernate: hibernate.Lossless}, httpapi.Options{})
	s.saves()
	s = serve(t, coppice.Options{}, httpapi.Options{})
	s.run("s", "x = 1")
	key := messages.SessionKey{Session: "s"}
	_, err := s.SaveCheckpoint(t.Context(), key, client.SaveCheckpoint{Name: "one"})
	require.Equal(t, "off", hint(t, err, "hibernate_refused"))
	_, err = s.RestoreCheckpoint(t.Context(), key, client.RestoreCheckpoint{Name: "one"})
	require.Equal(t, "off", hint(t, err, "restore_refused"))
}

// TestAsManyCheckpointsAsThereMayBe: one more is refused, with what to do.
func TestAsManyCheckpointsAsThereMayBe(t *testing.T) {
	t.Parallel()
	s := serve(t, coppice.Options{Hibernate: hibernate.Lossless, MaxSavedCheckpoints: 1, SavedCheckpointAge: -1}, httpapi.Options{})
	s.run("s", "x = 1")
	key := messages.SessionKey{Session: "s"}
	_, err := s.SaveCheckpoint(t.Context(), key, client.SaveCheckpoint{Name: "one"})
	require.NoError(t, err)
	_, err = s.SaveCheckpoint(t.Context(), key, client.SaveCheckpoint{Name: "two"})
	require.Equal(t, "full", hint(t, err, "hibernate_refused"))
	require.Equal(t, http.StatusConflict, statusOf(t, err))
	require.ErrorContains(t, err, "drop one that is not needed, replace one")
	list, err := s.SavedCheckpoints(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Zero(t, list[0].Expires)
	_, err = s.SaveCheckpoint(t.Context(), key, client.SaveCheckpoint{Name: "one", Replace: true})
	require.NoError(t, err)
	require.NoError(t, s.DropSavedCheckpoint(t.Context(), messages.CheckpointKey{Name: "one"}, ""))
	_, err = s.SaveCheckpoint(t.Context(), key, client.SaveCheckpoint{Name: "two"})
	require.NoError(t, err)
}
