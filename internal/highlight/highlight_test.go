package highlight_test

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/formatters/html"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/alecthomas/chroma/v2/styles"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/highlight"
)

var update = flag.Bool("update", false, "write chroma.zip again, from chroma")

// missing are the languages that chroma describes by functions, which cannot be written down.
var missing = []string{
	"Common Lisp", "ERB", "EmacsLisp", "Go HTML Template", "HTTP", "Haxe", "PHTML", "Raku", "Svelte", "YAML+Jinja", "reStructuredText",
}

type entry struct {
	name string
	data []byte
}

// looks are the styles that are packed.
var looks = []string{"github", "github-dark"}

// pack returns what chroma.zip has to hold, in the order in which chroma has its languages,
// and the names of those that cannot be in it.
func pack() (entries []entry, left []string) {
	for _, l := range lexers.GlobalLexerRegistry.Lexers {
		name := l.Config().Name
		data, err := written(l)
		if err != nil {
			left = append(left, name)
			continue
		}
		file := strings.NewReplacer(" ", "_", "/", "_").Replace(strings.ToLower(name))
		entries = append(entries, entry{"lexers/" + file + ".xml", data})
	}
	for _, name := range looks {
		data, err := xml.MarshalIndent(styles.Get(name), "", "  ")
		if err != nil {
			left = append(left, name)
			continue
		}
		entries = append(entries, entry{"styles/" + name + ".xml", data})
	}
	return entries, left
}

// inStrings is the rule of Go that looks for templates in strings, by a function.
const inStrings = "(`)([^`]*)(`)"

var errFunctions = errors.New("it is not a lexer of rules")

// written returns a language as XML, its states in a fixed order. What chroma wraps
// around the rules of one is left out, and so are templates in strings of Go.
func written(l chroma.Lexer) ([]byte, error) {
	r, ok := l.(*chroma.RegexLexer)
	if inner := reflect.Indirect(reflect.ValueOf(l)); !ok && inner.Kind() == reflect.Struct {
		if f := inner.FieldByName("Lexer"); f.IsValid() {
			r, ok = reflect.TypeAssert[*chroma.RegexLexer](f)
		}
	}
	if !ok {
		return nil, errFunctions
	}
	rules, err := r.Rules()
	if err != nil {
		return nil, err
	}
	rules = rules.Clone()
	for _, state := range rules {
		for i := range state {
			if state[i].Pattern == inStrings && r.Config().Name == "Go" {
				state[i].Type = chroma.ByGroups(chroma.LiteralString, chroma.LiteralString, chroma.LiteralString)
			}
		}
	}
	whole, err := chroma.NewLexer(r.Config(), func() chroma.Rules { return rules })
	if err != nil {
		return nil, err
	}
	data, err := chroma.Marshal(whole)
	if err != nil {
		return nil, err
	}
	const state, end = "\n    <state ", "\n  </rules>"
	head, body, _ := strings.Cut(string(data), state)
	body, tail, _ := strings.Cut(body, end)
	states := strings.Split(body, state)
	slices.Sort(states)
	return []byte(head + state + strings.Join(states, state) + end + tail + "\n"), nil
}

// version is that of chroma in go.mod.
func version(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	require.NoError(t, err)
	found := regexp.MustCompile(`github\.com/alecthomas/chroma/v2 (v\S+)`).FindSubmatch(text)
	require.NotNil(t, found)
	return string(found[1])
}

// The archive has all that chroma has. It names the version that it is made of; what is in
// it is compared in the full run, as that takes the race detector ten seconds.
func TestArchive(t *testing.T) {
	if !*update && os.Getenv("COPPICE_TEST_FULL") == "" {
		got := open(t)
		require.Equal(t, version(t), got.Comment, "it is of another chroma: go test ./internal/highlight -update")
		require.Len(t, got.File, len(lexers.GlobalLexerRegistry.Lexers)-len(missing)+len(looks))
		return
	}
	want, left := pack()
	if *update {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		require.NoError(t, w.SetComment(version(t)))
		for _, e := range want {
			f, err := w.Create(e.name)
			require.NoError(t, err)
			_, err = f.Write(e.data)
			require.NoError(t, err)
		}
		require.NoError(t, w.Close())
		require.NoError(t, os.WriteFile("chroma.zip", b.Bytes(), 0o600))
	}
	slices.Sort(left)
	require.Equal(t, missing, left)
	got := open(t)
	require.Equal(t, version(t), got.Comment)
	require.Len(t, got.File, len(want), "go test ./internal/highlight -update writes it")
	for i, e := range want {
		require.Equal(t, e.name, got.File[i].Name)
		require.True(t, bytes.Equal(e.data, read(t, got.File[i])), "%s is not what chroma has: go test ./internal/highlight -update", e.name)
	}
}

func open(t *testing.T) *zip.ReadCloser {
	t.Helper()
	got, err := zip.OpenReader("chroma.zip")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, got.Close()) })
	return got
}

func read(t *testing.T, from *zip.File) []byte {
	t.Helper()
	f, err := from.Open()
	require.NoError(t, err)
	data, err := io.ReadAll(f)
	require.NoError(t, err)
	return data
}

func TestNames(t *testing.T) {
	for _, l := range lexers.GlobalLexerRegistry.Lexers {
		c := l.Config()
		if slices.Contains(missing, c.Name) {
			continue
		}
		for _, name := range append([]string{c.Name}, c.Aliases...) {
			want := lexers.Get(name).Config().Name
			if slices.Contains(missing, want) {
				continue
			}
			got := highlight.Lexer(name)
			require.NotNil(t, got, name)
			require.Equal(t, want, got.Config().Name, name)
		}
	}
	require.Nil(t, highlight.Lexer("no such language"))
	require.Equal(t, "HTML", highlight.Lexer("Svelte").Config().Name)
}

// Chroma panics when a language needs one that is not there.
func TestWhatLanguagesNeed(t *testing.T) {
	need := regexp.MustCompile(`<using lexer="([^"]*)"`)
	for _, f := range open(t).File {
		for _, found := range need.FindAllSubmatch(read(t, f), -1) {
			require.NotNil(t, highlight.Lexer(string(found[1])), "%s needs %s", f.Name, found[1])
			require.NotEqual(t, "lexers/python.xml", f.Name, "Python is read without the others")
		}
	}
}

func TestTokens(t *testing.T) {
	for language, source := range map[string]string{
		"python":   "@cached\nasync def f(x: int = 0x1f) -> str:\n    \"\"\"Says.\"\"\"\n    return f'{x!r:>{10}} é' if x else None  # so\n",
		"py":       "%matplotlib inline\n!ls\nx = [1, 2.5e3]\n",
		"r":        "f <- function(x, ...) { x %>% mean(na.rm = TRUE) } # mean\n",
		"julia":    "function f(x::Int64)\n    println(\"$x\")\nend\n",
		"bash":     "for f in *.txt; do echo \"$f\" | wc -l; done\n",
		"json":     `{"a": [1, true, null, "x"]}`,
		"sql":      "select a, count(*) from t where b = 'x' group by a;",
		"html":     "<p class=\"a\"><script>let x = 1</script></p>",
		"markdown": "# Title\n\n- *one* and `two`\n\n```python\nx = 1\n```\n",
		"go":       "package main\n\nfunc main() { println(\"x\", 'y', 0x1f) } // so\n",
		"rb":       "def f(x) = puts \"#{x}\"\n",
	} {
		t.Run(language, func(t *testing.T) {
			require.Equal(t, tokens(t, lexers.Get(language), source), tokens(t, highlight.Lexer(language), source))
		})
	}
}

func tokens(t *testing.T, l chroma.Lexer, source string) []chroma.Token {
	t.Helper()
	require.NotNil(t, l)
	i, err := l.Tokenise(nil, source)
	require.NoError(t, err)
	return i.Tokens()
}

func TestStyles(t *testing.T) {
	for name, read := range map[string]func() (*chroma.Style, error){"github": highlight.Light, "github-dark": highlight.Dark} {
		s, err := read()
		require.NoError(t, err)
		require.Equal(t, css(t, styles.Get(name)), css(t, s))
	}
}

func css(t *testing.T, s *chroma.Style) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, html.New(html.WithClasses(true)).WriteCSS(&b, s))
	return b.String()
}
