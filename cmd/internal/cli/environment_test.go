package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/internal/home"
)

// notSet are variables in the code that no user sets, with what they are.
var notSet = map[string]string{
	"COPPICE_TOOL_TOKEN": "the launcher gives it to a tool",
	"COPPICE_PATH":       "a login shell in a sandbox of E2B takes its PATH from it",
	"COPPICE_PROMPT":     "so does one with a terminal, which runs this once",
}

// heard are the variables with the prefix COPPICE_ that the code names in a literal, with
// where; those that it names by their older names, too.
func heard(t *testing.T, top string) map[string]string {
	t.Helper()
	name := regexp.MustCompile(`^(COPPICE|PI)_([A-Z0-9_]*[A-Z0-9])(?:=.*)?$`)
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(top, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains([]string{"test", "bench", "examples", "tools", filepath.Join("fleet", "fleettest")}, rel) || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && rel != "."):
			return fs.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			lit, is := n.(*ast.BasicLit)
			if !is || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if m := name.FindStringSubmatch(text); err == nil && m != nil && (m[1] == "COPPICE" || hasNewer(m[2])) {
				all["COPPICE_"+m[2]] = rel
			}
			return true
		})
		return nil
	}))
	return all
}

// hasNewer says whether a variable PI_name has a name with COPPICE_, too.
func hasNewer(name string) bool {
	return len(home.WithOlderNames([]string{"COPPICE_" + name + "=1"})) == 2
}

// "help environment" has all variables that users may set, and none besides.
func TestTheHelpHasAllVariables(t *testing.T) {
	t.Parallel()
	var help string
	for _, c := range topics() {
		if c.Name() == "environment" {
			help = c.Long
		}
	}
	told := map[string]bool{}
	for _, m := range regexp.MustCompile(`COPPICE_[A-Z0-9_]*[A-Z0-9]\b`).FindAllString(help, -1) {
		told[m] = true
	}
	require.NotEmpty(t, told)
	all := heard(t, filepath.Join("..", "..", ".."))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if why, not := notSet[name]; not {
			require.False(t, told[name], "%s: %s", name, why)
		} else {
			require.True(t, told[name], "%s, in %s, is not in help environment", name, all[name])
		}
	}
	for name := range told {
		require.Contains(t, all, name, "no code hears of it")
	}
	for name := range notSet {
		require.Contains(t, all, name, "no exception is needed any more")
	}
}

// Commands and flags call variables by the names that they have now. The older ones are in
// "help environment", which says what they are.
func TestTheHelpHasTheNamesOfNow(t *testing.T) {
	t.Parallel()
	old := regexp.MustCompile(`PI_([A-Z0-9_]*[A-Z0-9])\b`)
	check := func(where, text string) {
		for _, m := range old.FindAllStringSubmatch(text, -1) {
			require.False(t, hasNewer(m[1]), "%s: %s has the name COPPICE_%s", where, m[0], m[1])
		}
	}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Name() != "environment" {
			check(c.CommandPath(), c.Short+"\n"+c.Long+"\n"+c.Example)
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { check(c.CommandPath()+" --"+f.Name, f.Usage) })
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk((&app{Console: console.New(strings.NewReader(""), io.Discard, io.Discard, nil)}).rootCommand())
}
