package page

import (
	"bufio"
	"crypto/sha256"
	_ "embed" // the template, the style sheet and the script
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strconv"
	"strings"

	"github.com/coppice-run/coppice/notebook"
)

// Options say what is on the page. The zero value is all of the notebook.
type Options struct {
	// Title is the page's. "": the first heading of the notebook.
	Title string
	// NoOutputs leaves outputs out, NoCode the source of code cells.
	NoOutputs, NoCode bool
}

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed fit.js
var fitJS string

var pages = template.Must(template.New("page").Parse(pageHTML))

// head is what the template's beginning shows.
type head struct {
	Title  string
	Policy string
	CSS    template.CSS
	JS     template.JS
}

// cellView is a cell as the template shows it.
type cellView struct {
	Index   int
	Kind    string
	Prompt  string
	Source  template.HTML
	Outputs []outputView
	Stale   bool
	Tags    []string
}

// Write writes the page.
func Write(w io.Writer, d *notebook.Document, o Options) error {
	buf := bufio.NewWriterSize(w, 1<<16)
	if o.Title == "" {
		o.Title = title(d)
	}
	css, err := codeCSS()
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	sum := sha256.Sum256([]byte(fitJS))
	h := head{
		Title: o.Title, CSS: template.CSS(pageCSS + css), JS: template.JS(fitJS), //nolint:gosec // both are ours
		Policy: "default-src 'none'; img-src data:; style-src 'unsafe-inline'; font-src data:; base-uri 'none'; form-action 'none'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'",
	}
	if err := pages.ExecuteTemplate(buf, "head", h); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	code := newHighlighter(d.Language())
	for i, c := range d.Cells() {
		v := view(i, c, code, o)
		if err := pages.ExecuteTemplate(buf, "cell", v); err != nil {
			return fmt.Errorf("write cell %d: %w", i, err)
		}
	}
	if err := pages.ExecuteTemplate(buf, "foot", h); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	if err := buf.Flush(); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// view makes what is shown of a cell.
func view(i int, c *notebook.Cell, code *highlighter, o Options) cellView {
	v := cellView{Index: i, Kind: string(c.Type()), Tags: c.Tags()}
	switch c.Type() {
	case notebook.Markdown:
		v.Source = markdown(c.Source(), code, c.Attachment)
	case notebook.Raw:
		v.Source = template.HTML("<pre>" + template.HTMLEscapeString(c.Source()) + "</pre>") //nolint:gosec // escaped
	case notebook.Code:
		v.Prompt = " "
		if n, ok := c.ExecutionCount(); ok {
			v.Prompt = strconv.Itoa(n)
		}
		if !o.NoCode {
			v.Source = code.html(c.Source())
		}
		if !o.NoOutputs {
			v.Stale = c.Stale()
			for _, out := range c.Outputs() {
				v.Outputs = append(v.Outputs, output(out, code))
			}
		}
	}
	return v
}

// title is the first heading of a notebook.
func title(d *notebook.Document) string {
	if raw, ok := d.Metadata("title"); ok && len(raw) > 2 && raw[0] == '"' {
		if s, ok := (notebook.Bundle{"t": raw}).Text("t"); ok {
			return s
		}
	}
	for _, c := range d.Cells() {
		if c.Type() != notebook.Markdown {
			continue
		}
		for line := range strings.Lines(c.Source()) {
			if rest := strings.TrimLeft(line, "#"); rest != line && strings.HasPrefix(rest, " ") {
				return strings.TrimSpace(strings.TrimRight(strings.TrimSpace(rest), "#"))
			}
		}
	}
	return "Notebook"
}
