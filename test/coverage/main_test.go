package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func profile(t *testing.T, lines ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "profile")
	require.NoError(t, os.WriteFile(name, []byte("mode: set\n"+strings.Join(lines, "\n")+"\n"), 0o600))
	return name
}

func TestTable(t *testing.T) {
	t.Parallel()
	first := profile(t,
		module+"/supervisor/a.go:1.1,2.2 7 0",
		module+"/supervisor/a.go:3.1,4.2 3 1",
		module+"/host.go:1.1,2.2 1 5",
		module+"/test/proc/proc.go:1.1,2.2 100 0",
		module+"/fleet/fleettest/a.go:1.1,2.2 100 0",
	)
	second := profile(t, module+"/supervisor/a.go:1.1,2.2 7 1")
	kept := filepath.Join(t.TempDir(), "packages.txt")

	var out strings.Builder
	require.ErrorIs(t, run([]string{first}, &out), errLow)
	require.Equal(t, "100.0 %      1  .\n 30.0 %     10  supervisor  less than 70 %, and no reason\n 36.4 %     11  all\n", out.String())

	out.Reset()
	require.NoError(t, run([]string{"-out", kept, first, second}, &out), "what ran in any program has run")
	require.Equal(t, "100.0 %      1  .\n100.0 %     10  supervisor\n100.0 %     11  all\n", out.String())
	text, err := os.ReadFile(kept)
	require.NoError(t, err)
	require.Equal(t, out.String(), string(text))

	out.Reset()
	require.NoError(t, run([]string{first, second, "--", module + "/supervisor"}, &out))
	require.Equal(t, "100.0 %     10  supervisor\n100.0 %     10  all\n", out.String())

	require.ErrorContains(t, run([]string{profile(t, "a b")}, &out), `:2: "a b" is no line of a profile`)
	require.ErrorContains(t, run([]string{profile(t, "a x 1")}, &out), "invalid syntax")
	require.ErrorContains(t, run([]string{filepath.Join(t.TempDir(), "none")}, &out), "read a profile")
}

// A reason that no package needs is none.
func TestReasonsAreOfPackages(t *testing.T) {
	t.Parallel()
	for name, reason := range reasons {
		require.DirExists(t, filepath.Join("..", "..", filepath.FromSlash(name)))
		require.NotEmpty(t, reason, name)
	}
}
