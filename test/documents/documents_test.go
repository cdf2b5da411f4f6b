package documents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var top = filepath.Join("..", "..")

// Every block of the documents is run by make test-docs, or it is in the table with the
// reason why it is not.
func TestEveryBlockHasItsPlace(t *testing.T) {
	t.Parallel()
	blocks, err := Read(top)
	require.NoError(t, err)
	require.Greater(t, len(blocks), 40)
	require.Empty(t, Check(blocks))
	run, not := 0, 0
	for _, story := range Stories(blocks) {
		for _, s := range story.Steps {
			if s.Run != "" {
				run++
			} else {
				not++
				require.NotEmpty(t, s.Not, "%s: %s", s.Block, s.Shown)
			}
		}
	}
	require.Greater(t, run, 2*not, "most of what is in the documents is run")
}

// A page that no list names is read by nobody: the site has each in its navigation, and the
// list of all pages has it, too.
func TestEveryPageIsListed(t *testing.T) {
	t.Parallel()
	site, err := os.ReadFile(filepath.Join(top, "tools", "docs", "mkdocs.yml"))
	require.NoError(t, err)
	list, err := os.ReadFile(filepath.Join(top, "docs", "README.md"))
	require.NoError(t, err)
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		pages, err := filepath.Glob(filepath.Join(top, filepath.FromSlash(pattern)))
		require.NoError(t, err)
		require.NotEmpty(t, pages, pattern)
		for _, page := range pages {
			relative, err := filepath.Rel(filepath.Join(top, "docs"), page)
			require.NoError(t, err)
			name := filepath.ToSlash(relative)
			require.Contains(t, string(site), "- "+name+"\n", "tools/docs/mkdocs.yml has no line for it")
			if name != "README.md" && !strings.HasPrefix("docs/"+name, made) {
				require.Contains(t, string(list), "]("+name+")", "docs/README.md has no line for it")
			}
		}
	}
}

// A block that is new, gone or changed is found.
func TestCheckFinds(t *testing.T) {
	t.Parallel()
	blocks, err := Read(top)
	require.NoError(t, err)
	at := -1
	for i, b := range blocks {
		if b.Doc == "docs/server.md" && strings.HasPrefix(b.Text, "coppice workspace create") {
			at = i
		}
	}
	require.Positive(t, at)
	with := func(change ...Block) []Block {
		return append(append(append([]Block{}, blocks[:at]...), change...), blocks[at+1:]...)
	}
	changed := blocks[at]
	changed.Text = strings.ReplaceAll(changed.Text, "workspace exec", "workspace start")
	other := blocks[at]
	other.Language = "rust"
	for name, c := range map[string]struct {
		blocks []Block
		says   string
	}{
		"a new block":               {with(blocks[at], Block{Doc: "docs/server.md", Language: "sh", Text: "coppice new\n"}), `"coppice new" has no entry`},
		"a block of a new document": {append(with(blocks[at]), Block{Doc: "docs/new.md", Language: "python", Text: "import coppice\n"}), "docs/new.md:0: the block that begins"},
		"a block that is gone":      {with(), "there is no block for the entry"},
		"a line that is gone":       {with(changed), `0 commands begin with "coppice workspace exec etl -t"`},
		"another language":          {with(other), `in "rust" cannot be run`},
	} {
		require.Contains(t, strings.Join(Check(c.blocks), "\n"), c.says, name)
	}
	require.Empty(t, Check(with(blocks[at], Block{Doc: "docs/server.md", Language: "go", Text: "x\n"})), "Go is compiled by another test")
}

func TestParse(t *testing.T) {
	t.Parallel()
	blocks, err := parse("a.md", "x\n```sh\na \\\n  b\n\n# no\nc\n```\n````\n```\n````\n")
	require.NoError(t, err)
	require.Equal(t, []Block{
		{Doc: "a.md", Line: 2, Language: "sh", Text: "a \\\n  b\n\n# no\nc\n"},
		{Doc: "a.md", Line: 9, Text: "```\n"},
	}, blocks)
	require.Equal(t, []string{"a \\\n  b", "c"}, commands(blocks[0].Text))
	_, err = parse("a.md", "```sh\na\n")
	require.ErrorContains(t, err, "a.md:1: the block is not ended")
}
