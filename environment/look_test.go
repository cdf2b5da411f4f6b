package environment

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/test/testpython"
)

// TestLook tells what is there, and what is not.
func TestLook(t *testing.T) {
	t.Parallel()
	o := Options{Home: t.TempDir(), Python: testpython.Path(t), Env: []string{"PATH=/bin", "HOME=/h", "OPENAI_API_KEY=x"}}
	r, err := Look(t.Context(), o, "")
	require.NoError(t, err)
	require.NoError(t, r.Err())
	require.Equal(t, Folders{Brand: "coppice", Home: o.Home, Dir: filepath.Join(o.Home, ".coppice")}, r.Folders)
	require.Equal(t, o.Python, r.Python.Path)
	require.Len(t, r.Packages, 3)
	require.Equal(t, []string{"OPENAI_API_KEY"}, r.Withheld)
	rt, err := Find(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, *r.Python, rt)

	o.Python = "/no/such/python"
	r, err = Look(t.Context(), o, "")
	require.NoError(t, err)
	require.ErrorAs(t, r.Err(), new(*NoPythonError))
	require.Equal(t, r.Err().Error(), r.Problem)
	require.Len(t, Broken(r.Steps), 1)
	require.Empty(t, PassedOver(o), "it was named")

	_, err = Look(t.Context(), o, "/no/such/folder")
	require.ErrorContains(t, err, "Working directory does not exist")
	o.Brand = "a/b"
	_, err = Look(t.Context(), o, "")
	require.ErrorIs(t, err, ErrOptions)
	_, err = Find(t.Context(), o)
	require.ErrorIs(t, err, ErrOptions)
	require.Nil(t, PassedOver(o))
	_, err = CheckSetup(t.Context(), SetupOptions{Brand: "a/b"})
	require.ErrorIs(t, err, ErrOptions)
}

// TestLookElsewhere looks on behalf of a session in a folder with a virtual
// environment: the host has another, and says so.
func TestLookElsewhere(t *testing.T) {
	t.Parallel()
	python := testpython.Path(t)
	path := "PATH=" + filepath.Dir(python)
	cwd := t.TempDir()
	own := filepath.Join(cwd, ".venv", "bin", "python")
	require.NoError(t, os.MkdirAll(filepath.Dir(own), 0o700))
	require.NoError(t, os.Symlink(python, own))
	linked := t.TempDir()
	require.NoError(t, os.Symlink(filepath.Dir(filepath.Dir(python)), filepath.Join(linked, "venv")))
	for name, tc := range map[string]struct {
		o      Options
		cwd    string
		unused string
	}{
		"another one":         {Options{Env: []string{path}}, cwd, own},
		"none works":          {Options{Env: []string{"PATH=/nowhere"}}, cwd, own},
		"none there":          {Options{Env: []string{path}}, t.TempDir(), ""},
		"here":                {Options{Env: []string{path}}, "", ""},
		"the same":            {Options{Env: []string{path}}, linked, ""},
		"it was named":        {Options{Python: own}, cwd, ""},
		"one that goes first": {Options{Env: []string{path, "VIRTUAL_ENV=" + filepath.Dir(filepath.Dir(python))}}, cwd, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.o.Home = t.TempDir()
			r, err := Look(t.Context(), tc.o, tc.cwd)
			require.NoError(t, err)
			require.Equal(t, tc.unused, r.Unused)
			if rt, err := Find(t.Context(), tc.o); err == nil {
				require.Equal(t, rt, *r.Python, "a host would take this one")
			}
		})
	}
}

// TestPassedOver names the environments that come first and cannot be used.
func TestPassedOver(t *testing.T) {
	t.Parallel()
	gone := filepath.Join(t.TempDir(), "gone")
	steps := PassedOver(Options{Home: t.TempDir(), Env: []string{"VIRTUAL_ENV=" + gone}})
	require.Len(t, steps, 1)
	require.Equal(t, gone, steps[0].Path)
	require.Equal(t, "no such directory", steps[0].Why)
}

// TestModuleHelpers reads the modules of the user and of a project.
func TestModuleHelpers(t *testing.T) {
	t.Parallel()
	o, cwd := Options{Home: t.TempDir(), Python: testpython.Path(t)}, t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(o.Home, ".coppice", "agent", "modules", "a.py"): "def mine():\n    'Is mine.'\n",
		filepath.Join(o.Home, ".coppice", "agent", "modules", "b.py"): "def never(): pass\n",
		filepath.Join(cwd, ".coppice", "modules", "b.py"):             "x = = 1\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	helpers, modules, err := ModuleHelpers(t.Context(), o, cwd)
	require.NoError(t, err)
	require.Equal(t, []Helper{{Name: "mine", Signature: "()", Docstring: "Is mine.", Category: "a"}}, helpers)
	require.Len(t, modules, 2)
	require.Contains(t, modules[1].Problem, "SyntaxError")
	code, err := ModulesCode(modules)
	require.NoError(t, err)
	require.Contains(t, code, "def mine")
	modules, err = Modules(o, "")
	require.NoError(t, err)
	require.Contains(t, modules[1].Text, "never", "without a project there are those of the user")
	_, _, err = ModuleHelpers(t.Context(), Options{Brand: "a/b"}, cwd)
	require.ErrorIs(t, err, ErrOptions)

	all := Helpers()
	require.NotEmpty(t, all)
	all[0].Name = "changed"
	require.NotEqual(t, "changed", Helpers()[0].Name, "the list is the caller's own")
}
