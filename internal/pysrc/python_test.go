package pysrc_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The Python side has tests of its own in tests. COPPICE_TEST_FULL=1 runs them on
// every version of Python that is installed and supported, not on one alone.
func TestThePythonSide(t *testing.T) {
	t.Parallel()
	for _, python := range interpreters(t) {
		t.Run(python, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, python, "-B", "-m", "unittest", "discover", "-s", "tests", "-t", "tests")
			cmd.WaitDelay = 10 * time.Second
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Regexp(t, `(?m)^Ran [1-9]\d* tests`, string(out))
			require.Regexp(t, `(?m)^OK`, string(out))
		})
	}
}

// interpreters returns the Pythons to test with: the one of the other suites, or
// that on PATH, and in a full run each supported version that can be found.
func interpreters(t *testing.T) []string {
	t.Helper()
	first := os.Getenv("COPPICE_TEST_PYTHON")
	if first == "" {
		var err error
		first, err = exec.LookPath("python3")
		require.NoError(t, err, "this test needs python3 on PATH, or COPPICE_TEST_PYTHON")
	}
	found := []string{first}
	if os.Getenv("COPPICE_TEST_FULL") == "" {
		return found
	}
	home, err := os.UserHomeDir()
	require.NoError(t, err)
	for _, version := range []string{"3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.15"} {
		names := []string{"python" + version, filepath.Join("..", "..", ".cache", "pythons", version, "usr", "bin", "python"+version)}
		managed, err := filepath.Glob(filepath.Join(home, ".pyenv", "versions", version+".*", "bin", "python"))
		require.NoError(t, err)
		for _, name := range append(names, managed...) {
			// A shim on PATH may stand for a version that is not there.
			if exec.CommandContext(t.Context(), name, "-c", "import sys").Run() == nil {
				found = append(found, name)
				break
			}
		}
	}
	return found
}

// What no host would send costs a session and a fork server that line, and
// nothing else. For longer: python tests/fuzz.py SECONDS.
func TestThePythonSideIsFuzzed(t *testing.T) {
	t.Parallel()
	seconds := "3"
	if os.Getenv("COPPICE_TEST_FULL") != "" {
		seconds = "60"
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, interpreters(t)[0], "-B", filepath.Join("tests", "fuzz.py"), seconds).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "no crash")
	t.Logf("%s", out)
}
