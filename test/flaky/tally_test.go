package main

import (
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
	out.Reset()
	newTally(dir).summary(&out)
	require.Equal(t, "no failures\n", out.String())
}

func TestWhatCannotBeRun(t *testing.T) {
	t.Parallel()
	require.Error(t, run(t.Context(), []string{"-n", "many"}, &strings.Builder{}))
	require.ErrorContains(t, run(t.Context(), []string{"-load", "0", "./no/such/package"}, &strings.Builder{}), "go [test")
}
