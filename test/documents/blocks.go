package documents

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Block is a fenced block of a document.
type Block struct {
	// Doc is the document, by its path in the repository, with slashes.
	Doc string
	// Line is where the fence stands, from 1.
	Line int
	// Language is what the fence says, empty for none.
	Language string
	// Text are the lines between the fences, each with its end.
	Text string
}

// String is "docs/server.md:3".
func (b Block) String() string { return fmt.Sprintf("%s:%d", b.Doc, b.Line) }

// First is the first line.
func (b Block) First() string {
	first, _, _ := strings.Cut(b.Text, "\n")
	return first
}

// documents are what users read of the repository, as patterns.
var documents = []string{"README.md", "docs/*.md", "docs/*/*.md", "clients/*/README.md"}

// made is the folder of the documents that are made from the sources.
const made = "docs/reference/"

// Read has all blocks of the documents in the repository at top, in their order.
func Read(top string) ([]Block, error) {
	var blocks []Block
	for _, pattern := range documents {
		names, err := filepath.Glob(filepath.Join(top, filepath.FromSlash(pattern)))
		if err != nil {
			return nil, fmt.Errorf("find %s: %w", pattern, err)
		}
		slices.Sort(names)
		for _, name := range names {
			relative, err := filepath.Rel(top, name)
			if err != nil {
				return nil, fmt.Errorf("name %s: %w", name, err)
			}
			doc := filepath.ToSlash(relative)
			if strings.HasPrefix(doc, made) {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, fmt.Errorf("read a document: %w", err)
			}
			found, err := parse(doc, string(text))
			if err != nil {
				return nil, err
			}
			blocks = append(blocks, found...)
		}
	}
	return blocks, nil
}

var fence = regexp.MustCompile("^ {0,3}(`{3,}|~{3,})\\s*(\\S*)")

// parse finds the blocks of one document.
func parse(doc, text string) ([]Block, error) {
	var blocks []Block
	var open *Block
	var closing string
	for i, line := range strings.Split(text, "\n") {
		switch {
		case open != nil && strings.TrimSpace(line) == closing:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.Text += line + "\n"
		default:
			if m := fence.FindStringSubmatch(line); m != nil {
				open, closing = &Block{Doc: doc, Line: i + 1, Language: m[2]}, m[1]
			}
		}
	}
	if open != nil {
		return nil, fmt.Errorf("%s: the block is not ended", open)
	}
	return blocks, nil
}

// commands are the logical lines of a block of shell: one that ends with a backslash goes
// on, one without words is none.
func commands(text string) []string {
	var all []string
	before := ""
	for line := range strings.SplitSeq(text, "\n") {
		switch line = before + line; {
		case strings.HasSuffix(line, `\`):
			before = line + "\n"
			continue
		case strings.TrimSpace(line) != "" && !strings.HasPrefix(strings.TrimSpace(line), "#"):
			all = append(all, line)
		}
		before = ""
	}
	return all
}
