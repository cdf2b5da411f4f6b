package htmltext_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/sinks/htmltext"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestGolden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.html")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			in, err := os.ReadFile(file)
			require.NoError(t, err)
			got := htmltext.Markdown(string(in)) + "\n"
			golden := strings.TrimSuffix(file, ".html") + ".golden.md"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(string(want), got))
		})
	}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ in, want string }{
		"empty":                      {"", ""},
		"text":                       {" a\n b ", "a b"},
		"entities":                   {"&lt;&gt;&amp;&quot;&#39;&#x41;&eacute;&nbsp;x &unknown; &amp;lt;", `<>&"'Aé x &unknown; &lt;`},
		"lone angle":                 {"1 < 2 and <3", "1 < 2 and <3"},
		"upper case":                 {"<P>a</P><B>b</B>", "a\n\n**b**"},
		"body is not bold":           {"<body>a<br>b</body>", "a\nb"},
		"space inside emphasis":      {"a<b> b </b>c", "a **b** c"},
		"empty emphasis":             {"a<b> </b>c<i></i>", "a c"},
		"nested emphasis":            {"<b>a<strong>b</strong></b>", "**ab**"},
		"link around blocks":         {`<a href="x"><div>a</div></a>`, "a"},
		"link that is its text":      {`<a href="http://h/">http://h/</a>`, "http://h/"},
		"link without text":          {`<a href="x"></a>a`, "a"},
		"attributes without quotes":  {"<a href=x title='>'>y</a>", "[y](x)"},
		"attribute twice":            {`<a href=x href=z>y</a>`, "[y](x)"},
		"self-closing":               {"a<br/>b<hr/>c", "a\nb\n\n---\n\nc"},
		"tag that never ends":        {"a <b class='x", "a <b class='x"},
		"tag that never ends, later": {"a <b class=\"x <i>y</i>", `a <b class="x <i>y</i>`},
		"comment that never ends":    {"a <!-- b", "a"},
		"script that never ends":     {"a<script>b", "a"},
		"script with markup":         {"a<script>'</scripty>'</SCRIPT >b", "ab"},
		"declaration":                {"<?xml version='1'?><!DOCTYPE x>a", "a"},
		"wrong nesting":              {"<b>a<i>b</b>c</i>d", "**a*b***cd"},
		"end tags alone":             {"</p></div>a</b>", "a"},
		"cell end in a table":        {"<div><table><tr><td>a</div>b</td><td>c</td></tr></table>d</div>", "|  |  |\n| --- | --- |\n| ab | c |\n\nd"},
		"cells without rows":         {"<table><th>h<td>a</table>", "| h |\n| --- |\n| a |"},
		"empty table":                {"<table></table>a", "a"},
		"caption":                    {"<table><caption>C</caption><tr><th>h</table>", "C\n\n| h |\n| --- |"},
		"table in a table":           {"<table><tr><td>a</td><td><table><tr><td>b<td>c</table></td></tr></table>", "|  |  |\n| --- | --- |\n| a | b c |"},
		"short row":                  {"<table><tr><th>a<th>b<tr><td>c</table>", "| a | b |\n| --- | --- |\n| c |  |"},
		"code with spaces":           {"<code> a\n b </code>", "`a b`"},
		"pre with breaks":            {"<pre>a<br>b\r\nc</pre>", "```\na\nb\nc\n```"},
		"empty blocks":               {"<h1></h1><p></p><pre>\n</pre><ul></ul><blockquote></blockquote>a", "a"},
		"control characters":         {"a&#27;[31mb\x07&#0;c&#155;d", "ab\uFFFDc›d"},
		"invalid bytes":              {"a\xffb", "a\uFFFDb"},
		"blank lines":                {"<p>a</p>\n\n\n<p>b</p>", "a\n\nb"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, htmltext.Markdown(tc.in))
		})
	}
}

func TestLongInputIsCut(t *testing.T) {
	t.Parallel()
	got := htmltext.Markdown(strings.Repeat("<p>é</p>", htmltext.MaxInput/8))
	require.True(t, strings.HasPrefix(got, "é\n\né\n"))
	require.True(t, strings.HasSuffix(got, "\n\n[… the rest of the HTML is not shown …]"))
}

// TestHostile feeds what makes a converter slow or large if it goes over its
// input more than once, and bounds both.
func TestHostile(t *testing.T) {
	t.Parallel()
	const n = htmltext.MaxInput / 4
	for name, s := range map[string]string{
		"open tags":       strings.Repeat("<b>", n/3),
		"open lists":      strings.Repeat("<ul><li>", n/8),
		"open quotes":     strings.Repeat("<blockquote>", n/24) + strings.Repeat("a<br>", n/10),
		"open tables":     strings.Repeat("<table><tr><td>", n/15),
		"open links":      strings.Repeat("<a href=x>", n/20) + strings.Repeat("a ", n/4),
		"end tags":        strings.Repeat("<b>", 1000) + strings.Repeat("</i>", n/4),
		"tags that end":   strings.Repeat("<a ", n/3),
		"quotes":          strings.Repeat(`<a x="`, n/6),
		"comments":        strings.Repeat("<!--", n/4),
		"scripts":         strings.Repeat("<script></", n/10),
		"ampersands":      strings.Repeat("&", n),
		"angles":          strings.Repeat("<", n),
		"spans":           strings.Repeat("<tr><td colspan=1000 rowspan=1000>", n/34),
		"spans in table":  "<table>" + strings.Repeat("<tr><td colspan=1000 rowspan=1000>", n/34),
		"rows below wide": "<table><tr><td colspan=500 rowspan=1000>" + strings.Repeat("<tr><td>", n/8),
		"backticks":       "<pre>" + strings.Repeat("`", n),
		"paragraphs":      strings.Repeat("<p>", n/3),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			got := htmltext.Markdown(s)
			require.LessOrEqual(t, len(got), 24*n)
			require.Less(t, time.Since(begin), 2*time.Minute) // seconds where the race detector runs, and hours where time is not linear
		})
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{"", "<p>a</p>", "<table><tr><th rowspan=2>a<td colspan=3>b", "<ul><li>a<ol start=9><li>b", "<pre><code class='language-c'>`", "<a href='x y'>z</a>", "<!-- -", "<b", "&#x1b;[1m", "<script></script"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := htmltext.Markdown(s)
		require.True(t, utf8.ValidString(got))
		require.Equal(t, strings.Trim(got, "\n"), got)
		for _, r := range got {
			require.False(t, r != '\n' && r != '\t' && (r < 0x20 || r >= 0x7f && r <= 0x9f), "control %U", r)
		}
	})
}

func BenchmarkDataFrame(b *testing.B) {
	in, err := os.ReadFile("testdata/dataframe.html")
	require.NoError(b, err)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		htmltext.Markdown(string(in))
	}
}
