package reference

import (
	"fmt"
	"regexp"
	"strings"
)

// page is a page while it is written.
type page struct{ b strings.Builder }

// made is said at the top of each page.
const made = "<!-- Made from the sources by \"make docs-reference\"; changes here are lost. -->\n\n"

func newPage(title, about string) *page {
	p := &page{}
	p.b.WriteString(made)
	p.line("# " + title)
	p.line("")
	p.line(about)
	return p
}

func (p *page) line(text string) { p.b.WriteString(text + "\n") }

func (p *page) heading(level int, text string) {
	p.line("")
	p.line(strings.Repeat("#", level) + " " + text)
	p.line("")
}

// block is text that is shown as it is.
func (p *page) block(language, text string) {
	p.line("```" + language)
	p.line(strings.TrimRight(text, "\n"))
	p.line("```")
}

// table is rows below a head; cells are Markdown.
func (p *page) table(head []string, rows [][]string) {
	p.line("| " + strings.Join(head, " | ") + " |")
	p.line(strings.Repeat("| --- ", len(head)) + "|")
	for _, row := range rows {
		p.line("| " + strings.Join(row, " | ") + " |")
	}
}

func (p *page) text() []byte {
	p.line("")
	p.line("[All of the reference](README.md)")
	return []byte(p.b.String())
}

// marked are the characters that Markdown and HTML would take for their own.
var marked = strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", "&lt;", ">", "&gt;", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "`", "\\`", "$", "&#36;")

// named is a link of a comment to something of the library, which is its name alone here.
var named = regexp.MustCompile(`\[\*?([A-Z]\w*(?:\.\w+)*|[a-z]+\.[A-Z]\w*(?:\.\w+)*)\]`)

// plain is text as it is, in one line.
func plain(text string) string {
	return marked.Replace(named.ReplaceAllString(strings.Join(strings.Fields(text), " "), "$1"))
}

// code is a word in the type of programs, also within a table.
func code(text string) string { return "`" + strings.ReplaceAll(text, "|", `\|`) + "`" }

// Index is the page that leads to the others, which are name, title and what they tell of.
func Index(pages [][3]string) []byte {
	p := newPage("Reference", "All of these are made from the sources of this version.\n")
	var rows [][]string
	for _, one := range pages {
		rows = append(rows, []string{fmt.Sprintf("[%s](%s)", one[1], one[0]), one[2]})
	}
	p.table([]string{"page", "what is there"}, rows)
	p.line("")
	p.line("The documentation of package `coppice` tells more about the library: `go doc github.com/coppice-run/coppice`.")
	p.line("Back to [all pages](../README.md).")
	return []byte(p.b.String())
}
