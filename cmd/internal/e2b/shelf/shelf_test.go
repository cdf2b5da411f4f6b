package shelf_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/e2b/shelf"
)

// records are those of a host, by the beginnings of names that were dropped.
type records struct{ dropped []string }

func (r *records) drop(_ context.Context, prefix string) error {
	r.dropped = append(r.dropped, prefix)
	return nil
}

// put makes a snapshot with a file.
func put(t *testing.T, s *shelf.Shelf, folder, id string, made time.Time, sessions ...shelf.Saved) *shelf.Snapshot {
	t.Helper()
	one, err := s.Begin(folder)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(one.Files(), "f"), []byte(folder), 0o600))
	one.ID, one.Made, one.Sessions = id, made, sessions
	require.NoError(t, s.Add(t.Context(), one))
	return one
}

func folders(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestAnotherServer finds what was kept, and removes what was not finished.
func TestAnotherServer(t *testing.T) {
	t.Parallel()
	dir, r, now := filepath.Join(t.TempDir(), "snapshots"), &records{}, time.Now()
	first := shelf.New(dir, r.drop)
	put(t, first, "one", "a:default", now)
	half, err := first.Begin("half") // the server is killed here
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(half.Files(), "f"), nil, 0o600))
	inner := filepath.Join(half.Files(), "closed")
	require.NoError(t, os.Mkdir(inner, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(inner, "f"), nil, 0o600))
	require.NoError(t, os.Chmod(inner, 0o500)) //nolint:gosec // a folder, in which nothing may be removed
	put(t, first, "two", "b:v2", now.Add(time.Second))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "two", "snapshot.json.copy"), nil, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "odd"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "odd", "snapshot.json"), []byte("{"), 0o600))

	again := shelf.New(dir, r.drop)
	list, err := again.List("", "")
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, "b:v2", list[0].ID, "the newest first")
	require.Equal(t, []string{"odd", "one", "two"}, folders(t, dir), "what cannot be read is left")
	require.Equal(t, []string{"e2b-snapshot/half/"}, r.dropped)
	one, err := again.Find("a")
	require.NoError(t, err)
	require.Equal(t, "a:default", one.ID)
	none, err := again.Find("b")
	require.NoError(t, err)
	require.Nil(t, none, "another tag is another one")
}

// TestTheNewerOneOfANameCounts, also when the server was killed before the older was removed.
func TestTheNewerOneOfANameCounts(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	put(t, shelf.New(dir, (&records{}).drop), "new", "a:default", now)
	put(t, shelf.New(t.TempDir(), nil), "x", "a:default", now)
	other := t.TempDir()
	put(t, shelf.New(other, nil), "old", "a:default", now.Add(-time.Hour))
	require.NoError(t, os.Rename(filepath.Join(other, "old"), filepath.Join(dir, "old")))

	r := &records{}
	s := shelf.New(dir, r.drop)
	one, err := s.Find("a:default")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "new", "files"), one.Files())
	require.Equal(t, []string{"new"}, folders(t, dir))

	put(t, s, "newest", "a:default", now.Add(time.Hour))
	require.Equal(t, []string{"newest"}, folders(t, dir))
	require.Equal(t, []string{"e2b-snapshot/old/", "e2b-snapshot/new/"}, r.dropped)
}

// TestItIsNotRemovedWhileItIsHeld.
func TestItIsNotRemovedWhileItIsHeld(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := shelf.New(dir, (&records{}).drop)
	one := put(t, s, "one", "a:default", time.Now())
	release, ok := one.Hold()
	require.True(t, ok)
	removed := make(chan error, 1)
	go func() {
		there, err := s.Remove(context.Background(), "a")
		if err == nil && !there {
			err = errors.New("it was not there")
		}
		removed <- err
	}()
	require.Eventually(t, func() bool { found, err := s.Find("a"); return err == nil && found == nil }, time.Minute, time.Millisecond)
	data, err := os.ReadFile(filepath.Join(one.Files(), "f"))
	require.NoError(t, err)
	require.Equal(t, "one", string(data))
	release()
	require.NoError(t, <-removed)
	require.Empty(t, folders(t, dir))
	_, ok = one.Hold()
	require.False(t, ok)
}

// TestAHostThatKeepsNoSessions leaves those that have records.
func TestAHostThatKeepsNoSessions(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	put(t, shelf.New(dir, (&records{}).drop), "one", "a:default", now, shelf.Saved{Record: "e2b-snapshot/one/0", Session: "default"})
	s := shelf.New(dir, nil)
	put(t, s, "two", "b:default", now)
	_, err := s.Remove(t.Context(), "a")
	require.ErrorIs(t, err, shelf.ErrRecords)
	there, err := s.Remove(t.Context(), "b")
	require.NoError(t, err)
	require.True(t, there)
	require.Equal(t, []string{"one"}, folders(t, dir))
}
