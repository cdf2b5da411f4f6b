package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	code, _, errs := suite(t, "-out", out, "-python", testpython.Path(t), "-rounds", "2", "-only", "exec/fake,peer/bare-pipe,beside/runner")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, errs, "exec/fake/1000, round 2")
	f, err := record.Read(out)
	require.NoError(t, err)
	require.Len(t, f.Results, 5)
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

// Two programs that are measured in turns have one round after the other.
func TestRoundsInTurns(t *testing.T) {
	dir := t.TempDir()
	files := []string{filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json")}
	for turn := 1; turn <= 2; turn++ {
		for _, out := range files {
			code, _, errs := suite(t, "-out", out, "-python", testpython.Path(t), "-rounds", "2", "-only", "create/runner", "-turn")
			require.Equal(t, exitOK, code, errs)
			f, err := record.Read(out)
			require.NoError(t, err)
			require.Len(t, f.Results, turn)
			require.Equal(t, turn, f.Results[turn-1].Round)
			require.True(t, f.Plan.Turns)
		}
	}
	code, text, errs := suite(t, append([]string{"-compare"}, files...)...)
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, text, "2/2")
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

// The plans hold only what can be run, once for each round, and each scenario has
// its place in them. The full one ends in an hour.
func TestThePlansAreWhole(t *testing.T) {
	for name, full := range map[string]bool{"brief": false, "full": true} {
		t.Run(name, func(t *testing.T) {
			o := options{Plan: record.Plan{Full: full, Seed: 7}, python: "python3"}
			steps, err := o.plan(".")
			require.NoError(t, err)
			seen, scenarios := map[string]bool{}, map[string]bool{}
			var all time.Duration
			for _, s := range steps {
				require.False(t, seen[s.String()], "%s is in the plan twice", s)
				seen[s.String()] = true
				scenario, _, _ := strings.Cut(s.name, "/")
				scenarios[scenario] = true
				require.Positive(t, s.expect, s)
				all += s.expect
			}
			require.Contains(t, seen, "create/runner/200, round 12")
			require.Greater(t, len(scenarios), 12)
			require.Less(t, all, 55*time.Minute)
			again, err := o.plan(".")
			require.NoError(t, err)
			require.Equal(t, names(steps), names(again), "a seed makes one order")
			o.Seed++
			other, err := o.plan(".")
			require.NoError(t, err)
			require.NotEqual(t, names(steps), names(other))
		})
	}
}

func TestADryRunListsTheSteps(t *testing.T) {
	code, text, errs := suite(t, "-full", "-dry", "-python", "python3", "-only", "mixed")
	require.Equal(t, exitOK, code, errs)
	require.Regexp(t, `(?m)^ +36s  mixed/runner/100, round 2$`, text)
	require.Regexp(t, `all 3 steps\n$`, text)
}

// What was measured before an interruption is in the file and in a report, what was
// not is named, and -resume measures just that.
func TestARunThatIsInterruptedIsResumed(t *testing.T) {
	out := filepath.Join(t.TempDir(), "r.json")
	args := []string{"-out", out, "-python", testpython.Path(t), "-rounds", "3", "-only", "churn/runner", "-into", filepath.Join(t.TempDir(), "never")}
	ctx, cancel := context.WithCancel(t.Context())
	var errs strings.Builder
	code := run(ctx, args, io.Discard, writer(func(p []byte) {
		errs.Write(p)
		if strings.Contains(errs.String(), "[2/3 ") {
			cancel()
		}
	}))
	require.Equal(t, exitFailed, code, errs.String())
	require.Contains(t, errs.String(), "interrupted, 2 of 3 steps are missing; "+out)
	f, err := record.Read(out)
	require.NoError(t, err)
	require.Len(t, f.Results, 1)
	require.Len(t, f.Missing, 2)
	text, err := os.ReadFile(strings.TrimSuffix(out, ".json") + "-report/README.md")
	require.NoError(t, err)
	require.Contains(t, string(text), "interrupted")
	require.Contains(t, string(text), f.Missing[1])

	code, _, more := suite(t, append(args, "-resume", "-plant", ".2")...)
	require.Equal(t, exitFailed, code)
	require.Contains(t, more, "was made with other flags")
	code, _, more = suite(t, append(args, "-resume")...)
	require.Equal(t, exitOK, code, more)
	require.Contains(t, more, "1 of 3 steps were measured before")
	f, err = record.Read(out)
	require.NoError(t, err)
	require.Len(t, f.Results, 3)
	require.Empty(t, f.Missing)
}

type writer func(p []byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

func TestTheTimeThatIsLeft(t *testing.T) {
	steps := []step{{name: "a", expect: 10 * time.Minute}, {name: "b", expect: 20 * time.Minute}}
	c := newClock(steps)
	now := c.begin
	c.now = func() time.Time { return now }
	require.Equal(t, "0s, 30 min left", c.String())
	now = now.Add(21 * time.Minute) // twice as long as expected
	c.done(steps[0])
	require.Equal(t, "21m0s, 40 min left", c.String())
	c.done(steps[1])
	require.Equal(t, "21m0s, 0 s left", c.String())
}

// A report says how it was made, without the folders of the machine.
func TestTold(t *testing.T) {
	args := []string{"-full", "-python", "/home/me/python", "--out=/tmp/x.json", "-rounds", "2", "-only=peer", "-into", "r", "-extras", "e"}
	require.Equal(t, []string{"-full", "-rounds", "2", "-only=peer"}, told(args))
}
