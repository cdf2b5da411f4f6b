package notebook

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"strings"
)

// MarkdownOptions say how [Document.Markdown] writes.
type MarkdownOptions struct {
	// NoOutputs leaves outputs out.
	NoOutputs bool
	// Image is called for each picture, in outputs and attachments, and returns
	// the link to it, so that a caller can write a file. nil links to the data
	// itself (a data: URL). Only SVG is text; other data was base64 on disk.
	Image func(mime string, data []byte) (link string)
}

// ansiEscape matches the escape sequences that tracebacks are coloured with.
var ansiEscape = regexp.MustCompile("\x1b\\[[0-9;:?]*[a-zA-Z]")

// attachmentLink matches a link to an attachment in the source of a cell.
var attachmentLink = regexp.MustCompile(`\(attachment:([^()\s]+)\)`)

// pictures are the image types of outputs, the best first.
var pictures = []string{"image/svg+xml", "image/png", "image/jpeg", "image/gif", "image/webp"}

// Markdown writes the notebook as a Markdown document: markdown cells as they
// are, code in fenced blocks, and outputs below them, each in the first form
// there is of Markdown, picture, plain text and HTML. Raw cells are written as
// they are. opts may be nil.
func (d *Document) Markdown(opts *MarkdownOptions) string {
	w := markdownWriter{language: d.Language()}
	if opts != nil {
		w.options = *opts
	}
	if w.options.Image == nil {
		w.options.Image = dataURL
	}
	for _, c := range d.cells {
		switch {
		case c.typ == Code:
			w.block(fence(w.language, c.Source()))
			if !w.options.NoOutputs {
				for _, o := range c.Outputs() {
					w.output(o)
				}
			}
		default:
			w.block(w.linkAttachments(c))
		}
	}
	if len(w.blocks) == 0 {
		return ""
	}
	return strings.Join(w.blocks, "\n\n") + "\n"
}

type markdownWriter struct {
	options  MarkdownOptions
	language string
	blocks   []string
}

// block adds a block without its surrounding newlines; an empty one is left
// out.
func (w *markdownWriter) block(text string) {
	if text = strings.Trim(text, "\n"); text != "" {
		w.blocks = append(w.blocks, text)
	}
}

func (w *markdownWriter) output(o Output) {
	switch o.Type {
	case Stream:
		w.block(fence("text", ansiEscape.ReplaceAllString(o.Text, "")))
	case ErrorOutput:
		text := strings.Join(o.Traceback, "\n")
		if text == "" {
			text = o.EName + ": " + o.EValue
		}
		w.block(fence("text", ansiEscape.ReplaceAllString(text, "")))
	case DisplayData, ExecuteResult:
		w.bundle(o.Data)
	}
}

func (w *markdownWriter) bundle(b Bundle) {
	if text, ok := b.Text("text/markdown"); ok {
		w.block(text)
		return
	}
	for _, mime := range pictures {
		if link, ok := w.picture(b, mime); ok {
			w.block("![output](" + link + ")")
			return
		}
	}
	if text, ok := b.Text("text/plain"); ok {
		w.block(fence("text", ansiEscape.ReplaceAllString(text, "")))
	} else if text, ok := b.Text("text/html"); ok {
		w.block(text)
	}
}

func (w *markdownWriter) picture(b Bundle, mime string) (link string, ok bool) {
	if mime == "image/svg+xml" {
		text, ok := b.Text(mime)
		if !ok {
			return "", false
		}
		return w.options.Image(mime, []byte(text)), true
	}
	data, ok := b.Image(mime)
	if !ok {
		return "", false
	}
	return w.options.Image(mime, data), true
}

// linkAttachments returns the source of a cell with links to its attachments
// replaced by links to the pictures.
func (w *markdownWriter) linkAttachments(c *Cell) string {
	attachments := c.n.get("attachments")
	if attachments == nil {
		return c.Source()
	}
	return attachmentLink.ReplaceAllStringFunc(c.Source(), func(link string) string {
		name := attachmentLink.FindStringSubmatch(link)[1]
		if plain, err := url.PathUnescape(name); err == nil {
			name = plain
		}
		b := decodeBundle(attachments.get(name))
		for _, mime := range pictures {
			if to, ok := w.picture(b, mime); ok {
				return "(" + to + ")"
			}
		}
		return link
	})
}

// fence puts text into a block that no run of backticks in it can end.
func fence(language, text string) string {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return ""
	}
	ticks := "```"
	for strings.Contains(text, ticks) {
		ticks += "`"
	}
	return ticks + language + "\n" + text + "\n" + ticks
}

func dataURL(mime string, data []byte) string {
	return "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(data)
}
