package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// tree makes files and, with a trailing slash, folders, with these permissions.
func tree(t *testing.T, dir string, all map[string]os.FileMode) {
	t.Helper()
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755)) //nolint:gosec // others read it
		if name[len(name)-1] == '/' {
			require.NoError(t, os.MkdirAll(path, 0o755)) //nolint:gosec // as above
		} else {
			require.NoError(t, os.WriteFile(path, []byte(name), 0o600))
		}
	}
	for name, mode := range all {
		require.NoError(t, os.Chmod(filepath.Join(dir, name), mode))
	}
}

func TestWhatOthersMayRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tree                 map[string]os.FileMode
		open, listed, closed []string
	}{
		"everything":              {map[string]os.FileMode{"a": 0o644, "d/b": 0o644}, []string{"."}, nil, nil},
		"nothing":                 {map[string]os.FileMode{"./": 0o700, "a": 0o644}, nil, nil, []string{"."}},
		"a closed file":           {map[string]os.FileMode{"a": 0o644, "s": 0o640, "d/b": 0o644}, []string{"a", "d"}, []string{"."}, []string{"s"}},
		"a closed folder":         {map[string]os.FileMode{"a": 0o644, "s/": 0o710, "s/k": 0o644, "d/b": 0o644}, []string{"a", "d"}, nil, []string{"s"}},
		"a folder without a list": {map[string]os.FileMode{"s/": 0o711, "s/k": 0o644, "s/l": 0o600}, []string{"s/k"}, nil, []string{"s/l"}},
		"a closed file below":     {map[string]os.FileMode{"d/e/s": 0o600, "d/e/b": 0o644, "d/f/": 0o755}, []string{"d/e/b", "d/f"}, []string{"."}, []string{"d/e/s"}},
	} {
		dir := t.TempDir()
		require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // others read it
		tree(t, dir, c.tree)
		require.NoError(t, os.Symlink("/nothing", filepath.Join(dir, "link")), name)
		info, err := os.Stat(dir)
		require.NoError(t, err)
		var s survey
		s.look(dir, info.Mode())
		for want, got := range map[*[]string][]string{&c.open: s.open, &c.listed: s.listed, &c.closed: s.closed} {
			for i := range got {
				got[i], err = filepath.Rel(dir, got[i])
				require.NoError(t, err)
			}
			slices.Sort(got)
			require.Equal(t, slices.Clip(*want), slices.Clip(got), name)
		}
	}
}

// A folder is looked through again when a second has passed, not for every session.
func TestSurveysAreKept(t *testing.T) {
	dir := t.TempDir()
	tree(t, dir, map[string]os.FileMode{"./": 0o755, "a": 0o644})
	synctest.Test(t, func(t *testing.T) {
		var s surveys
		require.Empty(t, s.of(dir).closed)
		require.NoError(t, os.Chmod(filepath.Join(dir, "a"), 0o600))
		require.Empty(t, s.of(dir).closed)
		time.Sleep(surveyGood)
		require.Equal(t, []string{filepath.Join(dir, "a")}, s.of(dir).closed)
	})
}

// What root keeps from others is kept from a confined process of root, too.
func TestWhatIsClosedToOthersIsClosedToRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("the system itself does that for this user")
		return
	}
	dir := t.TempDir()
	for p := dir; p != "/"; p = filepath.Dir(p) {
		info, err := os.Stat(p)
		require.NoError(t, err)
		if p != os.TempDir() {
			require.NoError(t, os.Chmod(p, info.Mode()|0o055)) //nolint:gosec // others pass
		}
	}
	tree(t, dir, map[string]os.FileMode{"open": 0o644, "secret": 0o600, "d/b": 0o644, "closed/": 0o700, "closed/k": 0o644, "named/": 0o700, "named/k": 0o600})
	before := guarded
	defer func() { guarded = before }()
	guarded = []string{dir}
	systemBefore := system
	defer func() { system = systemBefore }()
	system = append(slices.Clone(system), dir)
	for _, l := range []Level{Landlock, Seccomp, Bubblewrap} {
		if err := Available(l); err != nil {
			t.Logf("%s: %v", l, err)
			continue
		}
		r := Rules{Level: l, Read: []string{filepath.Join(dir, "named")}}
		for name, reads := range map[string]bool{"open": true, "d/b": true, "secret": false, "closed/k": false, "named/k": true} {
			out, _ := confined(t, r, "cat "+filepath.Join(dir, name))
			require.Equal(t, reads, out == name, "%s: %s: %s", l, name, out)
		}
		out, _ := confined(t, r, "ls "+filepath.Join(dir, "d"))
		require.Equal(t, "b\n", out, l)
		out, _ = confined(t, r, "ls "+filepath.Join(dir, "closed"))
		require.NotContains(t, out, "k\n", l)
		r.Read = []string{dir}
		out, _ = confined(t, r, "cat "+filepath.Join(dir, "secret"))
		require.Equal(t, "secret", out, l)
	}
}

func TestClosedPartsAreCovered(t *testing.T) {
	dir := t.TempDir()
	tree(t, dir, map[string]os.FileMode{"s": 0o600, "closed/": 0o700})
	file, folder := filepath.Join(dir, "s"), filepath.Join(dir, "closed")
	require.Equal(t, []string{"--tmpfs", folder, "--remount-ro", folder, "--ro-bind", "/dev/null", file}, cover(survey{closed: []string{folder, file, filepath.Join(dir, "gone")}}))
}
