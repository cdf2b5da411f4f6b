package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/bench/record"
	"github.com/coppice-run/coppice/test/testpython"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// suite runs the command.
func suite(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestARunIsComparedAndReported(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "r.json")
	code, _, errs := suite(t, "-out", out, "-python", testpython.Path(t), "-rounds", "2", "-only", "exec/fake,peer/bare-pipe")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, errs, "exec/fake/1000, round 2")
	f, err := record.Read(out)
	require.NoError(t, err)
	require.Len(t, f.Results, 3)
	require.NotEmpty(t, f.Machine.Python)
	for _, r := range f.Results {
		require.Positive(t, r.Floor)
	}
	code, text, errs := suite(t, "-compare", out, out)
	require.Equal(t, exitOK, code, errs)
	require.True(t, strings.HasSuffix(text, "\nno significant change\n"), text)
	code, _, errs = suite(t, "-report", filepath.Join(dir, "report"), out)
	require.Equal(t, exitOK, code, errs)
	_, err = os.Stat(filepath.Join(dir, "report", "README.md"))
	require.NoError(t, err)
}

func TestProfilesAreLeftWhereTheyWereAskedFor(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "profiles")
	code, _, errs := suite(t, "-out", filepath.Join(t.TempDir(), "r.json"), "-python", testpython.Path(t), "-rounds", "1", "-only", "peer/bare-pipe", "-profile", dir)
	require.Equal(t, exitOK, code, errs)
	for _, kind := range []string{"cpu", "allocs", "block", "mutex", "trace"} {
		info, err := os.Stat(filepath.Join(dir, "peer-bare-pipe-1.1."+kind))
		require.NoError(t, err)
		require.Positive(t, info.Size(), kind)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm()|0o600)
	}
}

func TestWhatCannotBeIsSaidInOneLine(t *testing.T) {
	t.Setenv("COPPICE_TEST_PYTHON", "")
	empty := filepath.Join(t.TempDir(), "empty.json")
	require.NoError(t, os.WriteFile(empty, []byte("{}"), 0o600))
	for name, tc := range map[string]struct {
		args []string
		code int
		text string
	}{
		"no file":        {nil, exitUsage, "-out"},
		"one to compare": {[]string{"-compare", "a"}, exitUsage, "-compare takes two files"},
		"unknown flag":   {[]string{"-nope"}, exitUsage, "-nope"},
		"no interpreter": {[]string{"-out", "x.json"}, exitFailed, "COPPICE_TEST_PYTHON"},
		"nothing of it":  {[]string{"-out", "x.json", "-python", "python3", "-only", "moon"}, exitFailed, "nothing is called"},
		"no such file":   {[]string{"-compare", "none.json", "none.json"}, exitFailed, "none.json"},
		"not a result":   {[]string{"-report", "x", empty}, exitFailed, "not a file of benchmark results"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, errs := suite(t, tc.args...)
			require.Equal(t, tc.code, code, errs)
			require.Contains(t, errs, tc.text)
		})
	}
}

// The plans hold only what can be run, and each scenario has its place in them.
func TestThePlansAreWhole(t *testing.T) {
	for _, full := range []bool{false, true} {
		o := options{full: full, rounds: 1, python: "python3"}
		steps, err := o.plan(".")
		require.NoError(t, err)
		seen := map[string]bool{}
		for _, s := range steps {
			require.False(t, seen[s.name], "%s is in the plan twice", s.name)
			seen[s.name] = true
		}
		require.Greater(t, len(seen), 25)
	}
}
