package cli

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
)

// shellBlock is a block of commands of a document.
var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// TestDocumentsNameRealCommands reads every block of commands in the documents: what they
// have coppice do is a command that there is, with its flags and as many arguments as it
// takes. Nothing is run.
func TestDocumentsNameRealCommands(t *testing.T) {
	top := filepath.Join("..", "..", "..")
	names := []string{filepath.Join(top, "README.md"), filepath.Join(top, "SECURITY.md")}
	for _, dir := range []string{"docs", "clients"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(top, dir), func(at string, d fs.DirEntry, err error) error {
			if d != nil && d.Name() == "node_modules" {
				return filepath.SkipDir
			}
			if err == nil && filepath.Ext(at) == ".md" {
				names = append(names, at)
			}
			return err
		}))
	}
	found := 0
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
			for _, args := range shellCommands(block[1]) {
				if args[0] == "coppice" {
					found++
					require.NoError(t, takes(args[1:]), "%s: %q", name, args)
				}
			}
		}
	}
	require.Greater(t, found, 40)
}

// takes says what is wrong with a command line.
func takes(args []string) error {
	root := (&app{Console: console.New(strings.NewReader(""), io.Discard, io.Discard, nil)}).rootCommand()
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if stray := strayCommand(root, args); stray != "" {
		return console.Usagef("unknown command %q", stray)
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if cmd.Args == nil {
		return nil
	}
	return cmd.Args(cmd, cmd.Flags().Args())
}

// shellCommands are the words of each command in a script as documents have it: quotes,
// comments, variables that are set for a command, and what ends one.
func shellCommands(script string) [][]string {
	var all [][]string
	var words []string
	var word strings.Builder
	var quote rune
	inWord, comment, escaped := false, false, false
	endWord := func() {
		if inWord {
			words = append(words, word.String())
		}
		word.Reset()
		inWord = false
	}
	endCommand := func() {
		endWord()
		if at := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, ">") || strings.HasPrefix(w, "<") }); at >= 0 {
			words = words[:at] // where the output goes is the shell's
		}
		for len(words) > 0 && assignment.MatchString(words[0]) {
			words = words[1:]
		}
		if len(words) > 0 {
			all = append(all, words)
		}
		words = nil
	}
	for _, c := range script {
		switch {
		case comment && c != '\n':
		case escaped:
			if c != '\n' {
				word.WriteRune(c)
				inWord = true
			}
			escaped = false
		case quote != 0:
			if c == quote {
				quote = 0
			} else {
				word.WriteRune(c)
			}
		case c == '\\':
			escaped = true
		case c == '\'' || c == '"':
			quote, inWord = c, true
		case c == '#' && !inWord:
			comment = true
		case strings.ContainsRune("\n;&|", c):
			comment = false
			endCommand()
		case c == ' ' || c == '\t':
			endWord()
		default:
			word.WriteRune(c)
			inWord = true
		}
	}
	endCommand()
	return all
}

var assignment = regexp.MustCompile(`^[A-Za-z_]\w*=`)

// TestShellCommands is about the reader of scripts itself, and what it lets pass.
func TestShellCommands(t *testing.T) {
	require.Equal(t, [][]string{{"a", "b c", `d"e`}, {"f", "gh"}, {"i"}},
		shellCommands("X=1 a 'b c' \"d\"'\"'e # no\nf g\\\nh && i &\n"))
	for _, wrong := range []string{"frobnicate", "serve --hibernat lossy", "sessions nope", "sessions show", "health now", "run --max-memory"} {
		require.Error(t, takes(strings.Fields(wrong)), wrong)
	}
	require.NoError(t, takes([]string{"health"}))
}
