package secondlook_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/test/secondlook"
)

// root is the folder of the repository, as seen from this one.
const root = "../.."

// TestEveryDefectIsHeld: each row is whole, and what it names is there.
func TestEveryDefectIsHeld(t *testing.T) {
	t.Parallel()
	known := tests{}
	for _, row := range secondlook.Rows() {
		for _, problem := range problems(row, known) {
			t.Errorf("%s: %s", row.ID, problem)
		}
	}
}

// TestNoDefectIsMissing: the numbers of each letter have no gap, and none is there twice.
func TestNoDefectIsMissing(t *testing.T) {
	t.Parallel()
	last := map[string]int{"T": 23, "N": 19, "P": 29, "E": 16, "C": 37}
	var want, got []string
	for _, letter := range []string{"T", "N", "P", "E", "C"} {
		for n := range last[letter] {
			want = append(want, fmt.Sprint(letter, n+1))
		}
	}
	for _, row := range secondlook.Rows() {
		got = append(got, row.ID)
	}
	require.Equal(t, want, got)
}

// TestAWrongRowIsFound: the check finds what is wrong with a row.
func TestAWrongRowIsFound(t *testing.T) {
	t.Parallel()
	defect := "something went wrong here once"
	here := "test/secondlook TestAWrongRowIsFound"
	for name, tc := range map[string]struct {
		row  secondlook.Row
		want string
	}{
		"nothing became of it":   {secondlook.Row{Defect: defect}, "neither held"},
		"no words":               {secondlook.Row{Held: []string{here}}, "does not say what went wrong"},
		"a test that is gone":    {secondlook.Row{Defect: defect, Held: []string{"test/secondlook TestThatIsGone"}}, "there is no test"},
		"a folder that is gone":  {secondlook.Row{Defect: defect, Held: []string{"test/gone TestX"}}, "there is no test"},
		"a function of its tree": {secondlook.Row{Defect: defect, Held: []string{"test/secondlook problems"}}, "there is no test"},
		"no sentence":            {secondlook.Row{Defect: defect, Said: []string{"README.md: no such sentence is there"}}, "does not say"},
		"no document":            {secondlook.Row{Defect: defect, Said: []string{"GONE.md: text"}}, "GONE.md"},
		"no text of a script":    {secondlook.Row{Defect: defect, Held: []string{"test/scripts/run.txtar: no such text is there"}}, "does not say"},
		"no place":               {secondlook.Row{Defect: defect, Said: []string{"README.md"}}, "names no"},
	} {
		found := strings.Join(problems(tc.row, tests{}), "; ")
		require.Contains(t, found, tc.want, name)
	}
	require.Empty(t, problems(secondlook.Row{Defect: defect, Held: []string{here}, Said: []string{"docs/limits.md: Coppice is tested on Linux."}}, tests{}))
}

// problems says what is wrong with a row.
func problems(row secondlook.Row, known tests) []string {
	var list []string
	if len(row.Defect) < 20 || strings.HasSuffix(row.Defect, ".") {
		list = append(list, fmt.Sprintf("%q does not say what went wrong, in a sentence without its end", row.Defect))
	}
	if len(row.Held)+len(row.Said) == 0 && row.Kept == "" && row.Open == "" {
		list = append(list, "it is neither held by a test, nor said in a document, nor kept for a reason, nor open")
	}
	for _, where := range row.Held {
		dir, name, isTest := strings.Cut(where, " ")
		if strings.HasSuffix(dir, ":") {
			list = append(list, sentence(where)...)
			continue
		}
		if !isTest || !testName.MatchString(name) || !known.in(dir)[name] {
			list = append(list, fmt.Sprintf("there is no test %q in %s", name, dir))
		}
	}
	for _, where := range row.Said {
		list = append(list, sentence(where)...)
	}
	return list
}

var testName = regexp.MustCompile(`^Test[A-Z0-9]\w*$`)

// sentence looks for "FILE: TEXT".
func sentence(where string) []string {
	file, text, ok := strings.Cut(where, ": ")
	if !ok || text == "" {
		return []string{fmt.Sprintf("%q names no file and text", where)}
	}
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		return []string{err.Error()}
	}
	plain := func(s string) string {
		return strings.Join(strings.Fields(strings.ReplaceAll(s, "//", " ")), " ")
	}
	if !strings.Contains(plain(string(data)), plain(text)) {
		return []string{fmt.Sprintf("%s does not say %q", file, text)}
	}
	return nil
}

// tests are the names of the tests of a folder, whatever system they are for.
type tests map[string]map[string]bool

func (k tests) in(dir string) map[string]bool {
	if names, ok := k[dir]; ok {
		return names
	}
	names := map[string]bool{}
	files, _ := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*_test.go")) // the pattern is a good one
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			continue // the compiler says so
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				names[f.Name.Name] = true
			}
		}
	}
	k[dir] = names
	return names
}
