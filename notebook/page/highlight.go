package page

import (
	"html/template"
	"strings"
	"sync"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/formatters/html"

	"github.com/coppice-run/coppice/internal/highlight"
)

// maxColoured is the longest source that is coloured, in bytes.
const maxColoured = 256 << 10

// highlighter colours code. It is for one goroutine.
type highlighter struct {
	language  string
	formatter *html.Formatter
}

func newHighlighter(language string) *highlighter {
	if language == "" || language == "ipython" {
		language = "python"
	}
	return &highlighter{language: language, formatter: html.New(html.WithClasses(true), html.PreventSurroundingPre(true))}
}

// html colours code of the notebook's language.
func (h *highlighter) html(source string) template.HTML { return h.in(h.language, source) }

// in colours code of a language; what cannot be coloured is shown as it is.
func (h *highlighter) in(language, source string) template.HTML {
	plain := template.HTML("<pre>" + template.HTMLEscapeString(source) + "</pre>") //nolint:gosec // escaped
	if len(source) > maxColoured {
		return plain
	}
	lexer := highlight.Lexer(language)
	style, err := highlight.Light() // the classes are those of any style
	if lexer == nil || err != nil {
		return plain
	}
	tokens, err := chroma.Coalesce(lexer).Tokenise(nil, source)
	if err != nil {
		return plain
	}
	var b strings.Builder
	if h.formatter.Format(&b, style, tokens) != nil {
		return plain
	}
	return template.HTML(`<pre class="chroma"><code>` + strings.TrimSuffix(b.String(), "\n") + "</code></pre>") //nolint:gosec // chroma escapes the source
}

// codeCSS are the colours of code, light and dark.
var codeCSS = sync.OnceValues(func() (string, error) {
	onLight, err := highlight.Light()
	if err != nil {
		return "", err
	}
	onDark, err := highlight.Dark()
	if err != nil {
		return "", err
	}
	var light, dark strings.Builder
	f := html.New(html.WithClasses(true))
	if err := f.WriteCSS(&light, onLight); err != nil {
		return "", err
	}
	if err := f.WriteCSS(&dark, onDark); err != nil {
		return "", err
	}
	return light.String() + "@media (prefers-color-scheme: dark) {\n" + dark.String() + "}\n.chroma, .bg { background: var(--soft) !important; }\n", nil
})
