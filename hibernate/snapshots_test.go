package hibernate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/store"
)

// TestASavedSession is there for any number of others, whatever becomes of the first.
func TestASavedSession(t *testing.T) {
	t.Parallel()
	k, s := keeper(t, t.TempDir(), hibernate.Lossless)
	defer k.Close()
	shots, ctx := k.Snapshots(), t.Context()
	require.ErrorIs(t, shots.Save(ctx, key("a"), "snapshot/1/0"), store.ErrNone)
	_, err := k.Sleep(ctx, sleeper(newFake("what a knows"), "a", "me"))
	require.NoError(t, err)
	require.NoError(t, shots.Save(ctx, key("a"), "snapshot/1/0"))
	require.ErrorContains(t, shots.Save(ctx, key("a"), key("b").ID()), "is the name of a session")
	require.NoError(t, k.Drop(ctx, key("a")))
	list, err := k.List(ctx)
	require.NoError(t, err)
	require.Empty(t, list, "what is saved is no session")

	for _, name := range []string{"b", "c"} {
		require.NoError(t, shots.Place(ctx, "snapshot/1/0", key(name), "/srv", "/srv"))
		into := newFake("")
		_, err := k.Wake(ctx, key(name), "you", into)
		require.ErrorContains(t, err, "belongs to another owner")
		woken, err := k.Wake(ctx, key(name), "me", into)
		require.NoError(t, err)
		require.Equal(t, "what a knows", into.text)
		require.Empty(t, woken.Restored.Notes)
	}
	require.NoError(t, shots.Discard(ctx, "snapshot/2/"))
	headers, err := s.List(ctx)
	require.NoError(t, err)
	require.Len(t, headers, 1)
	require.Greater(t, headers[0].Expires.Year(), 9000, "it is kept until it is discarded")
	require.NoError(t, shots.Discard(ctx, "snapshot/1/"))
	require.ErrorIs(t, shots.Place(ctx, "snapshot/1/0", key("d"), "/srv", "/srv"), store.ErrNone)
}

// TestAPlacedSessionIsInAnotherFolder, as far as that can be, and says where it is not.
func TestAPlacedSessionIsInAnotherFolder(t *testing.T) {
	t.Parallel()
	k, s := keeper(t, t.TempDir(), hibernate.Lossless)
	defer k.Close()
	shots, ctx := k.Snapshots(), t.Context()
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"named":   {strings.Repeat("x", 300<<10) + "/srv/a/data", []string{"it was copied from /srv/a to /srv/c, and variables may still name the first"}},
		"across":  {strings.Repeat("x", 256<<10+2) + "/srv/a", []string{"it was copied from /srv/a to /srv/c, and variables may still name the first"}},
		"not":     {"/srv/b", nil},
		"nothing": {"", nil},
	} {
		f := newFake(tc.text)
		f.around = map[string]any{"path": []string{"/srv/a/lib", "/srv/ab", "/usr"}, "cwd": "/srv/a/sub", "env": map[string]any{"IN": "/srv/a", "OUT": "/srv", "GONE": nil}}
		_, err := k.Sleep(ctx, sleeper(f, name))
		require.NoError(t, err)
		require.NoError(t, shots.Save(ctx, key(name), "snapshot/"+name))
		// By way of another folder, in which no one has restored it.
		require.NoError(t, shots.Place(ctx, "snapshot/"+name, key(name+"2"), "/srv/a", "/srv/b"))
		require.NoError(t, shots.Save(ctx, key(name+"2"), "snapshot/"+name+"2"))
		require.NoError(t, shots.Place(ctx, "snapshot/"+name+"2", key(name+"3"), "/srv/b", "/srv/c"))
		into := newFake("")
		woken, err := k.Wake(ctx, key(name+"3"), "", into)
		require.NoError(t, err)
		require.Equal(t, tc.text, into.text)
		require.Equal(t, tc.want, woken.Restored.Notes, name)
		require.JSONEq(t, `{"path":["/srv/c/lib","/srv/ab","/usr"],"cwd":"/srv/c/sub","env":{"IN":"/srv/c","OUT":"/srv","GONE":null}}`, string(into.thawed["around"]))
		require.JSONEq(t, `["/srv/a","/srv/c"]`, string(into.thawed["moved"]))
	}
	require.NoError(t, shots.Discard(ctx, ""))
	list, err := s.List(ctx)
	require.NoError(t, err)
	require.NotEmpty(t, list, "no prefix is none of all")
}

func TestMoved(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"/a/b": "/c", "/a/b/x/y": "/c/x/y", "/a/bc": "/a/bc", "/a": "/a", "x": "x", "": ""} {
		require.Equal(t, want, hibernate.Moved(path, "/a/b", "/c"), path)
	}
}
