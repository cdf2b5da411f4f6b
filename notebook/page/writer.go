package page

import (
	"bufio"
	"bytes"
	"html/template"
	"net/url"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"

	"github.com/coppice-run/coppice/notebook"
)

// writer writes what a page shows in another way than goldmark would: code in
// colours, HTML in frames, pictures only when the notebook holds them, and links
// that may be followed.
type writer struct {
	code       *highlighter
	attachment func(name string) notebook.Bundle
}

// RegisterFuncs names what is written here.
func (w *writer) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	for kind, write := range map[ast.NodeKind]func(util.BufWriter, []byte, ast.Node){
		ast.KindFencedCodeBlock: w.fenced,
		ast.KindCodeBlock:       preformatted,
		kindFormulaBlock:        preformatted,
		ast.KindHTMLBlock:       frame,
		ast.KindRawHTML:         inlineHTML,
		ast.KindAutoLink:        autoLink,
		ast.KindImage:           w.image,
		extast.KindTaskCheckBox: checkBox,
	} {
		reg.Register(kind, func(out util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
			if entering {
				write(out, source, n)
			}
			return ast.WalkSkipChildren, nil
		})
	}
	reg.Register(ast.KindLink, link)
	reg.Register(kindFormula, func(util.BufWriter, []byte, ast.Node, bool) (ast.WalkStatus, error) {
		return ast.WalkContinue, nil
	})
}

// put writes to a buffer, whose error stays until it is flushed.
func put(out util.BufWriter, parts ...string) {
	for _, s := range parts {
		_, _ = out.WriteString(s)
	}
}

func escaped(s string) string { return template.HTMLEscapeString(s) }

func (w *writer) fenced(out util.BufWriter, source []byte, n ast.Node) {
	block := n.(*ast.FencedCodeBlock) // by its kind
	language := strings.Trim(string(block.Language(source)), "{.}")
	text := strings.TrimSuffix(string(block.Lines().Value(source)), "\n")
	put(out, string(w.code.in(language, text)), "\n")
}

func preformatted(out util.BufWriter, source []byte, n ast.Node) {
	put(out, "<pre>", escaped(strings.TrimRight(string(n.Lines().Value(source)), "\n")), "</pre>\n")
}

// frame shows HTML in a frame. A comment shows nothing.
func frame(out util.BufWriter, source []byte, n ast.Node) {
	block := n.(*ast.HTMLBlock) // by its kind
	doc := string(block.Lines().Value(source))
	if block.HasClosure() {
		doc += string(block.ClosureLine.Value(source))
	}
	doc = strings.TrimRight(doc, "\n")
	if block.HTMLBlockType == ast.HTMLBlockType2 {
		if _, rest, _ := strings.Cut(doc, "-->"); strings.TrimSpace(rest) == "" {
			return
		}
	}
	put(out, `<iframe sandbox="allow-same-origin" loading="lazy" title="HTML" srcdoc="`, escaped(frameHead+doc), `"></iframe>`, "\n")
}

// inlineHTML writes the elements that may stand in a text, and others as text.
func inlineHTML(out util.BufWriter, source []byte, n ast.Node) {
	if tag, ok := n.AttributeString(tagName); ok {
		put(out, tag.(string)) // markPlain sets a string
		return
	}
	raw := n.(*ast.RawHTML).Segments.Value(source) // by its kind
	if !bytes.HasPrefix(raw, []byte("<!--")) {
		put(out, escaped(string(raw)))
	}
}

func checkBox(out util.BufWriter, _ []byte, n ast.Node) {
	if n.(*extast.TaskCheckBox).IsChecked { // by its kind
		put(out, "☑ ")
	} else {
		put(out, "☐ ")
	}
}

func link(out util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	l := n.(*ast.Link) // by its kind
	to, ok := address(l.Destination)
	switch {
	case !ok: // its text alone
	case !entering:
		put(out, "</a>")
	default:
		anchor(out, to, l.Title)
	}
	return ast.WalkContinue, nil
}

func anchor(out util.BufWriter, to string, title []byte) {
	put(out, `<a href="`, escaped(to), `"`)
	if len(title) > 0 {
		put(out, ` title="`, shown(title), `"`)
	}
	put(out, ` rel="noreferrer noopener">`)
}

func autoLink(out util.BufWriter, source []byte, n ast.Node) {
	l := n.(*ast.AutoLink) // by its kind
	to := string(l.URL(source))
	if l.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(to), "mailto:") {
		to = "mailto:" + to
	}
	label := escaped(string(l.Label(source)))
	to = string(util.URLEscape([]byte(to), false))
	if !followed(to) || inLink(n) {
		put(out, label)
		return
	}
	anchor(out, to, nil)
	put(out, label, "</a>")
}

// shown is text of a source as HTML: entities and backslashes before signs stand
// for what they mean.
func shown(b []byte) string {
	var out bytes.Buffer
	w := bufio.NewWriter(&out)
	html.DefaultWriter.Write(w, b)
	_ = w.Flush()
	return out.String()
}

// address is what a destination in a source stands for, and whether it may be
// followed.
func address(destination []byte) (string, bool) {
	to := string(util.URLEscape(destination, true))
	return to, followed(to)
}

func followed(to string) bool {
	u, err := url.Parse(to)
	if err != nil {
		return false
	}
	switch strings.ToLower(u.Scheme) {
	case "", "http", "https", "mailto":
		return true
	default:
		return false
	}
}

var dataImage = regexp.MustCompile(`^data:image/(?:png|jpeg|gif|webp|svg\+xml);base64,[A-Za-z0-9+/=]*$`)

// image shows a picture that the notebook holds. Another one would have to be
// loaded, so it is a link.
func (w *writer) image(out util.BufWriter, source []byte, n ast.Node) {
	img := n.(*ast.Image) // by its kind
	alt := alternative(img, source)
	to := string(img.Destination)
	src := ""
	if name, ok := strings.CutPrefix(to, "attachment:"); ok && w.attachment != nil {
		if plain, err := url.PathUnescape(name); err == nil {
			name = plain
		}
		b := w.attachment(name)
		for _, mime := range pictures {
			if data, ok := picture(b, mime); ok {
				src = string(data)
				break
			}
		}
	} else if dataImage.MatchString(to) {
		src = to
	}
	href, ok := "", false
	if src == "" {
		href, ok = address(img.Destination)
	}
	switch {
	case src != "":
		put(out, `<img src="`, escaped(src), `" alt="`, alt, `"`)
		if len(img.Title) > 0 {
			put(out, ` title="`, shown(img.Title), `"`)
		}
		put(out, ">")
	case ok && href != "" && !inLink(n):
		anchor(out, href, img.Title)
		put(out, "[", alt, "]</a>")
	default:
		put(out, "[", alt, "]")
	}
}

// inLink says whether a node is in a link; a link in a link is no HTML.
func inLink(n ast.Node) bool {
	for p := n.Parent(); p != nil; p = p.Parent() {
		if p.Kind() == ast.KindLink {
			return true
		}
	}
	return false
}

// alternative is what stands for a picture: the text in it. The picture is not
// deep, prepare saw to that.
func alternative(n ast.Node, source []byte) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		t, ok := c.(*ast.Text)
		switch {
		case !ok:
			b.WriteString(alternative(c, source))
		case t.IsRaw():
			b.WriteString(escaped(string(t.Segment.Value(source))))
		default:
			b.WriteString(shown(t.Segment.Value(source)))
			if t.SoftLineBreak() || t.HardLineBreak() {
				b.WriteByte(' ')
			}
		}
	}
	return b.String()
}
