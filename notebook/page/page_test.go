package page_test

import (
	"bytes"
	"errors"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/notebook"
	"github.com/coppice-run/coppice/notebook/page"
)

func write(t testing.TB, d *notebook.Document, o page.Options) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, page.Write(&b, d, o))
	return b.String()
}

// body is what the page shows of one cell.
func body(t testing.TB, spec notebook.NewCell, outputs ...notebook.Output) string {
	t.Helper()
	d := notebook.New()
	_, err := d.Append(spec)
	require.NoError(t, err)
	if outputs != nil {
		require.NoError(t, d.SetOutputs(notebook.At(0), 3, outputs...))
	}
	_, text, ok := strings.Cut(write(t, d, page.Options{}), `id="cell-0">`)
	require.True(t, ok)
	text, _, ok = strings.Cut(text, "</section>")
	require.True(t, ok)
	return text
}

func TestMarkdown(t *testing.T) {
	for source, want := range map[string]string{
		"# A *title* #":                          "<h1>A <em>title</em></h1>",
		"Title\n=====":                           "<h1>Title</h1>",
		"a **bold** and __bold__ ~~gone~~":       "<p>a <strong>bold</strong> and <strong>bold</strong> <del>gone</del></p>",
		"a_b_c *x* 2 * 3 * 4":                    "<p>a_b_c <em>x</em> 2 * 3 * 4</p>",
		"`a < b` and ``x`y``":                    "<p><code>a &lt; b</code> and <code>x`y</code></p>",
		"- a\n- b\n  - c\n- d":                   "<ul>\n<li>a</li>\n<li>b\n<ul>\n<li>c</li>\n</ul>\n</li>\n<li>d</li>\n</ul>",
		"3. a\n4. b":                             "<ol start=\"3\">\n<li>a</li>\n<li>b</li>\n</ol>",
		"- [ ] a\n- [x] b":                       "<ul>\n<li>☐ a</li>\n<li>☑ b</li>\n</ul>",
		"- a\n\n- b":                             "<li>",
		"| a | b |\n|:-:|--:|\n| 1 | `x\\|y` |":  "<table>\n<thead>\n<tr>\n<th style=\"text-align:center\">a</th>\n<th style=\"text-align:right\">b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td style=\"text-align:center\">1</td>\n<td style=\"text-align:right\"><code>x|y</code></td>\n</tr>\n</tbody>\n</table>",
		"> said\n> twice":                        "<blockquote>\n<p>said\ntwice</p>\n</blockquote>",
		"---":                                    "<hr>",
		"[a](https://x.org/a_(b) \"t\")":         `<a href="https://x.org/a_(b)" title="t" rel="noreferrer noopener">a</a>`,
		"[a](javascript:alert(1))":               "<p>a</p>",
		"<https://x.org>":                        `<a href="https://x.org" rel="noreferrer noopener">https://x.org</a>`,
		"![a](https://x.org/p.png)":              `<a href="https://x.org/p.png" rel="noreferrer noopener">[a]</a>`,
		"![a](data:image/png;base64,AAAA)":       `<img src="data:image/png;base64,AAAA" alt="a">`,
		"![a](data:text/html;base64,AAAA)":       "<p>[a]</p>",
		"H<sub>2</sub>O <script>x</script>":      "H<sub>2</sub>O &lt;script&gt;x&lt;/script&gt;",
		"<div onclick=x>a</div>":                 `srcdoc="&lt;!DOCTYPE html&gt;`,
		"$a_b*c$ and $$x$$":                      "<p>$a_b*c$ and $$x$$</p>",
		"$$\na * b * c\n$$":                      "<pre>$$\na * b * c\n$$</pre>",
		"a  \nb\\\nc":                            "<p>a<br>\nb<br>\nc</p>",
		"[a][1]\n\n[1]: https://x.org 'T<'":      `<p><a href="https://x.org" title="T&lt;" rel="noreferrer noopener">a</a></p>`,
		"[a](java&#115;cript:x) <javascript:x>":  "<p>a javascript:x</p>",
		"[![a](https://x.org/p)](https://y.org)": `<p><a href="https://y.org" rel="noreferrer noopener">[a]</a></p>`,
		"***a** b* *a**b*":                       "<p><em><strong>a</strong> b</em> <em>a**b</em></p>",
		"> a\n> - b\n>\n>   c":                   "<blockquote>\n<p>a</p>\n<ul>\n<li>\n<p>b</p>\n<p>c</p>\n</li>\n</ul>\n</blockquote>",
		"&copy; &lt;b>":                          "<p>© &lt;b&gt;</p>",
		"a <!-- b --> c":                         "<p>a  c</p>",
		"<b>a <i>b</b> c</i>":                    "<p><b>a &lt;i&gt;b</b> c&lt;/i&gt;</p>",
		"a $x_1 + \ny_2$ b, $3 or _4_":           "<p>a $x_1 + \ny_2$ b, $3 or <em>4</em></p>",
		"$$x$$ is *it*":                          "<p>$$x$$ is <em>it</em></p>",
		"$$ *x*":                                 "<p>$$ <em>x</em></p>",
		"```python\ndef f(): pass\n```":          `<span class="k">def</span>`,
		"~~~\n<x>\n~~~":                          "&lt;x&gt;",
		"    code <b>":                           "<pre>code &lt;b&gt;</pre>",
		"\\*not\\* <b>x":                         "<p>*not* &lt;b&gt;x</p>",
	} {
		require.Contains(t, body(t, notebook.NewCell{Type: notebook.Markdown, Source: source}), want, "%q", source)
	}
}

func TestOutputs(t *testing.T) {
	b := func(mime, text string) notebook.Bundle { return notebook.Bundle{mime: notebook.TextValue(text)} }
	for name, tt := range map[string]struct {
		out  notebook.Output
		want string
	}{
		"stream":     {notebook.NewStream("stdout", "a <b>\r\n10%\r20%\n"), "<pre>a &lt;b&gt;\n20%</pre>"},
		"stderr":     {notebook.NewStream("stderr", "x"), `class="output stream stderr"`},
		"colours":    {notebook.NewError("E", "v", []string{"\x1b[1;31mred\x1b[0m \x1b[38;5;196mx\x1b[38:2::1:2:3my\x1b[mz"}), `<span class="b f1">red</span> <span style="color:#ff0000">x</span><span style="color:#010203">y</span>z`},
		"redrawn":    {notebook.NewStream("stdout", "\x1b[32m##\x1b[0m 20%\r\x1b[32m###\x1b[0m\ngone\r\x1b[Kab\bc\ngone\x1b[2K\r界x\ry"), "<pre><span class=\"f2\">###</span>20%\nac\nyx</pre>"},
		"controls":   {notebook.NewStream("stdout", "a\x1b]0;title\x07\x1b[3;4Hb\x1b[4:3mc\x1b[24md"), `<pre>ab<span class="u">c</span>d</pre>`},
		"no trace":   {notebook.NewError("E", "<v>", nil), "<pre>E: &lt;v&gt;</pre>"},
		"html":       {notebook.NewDisplay(b("text/html", `<script>alert("x")</script>`), nil), `<iframe sandbox="allow-same-origin"`},
		"markdown":   {notebook.NewDisplay(b("text/markdown", "*a*"), nil), "<em>a</em>"},
		"png":        {notebook.NewDisplay(notebook.Bundle{"image/png": notebook.ImageValue([]byte("png")), "text/plain": notebook.TextValue("<Figure>")}, []byte(`{"image/png":{"width":20,"height":10.5}}`)), `<img src="data:image/png;base64,cG5n" alt="&lt;Figure&gt;" width="20" height="10">`},
		"svg":        {notebook.NewDisplay(b("image/svg+xml", "<svg onload=x/>"), nil), `<img src="data:image/svg&#43;xml;base64,PHN2ZyBvbmxvYWQ9eC8+" alt="output">`},
		"json":       {notebook.NewResult(1, notebook.Bundle{"application/json": []byte(`{"a":[1]}`)}, nil), `<span class="nt">&#34;a&#34;</span>`},
		"latex":      {notebook.NewResult(1, b("text/latex", "$x<y$"), nil), "$x&lt;y$"},
		"other type": {notebook.NewResult(1, b("application/x-own", "x"), nil), "[application/x-own]"},
	} {
		t.Run(name, func(t *testing.T) {
			got := body(t, notebook.NewCell{Source: "x"}, tt.out)
			require.Contains(t, strings.ReplaceAll(got, "&#43;", "+"), strings.ReplaceAll(tt.want, "&#43;", "+"))
			require.Contains(t, got, "[3]")
		})
	}
}

// The HTML of an output is in its frame as it was, and nowhere else.
func TestHTMLIsKept(t *testing.T) {
	const source = `<p title="a">x &amp; y</p><script>alert('1')</script>`
	got := body(t, notebook.NewCell{Source: "x"}, notebook.NewDisplay(notebook.Bundle{"text/html": notebook.TextValue(source)}, nil))
	_, doc, ok := strings.Cut(got, `srcdoc="`)
	require.True(t, ok)
	doc, _, _ = strings.Cut(doc, `"`)
	require.True(t, strings.HasSuffix(html.UnescapeString(doc), source), doc)
	require.NotContains(t, got, "<script")
}

func TestOptionsAndTitle(t *testing.T) {
	d := notebook.New()
	_, err := d.Append(notebook.NewCell{Type: notebook.Markdown, Source: "text\n## A title ##"}, notebook.NewCell{Source: "secret = 1"})
	require.NoError(t, err)
	require.NoError(t, d.SetOutputs(notebook.At(1), 1, notebook.NewStream("stdout", "shown")))
	text := write(t, d, page.Options{})
	require.Contains(t, text, "<title>A title</title>")
	require.NotContains(t, write(t, d, page.Options{NoOutputs: true}), "shown")
	require.NotContains(t, write(t, d, page.Options{NoCode: true}), "secret")
	require.Contains(t, write(t, d, page.Options{Title: "<T>"}), "<title>&lt;T&gt;</title>")
	require.Equal(t, text, write(t, d, page.Options{}), "the same notebook gives the same page")
	require.ErrorIs(t, page.Write(full{}, d, page.Options{}), errFull)
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestAttachments(t *testing.T) {
	d, err := notebook.Parse([]byte(`{"cells":[{"cell_type":"markdown","metadata":{},"source":"![x](attachment:a%20b.png) ![y](attachment:no.png)","attachments":{"a b.png":{"image/png":"AAAA"}}}],"metadata":{},"nbformat":4,"nbformat_minor":4}`))
	require.NoError(t, err)
	text := write(t, d, page.Options{})
	require.Contains(t, text, `<img src="data:image/png;base64,AAAA" alt="x">`)
	require.Contains(t, text, "[y]")
}

var (
	tag  = regexp.MustCompile(`<(/?)([a-zA-Z!][a-zA-Z0-9]*)([^<>]*)>`)
	void = []string{"!DOCTYPE", "meta", "img", "br", "hr"}
)

// balanced requires that elements are closed in order, that there are none that
// the page does not write, and that nothing is loaded or run.
func balanced(t testing.TB, text string) {
	t.Helper()
	_, text, _ = strings.Cut(text, "<body>")
	text, _, _ = strings.Cut(text, "<script>")
	var open []string
	for _, m := range tag.FindAllStringSubmatch(text, -1) {
		name := m[2]
		require.True(t, slices.Contains(allowed, name), "an element %s", m[0])
		require.NotRegexp(t, `(?i)\son\w+\s*=`, strings.Split(m[3], "srcdoc")[0])
		switch {
		case slices.Contains(void, name):
		case m[1] == "":
			open = append(open, name)
		default:
			require.NotEmpty(t, open, "%s", m[0])
			require.Equal(t, open[len(open)-1], name)
			open = open[:len(open)-1]
		}
	}
	require.Empty(t, open)
	for _, src := range regexp.MustCompile(`\ssrc="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		require.True(t, strings.HasPrefix(src[1], "data:image/"), src[1])
	}
}

var allowed = strings.Fields("main section a div pre code span p h1 h2 h3 h4 h5 h6 ul ol li table thead tbody tr th td blockquote em strong del img br hr iframe b i u sub sup kbd small mark s")

func TestCorpus(t *testing.T) {
	files, err := filepath.Glob("../testdata/corpus/*.ipynb")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		data, err := os.ReadFile(f)
		require.NoError(t, err)
		d, err := notebook.Parse(data)
		require.NoError(t, err)
		balanced(t, write(t, d, page.Options{}))
	}
}

// What a source costs grows with its length, whatever signs it is made of.
func TestManySignsCostLittle(t *testing.T) {
	for _, s := range []string{"*a ", "[", "`a ``b ", "<b>", "_", "$a ", "$$\n", "> ", "- ", "![", "**a*", "| ", "![a](", "a]", "*a _b", "<!--", "[a]: b\n", ">\n> "} {
		require.NotEmpty(t, body(t, notebook.NewCell{Type: notebook.Markdown, Source: strings.Repeat(s, 1<<15)}))
	}
}

// A source whose marks nest too deeply is shown as it is written.
func TestDeepSources(t *testing.T) {
	const n = 1 << 12
	for _, source := range []string{strings.Repeat("*a ", n) + strings.Repeat("b* ", n), strings.Repeat("![", n) + strings.Repeat("](x)", n)} {
		require.Contains(t, body(t, notebook.NewCell{Type: notebook.Markdown, Source: source}), "<pre>"+source[:20])
	}
	require.Contains(t, body(t, notebook.NewCell{Type: notebook.Markdown, Source: strings.Repeat("> ", 40) + "a"}), "&gt; &gt; a")
}

func FuzzPage(f *testing.F) {
	for _, s := range []string{"# a\n- *b* `c` [d](e) ![f](g) <b>h</b>\n\n| i | j |\n|---|---|\n| k |", "```x\ny", "> - 1. > a", "<div>\nx", "**a *b** c*", "\x1b[1mx\x1b]0;t\x07"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, source, out string) {
		source, out = strings.ToValidUTF8(source, "?"), strings.ToValidUTF8(out, "?")
		d := notebook.New()
		_, err := d.Append(notebook.NewCell{Type: notebook.Markdown, Source: source}, notebook.NewCell{Source: source})
		require.NoError(t, err)
		require.NoError(t, d.SetOutputs(notebook.At(1), 1, notebook.NewStream("stdout", out), notebook.NewDisplay(notebook.Bundle{"text/markdown": notebook.TextValue(out)}, nil), notebook.NewDisplay(notebook.Bundle{"text/html": notebook.TextValue(out)}, nil)))
		balanced(t, write(t, d, page.Options{}))
	})
}
