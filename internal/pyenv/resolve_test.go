package pyenv_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/pyenv"
)

// world is a session directory, a home, and a PATH directory.
type world struct{ cwd, home, bin, venv string }

func (w world) options(env ...string) pyenv.Options {
	return pyenv.Options{Cwd: w.cwd, Home: w.home, Env: append([]string{"PATH=" + w.bin, "HOME=" + w.home}, env...)}
}

func newWorld(t *testing.T) world {
	t.Helper()
	// Links in the way to the temporary directory would make paths differ.
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	w := world{cwd: filepath.Join(root, "cwd"), home: filepath.Join(root, "home"), bin: filepath.Join(root, "bin"), venv: filepath.Join(root, "active")}
	for _, d := range []string{w.cwd, w.home, w.bin} {
		require.NoError(t, os.Mkdir(d, 0o700))
	}
	return w
}

func TestResolveOrder(t *testing.T) {
	t.Parallel()
	good := fake{Version: "3.11.7"}
	// Each test has what the former lack: the first of the list is found first.
	type place struct {
		source pyenv.Source
		make   func(t *testing.T, w world) (path, venv string)
	}
	venvAt := func(dir func(w world) string) func(t *testing.T, w world) (string, string) {
		return func(t *testing.T, w world) (string, string) {
			venv := fakeVenv(t, dir(w), good)
			return pyenv.VenvPython(venv), venv
		}
	}
	onPath := func(name string) func(t *testing.T, w world) (string, string) {
		return func(t *testing.T, w world) (string, string) { return good.install(t, filepath.Join(w.bin, name)), "" }
	}
	places := []place{
		{pyenv.SourceVirtualEnv, venvAt(func(w world) string { return w.venv })},
		{pyenv.SourceDotVenv, venvAt(func(w world) string { return filepath.Join(w.cwd, ".venv") })},
		{pyenv.SourceVenv, venvAt(func(w world) string { return filepath.Join(w.cwd, "venv") })},
		{pyenv.SourceManaged, venvAt(func(w world) string { return pyenv.ManagedDir(w.home) })},
		{pyenv.SourcePython, onPath("python")},
		{pyenv.SourcePython3, onPath("python3")},
	}
	for i, first := range places {
		t.Run(string(first.source), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			path, venv := first.make(t, w)
			for _, p := range places[i+1:] {
				p.make(t, w)
			}
			var env []string
			if i == 0 {
				env = append(env, "VIRTUAL_ENV="+w.venv)
			}
			rt, err := pyenv.Resolve(t.Context(), w.options(env...))
			require.NoError(t, err)
			require.Equal(t, first.source, rt.Source)
			require.Equal(t, path, rt.Path)
			require.Equal(t, venv, rt.Venv)
			require.Equal(t, "3.11.7", rt.Version)
			require.Len(t, rt.Steps, i+1)
			for _, s := range rt.Steps[:i] {
				require.Equal(t, pyenv.OutcomeAbsent, s.Outcome)
				require.NotEmpty(t, s.Why)
			}
			require.Equal(t, pyenv.Step{Name: first.source, Path: path, Outcome: pyenv.OutcomeChosen}, rt.Steps[i])
		})
	}
}

func TestResolvePassesOverWhatIsBroken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	good := fake{Version: "3.12.1"}
	nonsense := "hello"
	fakeVenv(t, w.venv, fake{Exit: 127, Stderr: "libpython3.8.so: cannot open\n"})
	require.NoError(t, os.MkdirAll(filepath.Join(w.cwd, ".venv"), 0o700))
	fakeVenv(t, filepath.Join(w.cwd, "venv"), fake{Version: "3.8.18"})
	managed := fakeVenv(t, pyenv.ManagedDir(w.home), good)
	require.Zero(t, touch(managed+".incomplete"))
	fake{Answer: &nonsense}.install(t, filepath.Join(w.bin, "python"))
	python3 := good.install(t, filepath.Join(w.bin, "python3"))

	rt, err := pyenv.Resolve(t.Context(), w.options("VIRTUAL_ENV="+w.venv, "OPENAI_API_KEY=s", "PI_X_TOKEN=s"))
	require.NoError(t, err)
	require.Equal(t, python3, rt.Path)
	want := []pyenv.Step{
		{Name: pyenv.SourceVirtualEnv, Path: pyenv.VenvPython(w.venv), Outcome: pyenv.OutcomeBroken, Why: `does not run: exited with code 127, saying "libpython3.8.so: cannot open"`},
		{Name: pyenv.SourceDotVenv, Path: filepath.Join(w.cwd, ".venv"), Outcome: pyenv.OutcomeBroken, Why: "holds no bin/python"},
		{Name: pyenv.SourceVenv, Path: pyenv.VenvPython(filepath.Join(w.cwd, "venv")), Outcome: pyenv.OutcomeBroken, Why: "is Python 3.8.18, and 3.9 or newer is needed"},
		{Name: pyenv.SourceManaged, Path: managed, Outcome: pyenv.OutcomeBroken, Why: "its set-up did not finish; run coppice setup"},
		{Name: pyenv.SourcePython, Path: filepath.Join(w.bin, "python"), Outcome: pyenv.OutcomeBroken, Why: "runs, but does not answer like Python"},
		{Name: pyenv.SourcePython3, Path: python3, Outcome: pyenv.OutcomeChosen},
	}
	require.Empty(t, cmp.Diff(want, rt.Steps))
	require.Equal(t, []string{"PATH=" + w.bin, "HOME=" + w.home}, rt.Env, "a broken VIRTUAL_ENV is dropped, secrets are too")
}

func TestResolveEnvironment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	venv := fakeVenv(t, filepath.Join(w.cwd, ".venv"), fake{Version: "3.11.7", Noise: "hello from sitecustomize\n"})
	rt, err := pyenv.Resolve(t.Context(), w.options("VIRTUAL_ENV="+w.venv))
	require.NoError(t, err)
	want := []string{"HOME=" + w.home, "VIRTUAL_ENV=" + venv, "PATH=" + filepath.Join(venv, "bin") + ":" + w.bin}
	require.Empty(t, cmp.Diff(want, rt.Env))
	require.Equal(t, "no such directory", rt.Steps[0].Why)
	require.Equal(t, pyenv.OutcomeBroken, rt.Steps[0].Outcome, "an active environment that is gone was not merely absent")
}

// TestResolveConda takes an active conda environment before those of the folder,
// and its base not at all.
func TestResolveConda(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	conda := filepath.Join(w.home, "conda", "envs", "work")
	python := fake{Version: "3.12.1"}.install(t, filepath.Join(conda, "bin", "python"))
	dot := fakeVenv(t, filepath.Join(w.cwd, ".venv"), fake{Version: "3.11.7"})

	rt, err := pyenv.Resolve(t.Context(), w.options("CONDA_PREFIX="+conda, "CONDA_DEFAULT_ENV=work"))
	require.NoError(t, err)
	require.Equal(t, pyenv.SourceConda, rt.Source)
	require.Equal(t, python, rt.Path)
	require.Empty(t, rt.Venv)
	require.Contains(t, rt.Env, "PATH="+filepath.Join(conda, "bin")+":"+w.bin)
	require.NotContains(t, strings.Join(rt.Env, "\n"), "VIRTUAL_ENV")

	for _, tt := range []struct{ prefix, name, why string }{
		{conda, "base", "is conda's base environment, which is looked for on PATH"},
		{filepath.Join(w.home, "none"), "none", "no such directory"},
		{w.home, "empty", "holds no Python"},
	} {
		rt, err := pyenv.Resolve(t.Context(), w.options("CONDA_PREFIX="+tt.prefix, "CONDA_DEFAULT_ENV="+tt.name))
		require.NoError(t, err)
		require.Equal(t, dot, rt.Venv, tt.name)
		require.Equal(t, pyenv.SourceConda, rt.Steps[1].Name)
		require.Equal(t, tt.why, rt.Steps[1].Why)
	}
	w.venv = fakeVenv(t, w.venv, fake{Version: "3.13.0"})
	rt, err = pyenv.Resolve(t.Context(), w.options("CONDA_PREFIX="+conda, "CONDA_DEFAULT_ENV=work", "VIRTUAL_ENV="+w.venv))
	require.NoError(t, err)
	require.Equal(t, pyenv.SourceVirtualEnv, rt.Source)
}

func TestResolveLooksBehindAShim(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	behind := fake{Version: "3.11.7"}.install(t, filepath.Join(w.home, "versions/3.11.7/bin/python3.11"))
	shim := fake{Version: "3.11.7", Executable: behind}.install(t, filepath.Join(w.bin, "python"))
	rt, err := pyenv.Resolve(t.Context(), w.options())
	require.NoError(t, err)
	require.Equal(t, behind, rt.Path)
	require.Equal(t, shim, rt.Steps[len(rt.Steps)-1].Path)
}

func TestResolveExplicit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	venv := fakeVenv(t, filepath.Join(w.cwd, "tools/env"), fake{Version: "3.13.0"})
	inVenv := pyenv.VenvPython(venv)
	onPath := fake{Version: "3.11.7"}.install(t, filepath.Join(w.bin, "python3.11"))
	inHome := fake{Version: "3.10.1"}.install(t, filepath.Join(w.home, "python"))
	fake{Version: "2.7.18"}.install(t, filepath.Join(w.bin, "python2"))
	fakeVenv(t, filepath.Join(w.cwd, ".venv"), fake{Version: "3.11.7"}) // must not be looked at

	tests := []struct{ ask, path, venv, wrong string }{
		{ask: inVenv, path: inVenv, venv: venv},
		{ask: "tools/env/bin/python", path: inVenv, venv: venv},
		{ask: "python3.11", path: onPath},
		{ask: "~/python", path: inHome},
		{ask: "python3.99", wrong: `the Python "python3.99" cannot be used: it is not on PATH; name another interpreter, or none to let one be found`},
		{ask: "./nowhere/python", wrong: `the Python "./nowhere/python" cannot be used: it is not a program; name another interpreter, or none to let one be found`},
		{ask: "python2", wrong: `the Python "python2" cannot be used: it is Python 2.7.18, and 3.9 or newer is needed; name another interpreter, or none to let one be found`},
	}
	for _, tt := range tests {
		t.Run(tt.ask, func(t *testing.T) {
			t.Parallel()
			o := w.options()
			o.Python = tt.ask
			rt, err := pyenv.Resolve(t.Context(), o)
			require.Len(t, rt.Steps, 1, "nothing else is tried")
			if tt.wrong != "" {
				var none *pyenv.NoPythonError
				require.ErrorAs(t, err, &none)
				require.EqualError(t, err, tt.wrong)
				return
			}
			require.NoError(t, err)
			require.Equal(t, pyenv.SourceOption, rt.Source)
			require.Equal(t, tt.path, rt.Path)
			require.Equal(t, tt.venv, rt.Venv)
		})
	}
}

func TestResolveFindsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, os.Mkdir(filepath.Join(w.cwd, "venv"), 0o700))
	rt, err := pyenv.Resolve(t.Context(), w.options())
	var none *pyenv.NoPythonError
	require.ErrorAs(t, err, &none)
	require.Len(t, rt.Steps, 6, "the steps are reported also when there is no interpreter")
	require.Equal(t, "no Python 3.9 or newer was found: venv ("+filepath.Join(w.cwd, "venv")+
		") holds no bin/python; install one from your system's packages or python.org, or name one with --python", err.Error())
}

func TestResolveStopsWithItsContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fake{Version: "3.11.7"}.install(t, filepath.Join(w.bin, "python"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rt, err := pyenv.Resolve(ctx, w.options())
	require.Error(t, err)
	require.Equal(t, "does not run: context canceled", rt.Steps[4].Why)
}

func TestPreflight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := fake{Version: "3.11.7", Packages: []string{"kernel_gateway", "jupyter_server", "ipykernel"}}.install(t, filepath.Join(w.bin, "python-all"))
	one := fake{Version: "3.11.7", Packages: []string{"ipykernel"}}.install(t, filepath.Join(w.bin, "python-one"))
	dead := fake{Exit: 1, Stderr: "Fatal Python error\n"}.install(t, filepath.Join(w.bin, "python-dead"))

	got, err := pyenv.Preflight(t.Context(), pyenv.Runtime{Path: all})
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]pyenv.Package{
		{Module: "kernel_gateway", Dist: "jupyter_kernel_gateway", Found: true, Version: "1.2"},
		{Module: "jupyter_server", Dist: "jupyter_server", Found: true, Version: "1.2"},
		{Module: "ipykernel", Dist: "ipykernel", Found: true, Version: "1.2"},
	}, got))

	for source, next := range map[pyenv.Source]string{
		pyenv.SourcePython3: "run `coppice setup`, or `" + one + " -m pip install jupyter_kernel_gateway ipykernel`",
		pyenv.SourceDotVenv: "run `" + one + " -m pip install jupyter_kernel_gateway ipykernel`, or run `coppice setup` and choose its environment with --python",
	} {
		got, err = pyenv.Preflight(t.Context(), pyenv.Runtime{Path: one, Version: "3.11.7", Source: source})
		var missing *pyenv.MissingPackagesError
		require.ErrorAs(t, err, &missing)
		require.Equal(t, []string{"jupyter_kernel_gateway", "jupyter_server"}, missing.Missing)
		require.EqualError(t, err, "Python 3.11.7 at "+one+" lacks jupyter_kernel_gateway, jupyter_server: "+next)
		require.True(t, got[2].Found)
		require.False(t, got[0].Found)
	}

	_, err = pyenv.Preflight(t.Context(), pyenv.Runtime{Path: dead})
	require.EqualError(t, err, "ask "+dead+` for its packages: it does not run: exited with code 1, saying "Fatal Python error"`)
}

func TestRealPython(t *testing.T) {
	t.Parallel()
	python := realPython(t)
	cwd := t.TempDir()
	// A file of the project must not pass for an installed package.
	require.NoError(t, os.WriteFile(filepath.Join(cwd, "ipykernel.py"), nil, 0o600))
	rt, err := pyenv.Resolve(t.Context(), pyenv.Options{Python: python, Cwd: cwd})
	require.NoError(t, err)
	require.Equal(t, python, rt.Path)
	packages, err := pyenv.Preflight(t.Context(), rt)
	require.NoError(t, err)
	for _, p := range packages {
		require.True(t, p.Found, p.Module)
		require.Regexp(t, `^\d+\.\d+`, p.Version, p.Module)
	}
	require.NotContains(t, strings.Join(rt.Env, "\n"), "COPPICE_TEST_PYTHON")
}
