package envd

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/cmd/internal/e2b/wire/filesystem"
	"github.com/coppice-run/coppice/workspace/files"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWithin(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "box")
	for given, want := range map[string]string{
		"": ".", ".": ".", "a": "a", "./a//b/": "a/b", "~": ".", "~/a": "a", "~a": "~a", "a/../b": "b",
		"/home/user": ".", "/home/user/": ".", "/home/user/a/../b": "b", folder: ".", folder + "/a": "a",
		"../a": "../a", // which package files refuses
	} {
		got, err := Within(folder, given)
		require.NoError(t, err, given)
		require.Equal(t, want, got, given)
	}
	for _, given := range []string{"/", "/etc/passwd", "/home/user/../other", "/home/user2", folder + "2", folder + "/../x", filepath.Dir(folder)} {
		_, err := Within(folder, given)
		require.ErrorIs(t, err, files.ErrOutside, given)
	}
}

func TestTheChangesOfAClient(t *testing.T) {
	t.Parallel()
	const temp = ".ABCDEFGHIJKLMNOPQRSTUVWX23.tmp"
	tr := &translator{base: "d", known: map[string]struct{}{"old": {}}}
	var told []string
	for _, c := range []files.Change{
		{Op: files.ChangeMade, Path: "d/" + temp},
		{Op: files.ChangeWritten, Path: "d/" + temp},
		{Op: files.ChangeMovedAway, Path: "d/" + temp},
		{Op: files.ChangeMade, Path: "d/new"}, // written by the files API
		{Op: files.ChangeMovedAway, Path: "d/" + temp},
		{Op: files.ChangeMade, Path: "d/old"}, // so was this one, which was there
		{Op: files.ChangeMade, Path: "d/sub/made"},
		{Op: files.ChangeWritten, Path: "d/sub/made"},
		{Op: files.ChangeMode, Path: "d/old"},
		{Op: files.ChangeLost, Path: "d"},
		{Op: files.ChangeMovedAway, Path: "d/old"},
		{Op: files.ChangeRemoved, Path: "d/new"},
		{Op: files.ChangeMovedAway, Path: "d/" + temp},
		{Op: files.ChangeMade, Path: "d/new"},
	} {
		for _, kind := range tr.events(c) {
			told = append(told, kind.String()[len("EVENT_TYPE_"):]+" "+tr.name(c.Path))
		}
	}
	require.Equal(t, []string{
		"CREATE new", "WRITE new", "WRITE old", "CREATE sub/made", "WRITE sub/made", "CHMOD old", "RENAME old", "REMOVE new", "CREATE new", "WRITE new",
	}, told)
	require.Equal(t, "x", (&translator{base: "."}).name("x"))
}

// TestAWatcherDropsTheOldest keeps what a client does not fetch within a bound.
func TestAWatcherDropsTheOldest(t *testing.T) {
	t.Parallel()
	var w watcher
	for range 3 * maxEvents {
		require.NoError(t, w.add(&filesystem.FilesystemEvent{Name: "a"}))
		require.LessOrEqual(t, len(w.events), maxEvents)
	}
	require.NoError(t, w.add(&filesystem.FilesystemEvent{Name: "last"}))
	require.Equal(t, "last", w.events[len(w.events)-1].GetName())
}
