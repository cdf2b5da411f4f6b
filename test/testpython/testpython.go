// Package testpython finds the Python interpreter that tests run real kernels
// with: COPPICE_TEST_PYTHON, or the environment that `make test-env` makes. A
// test that needs it fails when there is none; it never skips, because a suite
// that runs no kernel proves nothing.
package testpython

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Path returns the interpreter, absolute. It has jupyter_kernel_gateway and
// ipykernel.
func Path(tb testing.TB) string {
	tb.Helper()
	return find(tb, "COPPICE_TEST_PYTHON", "python", "run kernels with", "make test-env")
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

// Extras returns the folder with pandas, matplotlib and tqdm for the Python of
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
	tb.Fatalf("no pandas, matplotlib and tqdm for kernels in %s: run `make test-env`", own)
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
