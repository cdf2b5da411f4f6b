// Package promises_test holds SECURITY.md to what it promises: the tests that it names are
// there, and what it says of pinned dependencies is so.
package promises_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the folder of the repository, as seen from this one.
const root = "../.."

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	require.NoError(t, err)
	return string(text)
}

// promise is a row of the table.
type promise struct {
	says string
	// tests are pairs of a folder and the name of a test.
	tests [][2]string
}

var named = regexp.MustCompile("`([a-z][\\w/]*) (Test[A-Z]\\w*)`")

// promises reads the rows of the last table of a document.
func promises(document string) []promise {
	_, table, _ := strings.Cut(document, "| promise | tests |\n| --- | --- |\n")
	var list []promise
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) != 2 {
			break
		}
		p := promise{says: cells[0]}
		for _, m := range named.FindAllStringSubmatch(cells[1], -1) {
			p.tests = append(p.tests, [2]string{m[1], m[2]})
		}
		list = append(list, p)
	}
	return list
}

// testsOf are the names of the tests in a folder.
func testsOf(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*_test.go"))
	require.NoError(t, err)
	var names []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}

func TestEveryPromiseIsHeld(t *testing.T) {
	t.Parallel()
	list := promises(read(t, "SECURITY.md"))
	require.Greater(t, len(list), 15)
	for _, p := range list {
		require.NotEmpty(t, p.tests, "%s: no test is named", p.says)
		for _, name := range p.tests {
			require.Contains(t, testsOf(t, name[0]), name[1], "%s: %s", p.says, name[0])
		}
	}
}

// The check finds what is wrong with a table.
func TestTableIsRead(t *testing.T) {
	t.Parallel()
	require.Equal(t, []promise{
		{says: "A", tests: [][2]string{{"x/y", "TestA"}, {"z", "TestB"}}},
		{says: "B"},
	}, promises("text\n| promise | tests |\n| --- | --- |\n| A | `x/y TestA`, `z TestB` |\n| B | by hand |\n\nmore | text\n"))
	require.Empty(t, promises("no table"))
	require.NotContains(t, testsOf(t, "test/promises"), "TestThatIsGone")
}

// tracked are the files of the repository whose names match.
func tracked(t *testing.T, patterns ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"ls-files", "--cached", "--others", "--exclude-standard", "--"}, patterns...)...)
	cmd.Dir = root
	out, err := cmd.Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}

// Every Python and npm package that a build or a test fetches has a checksum, and comes
// from wherever the machine's settings say.
func TestEveryPinHasAHash(t *testing.T) {
	t.Parallel()
	locks := tracked(t, "*package-lock.json")
	require.NotEmpty(t, locks)
	for _, name := range locks {
		var lock struct {
			Packages map[string]map[string]any `json:"packages"`
		}
		require.NoError(t, json.Unmarshal([]byte(read(t, name)), &lock), name)
		for path, p := range lock.Packages {
			if path == "" {
				continue
			}
			require.NotEmpty(t, p["integrity"], "%s: %s has no checksum", name, path)
			require.Nil(t, p["resolved"], "%s: %s names a registry", name, path)
		}
	}
	requirements := tracked(t, "*requirements*.txt", "*extras.txt")
	require.NotEmpty(t, requirements)
	for _, name := range requirements {
		text := strings.ReplaceAll(read(t, name), "\\\n", " ")
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "--") || strings.Contains(name, "testdata") {
				continue
			}
			require.Contains(t, line, "==", name)
			require.Contains(t, line, "--hash=sha256:", "%s: %s has no checksum", name, line)
		}
	}
	for _, name := range tracked(t, "*go.mod") {
		require.FileExists(t, filepath.Join(root, filepath.FromSlash(strings.TrimSuffix(name, "mod")+"sum")), name)
	}
}
