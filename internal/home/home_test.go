package home_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/home"
)

func TestResolve(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	for name, c := range map[string]struct {
		in  home.Home
		dir string
		err string
	}{
		"all by default":           {home.Home{Env: []string{}}, "/home/me/.coppice", ""},
		"a brand":                  {home.Home{Brand: "omp", Env: []string{}}, "/home/me/.omp", ""},
		"COPPICE_HOME":             {home.Home{Env: []string{"COPPICE_HOME=/a", "COPPICE_HOME=/b"}}, "/b/.coppice", ""},
		"a path before it":         {home.Home{Path: "/p", Env: []string{"COPPICE_HOME=/a"}}, "/p/.coppice", ""},
		"a brand that is a path":   {home.Home{Brand: "a/b", Env: []string{}}, "", `the brand "a/b" is not a plain name`},
		"a brand that has a dot":   {home.Home{Brand: "..", Env: []string{}}, "", "not a plain name"},
		"a brand with a backslash": {home.Home{Brand: `a\b`, Env: []string{}}, "", "not a plain name"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.in.Resolve()
			if c.err != "" {
				require.ErrorIs(t, err, home.ErrInvalid)
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, filepath.FromSlash(c.dir), got.Dir())
			require.Equal(t, filepath.Join(got.Dir(), "x", "y"), got.Join("x", "y"))
		})
	}
	t.Setenv("HOME", "")
	_, err := home.Home{Env: []string{}}.Resolve()
	require.ErrorContains(t, err, "set COPPICE_HOME")
}

func TestLookup(t *testing.T) {
	t.Parallel()
	env := []string{"A=1", "B", "A=2", "C=", "D=a=b", "E=off", "F=yes"}
	for name, want := range map[string]string{"A": "2", "B": "", "C": "", "D": "a=b", "Z": ""} {
		require.Equal(t, want, home.Lookup(env, name), name)
	}
	for name, want := range map[string]bool{"A": true, "C": false, "E": false, "F": true, "Z": false} {
		require.Equal(t, want, home.SwitchedOn(env, name), name)
	}
	require.Equal(t, "/t", home.TempDir([]string{"TMPDIR=/t"}))
	require.Equal(t, os.TempDir(), home.TempDir(nil))
}

func TestToolMode(t *testing.T) {
	t.Parallel()
	for py, want := range map[string]string{
		"0": "bash-only", "Bash": "bash-only", "1": "ipy-only", "PY": "ipy-only", "mix": "both", "both": "both", "": "", "perhaps": "",
	} {
		require.Equal(t, want, home.ToolMode(py), py)
	}
}

func TestWorkingDir(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	require.NoError(t, err)
	got, err := home.WorkingDir("")
	require.NoError(t, err)
	require.Equal(t, here, got)
	dir := t.TempDir()
	_, err = home.WorkingDir(filepath.Join(dir, "gone"))
	require.EqualError(t, err, "Working directory does not exist: "+filepath.Join(dir, "gone")+"; make it, or name another folder")
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = home.WorkingDir(file)
	require.EqualError(t, err, "Working directory is not a directory: "+file+"; name a folder")
	_, err = home.WorkingDir(file + "/x")
	require.ErrorContains(t, err, "Working directory cannot be used: ")
}

// Variables are known by a newer name and an older one; the newer one counts more.
func TestNewerNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env  []string
		want string
	}{
		{nil, ""},
		{[]string{"PI_PY=0"}, "0"},
		{[]string{"COPPICE_PY=1"}, "1"},
		{[]string{"COPPICE_PY=1", "PI_PY=0"}, "1"},
		{[]string{"COPPICE_PY=", "PI_PY=0"}, "0"},
	} {
		require.Equal(t, c.want, home.Lookup(c.env, "PI_PY"), c.env)
	}
	require.True(t, home.SwitchedOn([]string{"COPPICE_PYTHON_SKIP_CHECK=1"}, "PI_PYTHON_SKIP_CHECK"))
	require.Empty(t, home.Lookup([]string{"COPPICE_TOOL_BRIDGE_TOKEN=x"}, "PI_TOOL_BRIDGE_TOKEN"), "what the host gives has one name")

	require.Equal(t, "COPPICE_PY", home.Name(nil, "PI_PY"))
	require.Equal(t, "PI_PY", home.Name([]string{"COPPICE_PY=", "PI_PY=0"}, "PI_PY"))
	require.Equal(t, "COPPICE_PY", home.Name([]string{"COPPICE_PY=1", "PI_PY=0"}, "PI_PY"))
	require.Equal(t, "TMPDIR", home.Name([]string{"TMPDIR=/t"}, "TMPDIR"))
	require.Equal(t, []string{"A=b", "PI_PYTHON=x"}, home.Without([]string{"A=b", "COPPICE_PY=1", "PI_PYTHON=x", "PI_PY=0"}, "PI_PY"))
	require.Equal(t, []string{"=b"}, home.Without([]string{"=b", "TMPDIR=/t"}, "TMPDIR"), "what has one name")

	env := []string{"A=b", "PI_SESSION_FILE=old", "COPPICE_SESSION_FILE=new", "PI_PY=1", "COPPICE_ARTIFACTS_DIR="}
	require.Equal(t, []string{"A=b", "COPPICE_SESSION_FILE=new", "PI_PY=1", "COPPICE_ARTIFACTS_DIR=", "PI_SESSION_FILE=new"}, home.WithOlderNames(env))
	require.Equal(t, []string{"PI_PY=1"}, home.WithOlderNames([]string{"PI_PY=1"}))
}
