// Package testpython finds the Python interpreter that tests run real kernels
// with: COPPICE_TEST_PYTHON, or the environment that `make test-env` makes. A
// test that needs it fails when there is none; it never skips, because a suite
// that runs no kernel proves nothing.
package testpython

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Path returns the interpreter, absolute. It has jupyter_kernel_gateway and
// ipykernel.
func Path(tb testing.TB) string {
	tb.Helper()
	return find(tb, "COPPICE_TEST_PYTHON", "python", "run kernels with", "make test-env")
}

// JupyterServerOnly returns an interpreter of a virtual environment that has all
// packages of the Python of [Path] but jupyter_kernel_gateway. It goes with the
// test.
func JupyterServerOnly(tb testing.TB) string {
	tb.Helper()
	dir := tb.TempDir()
	venv, packages := filepath.Join(dir, "venv"), filepath.Join(dir, "packages")
	const show = "import ipykernel, os; print(os.path.dirname(os.path.dirname(ipykernel.__file__)))"
	all := strings.TrimSpace(output(tb, Path(tb), "-c", show))
	entries, err := os.ReadDir(all)
	if err == nil {
		err = os.Mkdir(packages, 0o700)
	}
	for _, e := range entries {
		if err == nil && !strings.Contains(e.Name(), "kernel_gateway") {
			err = os.Symlink(filepath.Join(all, e.Name()), filepath.Join(packages, e.Name()))
		}
	}
	if err != nil {
		tb.Fatalf("leave packages out of %s: %v", all, err)
	}
	output(tb, Path(tb), "-m", "venv", "--without-pip", venv)
	python := filepath.Join(venv, "bin", "python")
	if runtime.GOOS == "windows" {
		python = filepath.Join(venv, "Scripts", "python.exe")
	}
	site := strings.TrimSpace(output(tb, python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"))
	if err := os.WriteFile(filepath.Join(site, "packages.pth"), []byte(packages+"\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	return python
}

func output(tb testing.TB, program string, args ...string) string {
	tb.Helper()
	out, err := exec.CommandContext(context.Background(), program, args...).Output()
	if err != nil {
		tb.Fatalf("run %s: %v", program, err)
	}
	return string(out)
}

// Enterprise returns the interpreter that has jupyter_enterprise_gateway,
// absolute: COPPICE_TEST_ENTERPRISE_PYTHON, or that of the environment which
// `make test-env-enterprise` makes.
func Enterprise(tb testing.TB) string {
	tb.Helper()
	return find(tb, "COPPICE_TEST_ENTERPRISE_PYTHON", "enterprise", "run an Enterprise Gateway with", "make test-env-enterprise")
}

func find(tb testing.TB, variable, folder, purpose, remedy string) string {
	tb.Helper()
	python := os.Getenv(variable)
	if python == "" {
		bin := filepath.Join("bin", "python")
		if runtime.GOOS == "windows" {
			bin = filepath.Join("Scripts", "python.exe")
		}
		python = filepath.Join(root(tb), ".cache", folder, bin)
	}
	if _, err := os.Stat(python); err != nil {
		tb.Fatalf("no Python to %s (%v): run `%s`, or set %s", purpose, err, remedy, variable)
	}
	return python
}

// Extras returns the folder with pandas, matplotlib, tqdm and ipywidgets for the Python of
// [Path], to be put into PYTHONPATH: that of this module, or the one beside the
// environment that COPPICE_TEST_PYTHON names. Without it the test fails.
func Extras(tb testing.TB) string {
	tb.Helper()
	own := filepath.Join(root(tb), ".cache", "python-extras")
	beside := filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(Path(tb)))), "python-extras")
	for _, dir := range []string{own, beside} {
		if _, err := os.Stat(filepath.Join(dir, "extras.txt")); err == nil {
			return dir
		}
	}
	tb.Fatalf("no pandas, matplotlib, tqdm and ipywidgets for kernels in %s: run `make test-env`", own)
	return ""
}

// root is the folder of the module.
func root(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			tb.Fatal("no go.mod above the working directory")
		}
		dir = parent
	}
}
