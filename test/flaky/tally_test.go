package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const firstRun = `{"Action":"run","Package":"m/a","Test":"TestX"}
{"Action":"output","Package":"m/a","Test":"TestX","Output":"before\n"}
{"Action":"output","Package":"m/a","Test":"TestX/part","Output":"it was late\n"}
{"Action":"output","Package":"m/a","Test":"TestGood","Output":"noise\n"}
{"Action":"pass","Package":"m/a","Test":"TestGood"}
{"Action":"fail","Package":"m/a","Test":"TestX/part"}
{"Action":"fail","Package":"m/a","Test":"TestX"}
{"Action":"output","Package":"m/a","Output":"FAIL\n"}
{"Action":"fail","Package":"m/a"}
{"Action":"pass","Package":"m/b"}
`

const secondRun = `# m/c
{"Action":"output","Package":"m/a","Test":"TestX","Output":"again\n"}
{"Action":"fail","Package":"m/a","Test":"TestX"}
{"Action":"run","Package":"m/b","Test":"TestY"}
{"Action":"run","Package":"m/b","Test":"TestY/part"}
{"Action":"run","Package":"m/b","Test":"TestZ"}
{"Action":"pause","Package":"m/b","Test":"TestZ"}
{"Action":"output","Package":"m/b","Output":"panic: no memory\n"}
{"Action":"fail","Package":"m/b"}`

func TestTally(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "kept")
	seen := newTally(dir)
	require.NoError(t, seen.read(1, strings.NewReader(firstRun)))
	require.Equal(t, 1, seen.failures, "a failure is that of the part")
	require.NoError(t, seen.read(2, strings.NewReader(secondRun)))
	require.NoError(t, seen.read(3, strings.NewReader(firstRun)))
	require.Equal(t, map[name]int{{"m/a", "TestX/part"}: 2, {"m/a", "TestX"}: 1, {"m/b", ""}: 1}, seen.failed)

	text, err := os.ReadFile(filepath.Join(dir, "a-TestX_part-1.txt"))
	require.NoError(t, err)
	require.Equal(t, "=== m/a\nFAIL\n=== m/a TestX\nbefore\n=== m/a TestX/part\nit was late\n", string(text))
	text, err = os.ReadFile(filepath.Join(dir, "b--2.txt"))
	require.NoError(t, err)
	require.Contains(t, string(text), "no memory")

	var out strings.Builder
	seen.summary(&out)
	require.True(t, strings.HasPrefix(out.String(), "   2  m/a TestX/part\n       "+filepath.Join(dir, "a-TestX_part-1.txt")+"\n"), out.String())
	require.Contains(t, out.String(), filepath.Join(dir, "b--2.txt")+" (not ended: TestY/part)\n")
	out.Reset()
	newTally(dir).summary(&out)
	require.Equal(t, "no failures\n", out.String())
}

func TestWhatCannotBeRun(t *testing.T) {
	t.Parallel()
	require.Error(t, run(t.Context(), []string{"-n", "many"}, &strings.Builder{}))
	require.ErrorContains(t, run(t.Context(), []string{"-load", "0", "./no/such/package"}, &strings.Builder{}), "go [test")
}

// A test that fails every second time is named with how often it did, and so is one that
// takes its package with it: it had not ended. What each said is kept.
func TestRunFindsPlantedFailures(t *testing.T) {
	kept := filepath.Join(t.TempDir(), "kept")
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{
		"go.mod":         "module planted\n\ngo 1.26\n",
		"good/x_test.go": "package good\n\nimport \"testing\"\n\nfunc TestGood(t *testing.T) {}\n",
		"x_test.go": `package planted

import (
	"os"
	"testing"
)

func TestNowAndThen(t *testing.T) {
	f, err := os.OpenFile("runs", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	runs, err := os.ReadFile("runs")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("part", func(t *testing.T) {
		if len(runs)%2 == 0 {
			t.Error("it was run an even number of times")
		}
	})
	if len(runs) == 3 {
		os.Exit(9)
	}
}
`,
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOWORK", "off")
	var out strings.Builder
	err := run(t.Context(), []string{"-n", "4", "-load", "1", "-keep", kept, "./..."}, &out)
	require.ErrorIs(t, err, errFailed, out.String())
	for n, failures := range []int{0, 1, 1, 1} {
		require.Contains(t, out.String(), fmt.Sprintf("run %d of 4: %d failures", n+1, failures))
	}
	require.Contains(t, out.String(), "   2  planted TestNowAndThen/part\n       "+filepath.Join(kept, "planted-TestNowAndThen_part-2.txt")+"\n")
	require.Contains(t, out.String(), "   1  planted\n       "+filepath.Join(kept, "planted--3.txt")+" (not ended: TestNowAndThen)\n")
	require.NotContains(t, out.String(), "good")
	text, err := os.ReadFile(filepath.Join(kept, "planted-TestNowAndThen_part-4.txt"))
	require.NoError(t, err)
	require.Contains(t, string(text), "it was run an even number of times")
}
