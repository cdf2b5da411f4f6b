package pyenv_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/pyenv"
)

const (
	patience   = 3 * time.Minute
	pipSuccess = "Ignoring appnope: markers 'sys_platform == \"darwin\"' don't match your environment\n" +
		"Collecting ipykernel==7.4.0\nCollecting zipp==3.23.1\nInstalling collected packages: ipykernel, zipp\nSuccessfully installed ipykernel-7.4.0\n"
)

// site is a home and a base interpreter.
type site struct {
	dir  string // the environment
	base string
}

func newSite(t *testing.T, base fake) site {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	s := site{dir: filepath.Join(root, "home", "python-env")}
	if base.Version == "" {
		base.Version = "3.11.7"
	}
	if base.Pip.Prints == "" {
		base.Pip.Prints = pipSuccess
	}
	s.base = base.install(t, filepath.Join(root, "bin", "python3"))
	return s
}

func (s site) options() pyenv.SetupOptions {
	return pyenv.SetupOptions{Home: filepath.Dir(s.dir), Env: []string{"PATH=" + filepath.Dir(s.base), "HOME=" + filepath.Dir(s.dir)}}
}

// becomes changes how the base interpreter behaves from now on.
func (s site) becomes(t *testing.T, base fake) {
	t.Helper()
	if base.Pip.Prints == "" {
		base.Pip.Prints = pipSuccess
	}
	base.install(t, s.base)
}

func (s site) state(t *testing.T) pyenv.EnvState {
	t.Helper()
	r, err := pyenv.Check(t.Context(), s.options())
	require.NoError(t, err)
	return r.State
}

// clean says that a finished set-up leaves its lock and nothing else.
func (s site) clean(t *testing.T) {
	t.Helper()
	require.NoFileExists(t, s.dir+".incomplete")
	require.NoDirExists(t, s.dir+".tmp")
}

// recorder keeps the names of the stages, without repetition.
type recorder struct {
	mu     sync.Mutex
	stages []pyenv.Stage
	on     func(pyenv.Stage)
}

func (r *recorder) tell(s pyenv.Stage) {
	r.mu.Lock()
	s.Elapsed = 0
	r.stages = append(r.stages, s)
	r.mu.Unlock()
	if r.on != nil {
		r.on(s)
	}
}

func TestSetup(t *testing.T) {
	t.Parallel()
	s := newSite(t, fake{})
	require.Equal(t, pyenv.EnvAbsent, s.state(t))
	require.NoDirExists(t, filepath.Dir(s.dir), "Check changes nothing")

	var rec recorder
	o := s.options()
	o.Progress = rec.tell
	got, err := pyenv.Setup(t.Context(), o.Installing("a==1 \\\n    --hash=sha256:0\nb==1\nc==1\n"))
	require.NoError(t, err)
	require.Equal(t, pyenv.EnvReady, got.State)
	require.True(t, got.Changed)
	require.Equal(t, pyenv.VenvPython(s.dir), got.Python)
	require.Equal(t, "3.11.7", got.Version)
	require.Equal(t, "1.2", got.Packages[2].Version)
	require.Positive(t, got.Elapsed)
	want := []pyenv.Stage{
		{Name: pyenv.StageFinding},
		{Name: pyenv.StageCreating, Detail: "with Python 3.11.7 at " + s.base},
		{Name: pyenv.StageCollecting, Total: 3},
		{Name: pyenv.StageCollecting, Detail: "ipykernel==7.4.0", Done: 1, Total: 2},
		{Name: pyenv.StageCollecting, Detail: "zipp==3.23.1", Done: 2, Total: 2},
		{Name: pyenv.StageInstalling, Detail: "2 packages"},
		{Name: pyenv.StageChecking},
		{Name: pyenv.StageReady, Detail: s.dir},
	}
	require.Empty(t, cmp.Diff(want, rec.stages))
	s.clean(t)

	rec.stages = nil
	again, err := pyenv.Setup(t.Context(), o.Installing("a==1 \\\n    --hash=sha256:0\nb==1\nc==1\n"))
	require.NoError(t, err)
	require.False(t, again.Changed)
	require.Empty(t, rec.stages, "there was nothing to do")
	require.Equal(t, got.Packages, again.Packages)

	home := filepath.Dir(s.dir)
	rt, err := pyenv.Resolve(t.Context(), pyenv.Options{Home: home, Cwd: home, Env: o.Env})
	require.NoError(t, err)
	require.Equal(t, pyenv.SourceManaged, rt.Source)

	// Other requirements are installed in place: what the user added stays.
	mine := filepath.Join(s.dir, "mine")
	require.Zero(t, touch(mine))
	require.Equal(t, pyenv.EnvOutdated, s.state(t), "the embedded requirements are others")
	got, err = pyenv.Setup(t.Context(), o.Installing("d==1\n"))
	require.NoError(t, err)
	require.True(t, got.Changed)
	require.FileExists(t, mine)
	require.Empty(t, cmp.Diff(pyenv.StageCollecting, rec.stages[0].Name))
}

func TestSetupResumesAfterAnInterruption(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		base fake
		at   pyenv.StageName
	}{
		{name: "while the environment is created", base: fake{Venv: act{Hangs: true}}, at: pyenv.StageCreating},
		{name: "while packages are installed", base: fake{Pip: act{Prints: pipSuccess, Hangs: true}}, at: pyenv.StageInstalling},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, tt.base)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			enough := errors.New("enough")
			o := s.options()
			o.Progress = func(s pyenv.Stage) {
				if s.Name == tt.at {
					cancel(enough)
				}
			}
			_, err := pyenv.Setup(ctx, o)
			require.ErrorIs(t, err, enough)
			require.ErrorContains(t, err, "set up the Python environment in "+s.dir+": interrupted")
			require.Equal(t, pyenv.EnvIncomplete, s.state(t))

			home := filepath.Dir(s.dir)
			rt, err := pyenv.Resolve(t.Context(), pyenv.Options{Home: home, Cwd: home, Env: o.Env})
			require.NoError(t, err)
			require.Equal(t, s.base, rt.Path, "an incomplete environment is passed over")

			s.becomes(t, fake{Version: "3.11.7"})
			got, err := pyenv.Setup(t.Context(), s.options())
			require.NoError(t, err)
			require.Equal(t, pyenv.EnvReady, got.State)
			s.clean(t)
		})
	}
}

func TestSetupResumesAfterAKill(t *testing.T) {
	t.Parallel()
	s := newSite(t, fake{Pip: act{Prints: pipSuccess, Hangs: true}})
	exe, err := os.Executable()
	require.NoError(t, err)
	host, err := process.Start(process.Options{Path: exe, Env: []string{setupRole + "=" + s.dir, "COPPICE_TEST_BASE=" + s.base}})
	require.NoError(t, err)
	defer func() { require.NoError(t, host.Stop(context.Background(), process.StopOptions{Grace: -1})) }()
	var pip []process.Identity
	require.Eventually(t, func() bool {
		pip, err = process.Holding(s.dir + "/coppice-requirements.txt")
		return err == nil && len(pip) == 1
	}, patience, 10*time.Millisecond, "pip does not run")

	require.NoError(t, host.Signal(os.Kill))
	<-host.Done()
	require.Eventually(t, func() bool { return !process.Alive(pip[0]) }, patience, 10*time.Millisecond, "pip outlives its host")
	require.Equal(t, pyenv.EnvIncomplete, s.state(t))

	s.becomes(t, fake{Version: "3.11.7"})
	got, err := pyenv.Setup(t.Context(), s.options())
	require.NoError(t, err)
	require.True(t, got.Changed)
	s.clean(t)
}

func TestSetupWaitsForAnother(t *testing.T) {
	t.Parallel()
	s := newSite(t, fake{})
	require.NoError(t, os.MkdirAll(filepath.Dir(s.dir), 0o700))
	other := flock.New(s.dir + ".lock")
	require.NoError(t, other.Lock())

	ctx, cancel := context.WithCancel(t.Context())
	o := s.options()
	o.Progress = func(stage pyenv.Stage) {
		require.Equal(t, pyenv.Stage{Name: pyenv.StageWaiting, Detail: "for another set-up of " + s.dir, Elapsed: stage.Elapsed}, stage)
		cancel()
	}
	_, err := pyenv.Setup(ctx, o)
	require.ErrorIs(t, err, context.Canceled)
	require.EqualError(t, err, "wait for another set-up of "+s.dir+" to finish: context canceled")
	require.NoDirExists(t, s.dir)

	o.Progress = func(stage pyenv.Stage) {
		if stage.Name == pyenv.StageWaiting {
			require.NoError(t, other.Close())
		}
	}
	got, err := pyenv.Setup(t.Context(), o)
	require.NoError(t, err)
	require.True(t, got.Changed)
}

func TestSetupTogetherBuildsOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, fake{})
	var wg sync.WaitGroup
	results, errs := make([]pyenv.SetupResult, 4), make([]error, 4)
	for i := range results {
		wg.Go(func() { results[i], errs[i] = pyenv.Setup(t.Context(), s.options()) })
	}
	wg.Wait()
	changed := 0
	for i, r := range results {
		require.NoError(t, errs[i])
		require.Equal(t, pyenv.EnvReady, r.State)
		if r.Changed {
			changed++
		}
	}
	require.Equal(t, 1, changed)
}

func TestSetupRepairs(t *testing.T) {
	t.Parallel()
	build := func(t *testing.T) site {
		s := newSite(t, fake{})
		_, err := pyenv.Setup(t.Context(), s.options())
		require.NoError(t, err)
		return s
	}
	tests := []struct {
		name  string
		harm  func(t *testing.T, s site) pyenv.SetupOptions
		state pyenv.EnvState
	}{
		{name: "an interpreter that is gone", state: pyenv.EnvBroken, harm: func(t *testing.T, s site) pyenv.SetupOptions {
			require.NoError(t, os.Remove(pyenv.VenvPython(s.dir)))
			return s.options()
		}},
		{name: "an interpreter that does not run any more", state: pyenv.EnvBroken, harm: func(t *testing.T, s site) pyenv.SetupOptions {
			fake{Exit: 127}.install(t, pyenv.VenvPython(s.dir))
			return s.options()
		}},
		{name: "a stamp that is gone", state: pyenv.EnvOutdated, harm: func(t *testing.T, s site) pyenv.SetupOptions {
			require.NoError(t, os.Remove(filepath.Join(s.dir, "coppice-setup.json")))
			return s.options()
		}},
		{name: "another interpreter was asked for", state: pyenv.EnvReady, harm: func(t *testing.T, s site) pyenv.SetupOptions {
			o := s.options()
			o.Python = fake{Version: "3.12.1", Pip: act{Prints: pipSuccess}}.install(t, filepath.Join(filepath.Dir(s.base), "python3.12"))
			return o
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := build(t)
			o := tt.harm(t, s)
			require.Equal(t, tt.state, s.state(t))
			got, err := pyenv.Setup(t.Context(), o)
			require.NoError(t, err)
			require.True(t, got.Changed)
			require.Equal(t, pyenv.EnvReady, got.State)
			if o.Python != "" {
				require.Equal(t, "3.12.1", got.Version)
			}
			got, err = pyenv.Setup(t.Context(), o)
			require.NoError(t, err)
			require.False(t, got.Changed)
		})
	}
}

func TestSetupRefuses(t *testing.T) {
	t.Parallel()
	t.Run("a directory with something else", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, fake{})
		require.NoError(t, os.MkdirAll(s.dir, 0o700))
		thesis := filepath.Join(s.dir, "thesis.txt")
		require.Zero(t, touch(thesis))
		require.Equal(t, pyenv.EnvForeign, s.state(t))
		_, err := pyenv.Setup(t.Context(), s.options())
		require.EqualError(t, err, s.dir+" is there and is not a Python environment; move it away and run coppice setup again")
		require.FileExists(t, thesis)
		require.NoFileExists(t, s.dir+".incomplete")
	})
	t.Run("no interpreter", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, fake{Version: "3.6.15"})
		_, err := pyenv.Setup(t.Context(), s.options())
		var none *pyenv.NoPythonError
		require.ErrorAs(t, err, &none)
		require.ErrorContains(t, err, "is Python 3.6.15, and 3.9 or newer is needed")
		require.Equal(t, pyenv.EnvAbsent, s.state(t))
	})
	t.Run("its own interpreter", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, fake{})
		_, err := pyenv.Setup(t.Context(), s.options())
		require.NoError(t, err)
		o := s.options()
		o.Python = pyenv.VenvPython(s.dir)
		_, err = pyenv.Setup(t.Context(), o)
		require.EqualError(t, err, o.Python+" lies in the environment that is to be built; name another interpreter with --python")
		require.Equal(t, pyenv.EnvReady, s.state(t))
	})
	t.Run("no place", func(t *testing.T) {
		t.Parallel()
		_, err := pyenv.Setup(t.Context(), pyenv.SetupOptions{})
		require.EqualError(t, err, "set up a Python environment: neither its directory nor a home is given")
	})
	t.Run("Debian without python3-venv", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, fake{Venv: act{Prints: "because ensurepip is not\navailable.\n", Exit: 1}})
		_, err := pyenv.Setup(t.Context(), s.options())
		var failed *pyenv.SetupError
		require.ErrorAs(t, err, &failed)
		require.Contains(t, failed.Next, "apt install python3-venv")
		require.Equal(t, pyenv.EnvIncomplete, s.state(t))
	})
}
