package pyenv_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/internal/pyenv"
)

// setupRole makes the test binary run Setup for the directory in this variable,
// so that a test can kill it.
const setupRole = "COPPICE_TEST_SETUP_DIR"

func TestMain(m *testing.M) {
	if strings.HasPrefix(filepath.Base(os.Args[0]), "python") {
		// Not os.Exit: under the race detector it sleeps for a second.
		syscall.Exit(playPython(os.Args[0], os.Args[1:]))
	}
	if dir := os.Getenv(setupRole); dir != "" {
		_, err := pyenv.Setup(context.Background(), pyenv.SetupOptions{Dir: dir, Python: os.Getenv("COPPICE_TEST_BASE")})
		fmt.Fprintln(os.Stderr, err)
		syscall.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// fake is how a test's interpreter behaves. It is a link to the test binary
// with this, as JSON, in a file beside it: no script is written and executed,
// which fails with "text file busy" while another test forks.
type fake struct {
	Version    string // "3.11.7"
	Executable string // sys.executable; "" is the link itself
	Noise      string // printed before any answer
	Answer     *string
	Exit       int
	Stderr     string
	Packages   []string // modules it can import, before and after pip ran
	// EndedBy is a signal that ends it, or an exit code with a minus, the first
	// EndedTimes times.
	EndedBy, EndedTimes int

	Venv, Pip act
	// Made is how an interpreter behaves that -m venv makes; nil is like this one.
	Made *fake
}

// act is what happens in -m venv and -m pip.
type act struct {
	Prints string
	Exit   int
	Hangs  bool
}

// install puts the interpreter in a place and returns its path.
func (f fake) install(t testing.TB, path string) string {
	t.Helper()
	require.NoError(t, f.write(path))
	return path
}

func (f fake) write(path string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	data, err := json.Marshal(f)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".fake", data, 0o600); err != nil {
		return err
	}
	_ = os.Remove(path)
	return os.Symlink(exe, path)
}

// playPython is what the fake interpreter does.
func playPython(self string, args []string) int {
	var f fake
	data, err := os.ReadFile(self + ".fake")
	if err != nil || json.Unmarshal(data, &f) != nil {
		return 99
	}
	if code, ended := f.end(self + ".runs"); ended {
		return code
	}
	fmt.Fprint(os.Stdout, f.Noise)
	fmt.Fprint(os.Stderr, f.Stderr)
	joined := strings.Join(args, " ")
	installed := filepath.Join(filepath.Dir(self), "installed")
	switch {
	case f.Exit != 0:
		return f.Exit
	case f.Answer != nil:
		fmt.Fprintln(os.Stdout, *f.Answer)
	case strings.HasPrefix(joined, "-m venv "):
		return playVenv(f, args[2])
	case strings.HasPrefix(joined, "-m pip install "):
		if code := f.Pip.play(); code != 0 {
			return code
		}
		return touch(installed)
	case strings.Contains(joined, "coppice-package"):
		_, err := os.Stat(installed)
		for _, pair := range args[2:] {
			module, _, _ := strings.Cut(pair, "=")
			if err == nil || strings.Contains(strings.Join(f.Packages, " "), module) {
				fmt.Fprintln(os.Stdout, "coppice-package", module, "yes", "1.2")
			} else {
				fmt.Fprintln(os.Stdout, "coppice-package", module, "no", "?")
			}
		}
	case strings.Contains(joined, "coppice-python"):
		if f.Executable == "" {
			f.Executable = self
		}
		fmt.Fprintln(os.Stdout, "coppice-python", strings.ReplaceAll(f.Version, ".", " "), f.Executable)
	}
	return 0
}

// end ends the process as EndedBy says, if this is one of the first runs; it counts
// them in a file.
func (f fake) end(runs string) (code int, ended bool) {
	before, _ := os.ReadFile(runs)
	if len(before) >= f.EndedTimes {
		return 0, false
	}
	if err := os.WriteFile(runs, append(before, '.'), 0o600); err != nil {
		return 96, true
	}
	if f.EndedBy < 0 {
		return -f.EndedBy, true
	}
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Signal(syscall.Signal(f.EndedBy))
	}
	if err != nil {
		return 95, true
	}
	select {} // the signal is on its way
}

func playVenv(f fake, dir string) int {
	made := f
	if f.Made != nil {
		made = *f.Made
	}
	if err := made.write(pyenv.VenvPython(dir)); err != nil {
		return 98
	}
	if code := f.Venv.play(); code != 0 {
		return code
	}
	return touch(filepath.Join(dir, "pyvenv.cfg"))
}

func (a act) play() int {
	fmt.Fprint(os.Stdout, a.Prints)
	if a.Hangs {
		c := make(chan os.Signal, 1)
		signal.Notify(c, os.Interrupt)
		<-c
	}
	return a.Exit
}

func touch(path string) int {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return 97
	}
	return 0
}

// fakeVenv makes a virtual environment around a fake interpreter.
func fakeVenv(t testing.TB, dir string, f fake) string {
	t.Helper()
	f.install(t, pyenv.VenvPython(dir))
	require.Zero(t, touch(filepath.Join(dir, "pyvenv.cfg")))
	return dir
}

// realPython returns an interpreter with the packages of a kernel gateway.
func realPython(t testing.TB) string {
	t.Helper()
	if python := os.Getenv("COPPICE_TEST_PYTHON"); python != "" {
		return python
	}
	python, err := filepath.Abs("../../.cache/python/bin/python")
	require.NoError(t, err)
	_, err = os.Stat(python)
	require.NoError(t, err, "this test needs a Python with a kernel gateway: run make test-env, or set COPPICE_TEST_PYTHON")
	return python
}
