package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/test/gobuild"
)

// What is built here is built as the test was, with packages that are compiled already.
func TestMain(m *testing.M) {
	if err := os.Setenv("GOFLAGS", strings.Join(append(gobuild.Flags(), strings.Fields(os.Getenv("GOFLAGS"))...), " ")); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// What is explained is still there.
func TestWhatIsExplained(t *testing.T) {
	t.Parallel()
	for _, e := range explained {
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(e.file)))
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(text), e.code), "%s: %s", e.file, e.code)
		require.Contains(t, tokens, e.kind)
		require.NotEmpty(t, e.why)
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	e := explained[0]
	c := change{file: e.file, kind: e.kind, column: 3 + strings.Index(e.code, "<"), source: "\t" + e.code}
	require.Equal(t, e.why, explain(c))
	for name, other := range map[string]change{
		"another kind":  {c.file, "INVERT_LOGICAL", 1, c.column, "", "", c.source},
		"another place": {c.file, c.kind, 1, 1, "", "", c.source},
		"another line":  {c.file, c.kind, 1, c.column, "", "", "\tif a < b {"},
		"another file":  {"other.go", c.kind, 1, c.column, "", "", c.source},
	} {
		require.Empty(t, explain(other), name)
	}
}

// module is a small one, with tests that notice some of its changes.
func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.26\n",
		"p/p.go": `package p

func Max(a, b int) int {
	if a > b {
		return a
	}
	return b
}

func Sum(to int) (sum int) {
	for i := 0; i <= to; i++ {
		sum += i
	}
	return sum
}

func Hello(name string) string { return "hello " + name }
`,
		"p/p_test.go": `package p

import (
	"testing"
	"time"
)

func TestMax(t *testing.T) {
	if Max(1, 2) != 2 || Max(2, 1) != 2 {
		t.Fatal("not the larger one")
	}
}

func TestSum(t *testing.T) {
	time.Sleep(400 * time.Millisecond) // it is one of those that come after the others
	if Sum(3) != 6 {
		t.Fatal("not the sum")
	}
	Hello("you")
}
`,
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	return dir
}

type spot struct {
	Type   string `json:"type"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

func try(t *testing.T, dir string, args []string, places ...spot) (string, error) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"files": []map[string]any{{"file_name": "p.go", "mutations": places}}})
	require.NoError(t, err)
	found := filepath.Join(t.TempDir(), "found.json")
	require.NoError(t, os.WriteFile(found, text, 0o600))
	var out strings.Builder
	err = run(t.Context(), append(append([]string{"-tree", dir, "-package", "p"}, args...), found), &out, io.Discard)
	return out.String(), err
}

func TestChanges(t *testing.T) {
	t.Parallel()
	dir := module(t)
	negation := spot{"CONDITIONALS_NEGATION", 4, 7}
	boundary := spot{"CONDITIONALS_BOUNDARY", 4, 7}
	endless := spot{"INCREMENT_DECREMENT", 11, 24}
	wrong := spot{"ARITHMETIC_BASE", 17, 50} // strings are not subtracted
	out, err := try(t, dir, []string{"-patience", "5s"},
		negation, boundary, endless, wrong,
		spot{"INVERT_ASSIGNMENTS", 12, 7}, spot{"REMOVE_SELF_ASSIGNMENTS", 12, 7}, spot{"CONDITIONALS_BOUNDARY", 11, 16})
	require.ErrorIs(t, err, errLive)
	require.Contains(t, out, "p/p.go:4:7 CONDITIONALS_BOUNDARY lives: if a > b {\n")
	require.Contains(t, out, "p: 6 changes tried, 5 noticed (83.3 %), 1 of them as no test ended any more; 0 explained, 1 live; 1 more do not compile; 4 of them in one program\n")

	out, err = try(t, dir, []string{"-at", "p.go:4:7 CONDITIONALS_N"}, negation, boundary, negation)
	require.NoError(t, err)
	require.Contains(t, out, "p: 1 changes tried, 1 noticed (100.0 %)", "each is tried once")
	_, err = try(t, dir, []string{"-run", "TestSum"}, negation)
	require.ErrorIs(t, err, errLive)
}

func TestWhatCannotBeTried(t *testing.T) {
	t.Parallel()
	dir := module(t)
	for name, c := range map[string]struct {
		places []spot
		args   []string
		says   string
	}{
		"nothing":         {nil, nil, "there is no change to be tried in p"},
		"nothing there":   {[]spot{{"CONDITIONALS_NEGATION", 4, 7}}, []string{"-at", "other"}, "there is no change to be tried in p"},
		"past the end":    {[]spot{{"CONDITIONALS_NEGATION", 400, 7}}, nil, "p/p.go:400:7 CONDITIONALS_NEGATION: the file has no such place"},
		"another text":    {[]spot{{"CONDITIONALS_NEGATION", 4, 2}}, nil, `nothing is known that could stand there instead of "if a > b {"`},
		"another kind":    {[]spot{{"OTHER", 4, 7}}, nil, "nothing is known"},
		"no test":         {[]spot{{"CONDITIONALS_NEGATION", 4, 7}}, []string{"-run", "TestNone"}, `no test of p matches "TestNone"`},
		"no expression":   {nil, []string{"-at", "("}, "read -at"},
		"another package": {[]spot{{"CONDITIONALS_NEGATION", 4, 7}}, []string{"-package", "q"}, "read what is to be changed"},
	} {
		_, err := try(t, dir, c.args, c.places...)
		require.ErrorContains(t, err, c.says, name)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "p", "more_test.go"), []byte("package p\n\nimport \"testing\"\n\nfunc TestNo(t *testing.T) { t.Fatal(\"it fails\") }\n"), 0o600))
	_, err := try(t, dir, nil, spot{"CONDITIONALS_NEGATION", 4, 7})
	require.ErrorContains(t, err, "the tests of p do not pass without a change")
	require.ErrorContains(t, err, "it fails")
}
