package notebook_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/notebook"
)

// jupytextCell is a cell as Jupytext reads it from a script in
// testdata/percent, in the .json file beside it.
type jupytextCell struct {
	Type     notebook.CellType `json:"type"`
	Source   string            `json:"source"`
	Metadata map[string]any    `json:"metadata"`
}

func cellsOf(t testing.TB, text *notebook.Text) []jupytextCell {
	t.Helper()
	var cells []jupytextCell
	for _, c := range text.Cells {
		metadata := map[string]any{}
		if c.Metadata != nil {
			require.NoError(t, json.Unmarshal(c.Metadata, &metadata))
		}
		require.Equal(t, -1, c.Index)
		cells = append(cells, jupytextCell{c.Type, c.Source, metadata})
	}
	return cells
}

// Scripts are read as Jupytext reads them.
func TestPercentIsReadAsJupytextReadsIt(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/percent/*.py")
	require.NoError(t, err)
	require.Len(t, paths, 7)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			script := readFile(t, path)
			var want struct {
				Kernelspec map[string]string `json:"kernelspec"`
				Cells      []jupytextCell    `json:"cells"`
			}
			require.NoError(t, json.Unmarshal([]byte(readFile(t, strings.TrimSuffix(path, ".py")+".json")), &want))
			for _, text := range []string{script, "\ufeff" + strings.ReplaceAll(script, "\n", "\r\n")} {
				got, err := notebook.ParseText(text, notebook.FormatPercent)
				require.NoError(t, err)
				require.Equal(t, notebook.FormatPercent, got.Format)
				require.Empty(t, cmp.Diff(want.Cells, cellsOf(t, got)))
				var header struct {
					Kernelspec map[string]string `json:"kernelspec"`
				}
				if got.Metadata != nil {
					require.NoError(t, json.Unmarshal(got.Metadata, &header))
				}
				require.Equal(t, want.Kernelspec, header.Kernelspec)
			}
		})
	}
}

func TestPercentMarkers(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]jupytextCell{
		"# %%":                 {notebook.Code, "", nil},
		"#%%":                  {notebook.Code, "", nil},
		"# %%   ":              {notebook.Code, "", nil},
		"# %% a title":         {notebook.Code, "", map[string]any{"title": "a title"}},
		"# %% [markdown]":      {notebook.Markdown, "", nil},
		"# %% [md] title":      {notebook.Markdown, "", map[string]any{"title": "title", "region_name": "md"}},
		"# %% title [raw]":     {notebook.Raw, "", map[string]any{"title": "title"}},
		"# %% [code]":          {notebook.Code, "", nil},
		`# %% tags=["a", "b"]`: {notebook.Code, "", map[string]any{"tags": []any{"a", "b"}}},
		`# %% t [markdown] k="v" n=1 deep={"a": [1, "x = y"]}`: {notebook.Markdown, "", map[string]any{"title": "t", "k": "v", "n": 1.0, "deep": map[string]any{"a": []any{1.0, "x = y"}}}},
		`# %% t {"a": 1, "b c": "="}`:                          {notebook.Code, "", map[string]any{"title": "t", "a": 1.0, "b c": "="}},
		`# %% k='single' bare=word flag`:                       {notebook.Code, "", map[string]any{"k": "single", "bare": "word", "flag": nil}},
		`# %% title .cls k=1`:                                  {notebook.Code, "", map[string]any{"title": "title", ".cls": nil, "k": 1.0}},
		`# %% broken {"a": `:                                   {notebook.Code, "", map[string]any{"title": `broken {"a":`}},
		`# %% k=`:                                              {notebook.Code, "", map[string]any{"k": ""}},
		`# %% =x`:                                              {notebook.Code, "", map[string]any{"x": nil}},
		"# %%% sub":                                            {notebook.Code, "", map[string]any{"cell_depth": 1.0, "title": "sub"}},
		"# %%%%":                                               {notebook.Code, "", map[string]any{"cell_depth": 2.0}},
		`# %% language="bash"`:                                 {notebook.Code, "%%bash\n", nil},
		`# %% language="unknown"`:                              {notebook.Code, "", map[string]any{"language": "unknown"}},
		"# In[12]:":                                            {notebook.Code, "", nil},
		"# <codecell>":                                         {notebook.Code, "", nil},
	} {
		got, err := notebook.ParseText(line, notebook.FormatPercent)
		require.NoError(t, err)
		if want.Metadata == nil {
			want.Metadata = map[string]any{}
		}
		require.Empty(t, cmp.Diff([]jupytextCell{want}, cellsOf(t, got)), line)
	}
	for _, line := range []string{"# %%time", "# %%x", "%% x", "#  % %", "# In[a]:", "x # %%", "# In[1"} {
		got, err := notebook.ParseText("# %%\n"+line, notebook.FormatPercent)
		require.NoError(t, err)
		require.Len(t, got.Cells, 1, line)
	}
}

func TestMetadataThatNbformatDoesNotAllowIsLeftOut(t *testing.T) {
	t.Parallel()
	got, err := notebook.ParseText("# %% a\n\n# %% tags=\"a\" name=1 k=1\n\n# %% {\"tags\": [\"a,b\"], \"collapsed\": 1}\n# %% [markdown] collapsed=1", notebook.FormatPercent)
	require.NoError(t, err)
	require.Equal(t, []int{3, 5}, got.Doubtful)
	require.JSONEq(t, `{"k": 1}`, string(got.Cells[1].Metadata))
	require.Nil(t, got.Cells[2].Metadata)
	require.JSONEq(t, `{"collapsed": 1}`, string(got.Cells[3].Metadata))
}

func TestFormatIsDetected(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]notebook.TextFormat{
		"# %%\nx":                                  notebook.FormatPercent,
		"\n# %% title\nx":                          notebook.FormatPercent,
		"# ---\n# jupyter:\n# ---\n\n# %%\nx":      notebook.FormatPercent,
		"#%% [markdown]\n# x":                      notebook.FormatPercent,
		"# %% [markdown]\n# Title\n\n# %%\nx = 1":  notebook.FormatPercent,
		"# %% [markdown]\n# Title\n# %% [code]\nx": notebook.FormatCells,
		"# %% [markdown]\nTitle\n# %%\nx":          notebook.FormatCells,
		"# %% [markdown]\n# Title":                 notebook.FormatCells,
		"# %% [code]\nx\n# %%\ny":                  notebook.FormatCells,
		"# %% [markdown] cell:0\n# T\n# %%\ny":     notebook.FormatCells,
		"":                                         notebook.FormatCells,
	} {
		got, err := notebook.ParseText(text, notebook.FormatAuto)
		require.NoError(t, err, text)
		require.Equal(t, want, got.Format, text)
	}
}

// Applied to a notebook, a script goes back to the cells that it resembles:
// their ids and outputs stay.
func TestApplyPercent(t *testing.T) {
	t.Parallel()
	d := ran(t, "import os", "x = 1\ny = 2\nz = 3\n", "last")
	_, err := d.Insert(0, markdown("# Title"))
	require.NoError(t, err)
	before := ids(d)
	report, err := d.ApplyText("# ---\n# jupyter:\n#   kernelspec:\n#     display_name: Python 3\n#     name: python3\n# ---\n\n# %% [markdown]\n# # Title\n\n# %% New\nnew()\n\n# %% tags=[\"t\"]\nx = 1\ny = 20\nz = 3\n\n# %%\nlast\n", nil)
	require.NoError(t, err)
	require.Equal(t, []string{"# Title", "new()", "x = 1\ny = 20\nz = 3", "last"}, sources(d))
	require.Equal(t, []int{1}, report.Deleted)
	got := ids(d)
	require.Equal(t, []string{before[0], before[2], before[3]}, []string{got[0], got[2], got[3]})
	require.Equal(t, []string{"t"}, d.Cell(2).Tags())
	require.True(t, d.Cell(2).Stale())
	require.Equal(t, "last", d.Cell(3).Outputs()[0].Text)
	title, _ := d.Cell(1).Metadata("title")
	require.Equal(t, `"New"`, string(title))
	require.Equal(t, "python3", d.KernelName())
	require.Empty(t, d.Validate())

	// A second time nothing changes, and a kernel that is named stays.
	text := string(d.Bytes())
	_, err = d.ApplyText("# ---\n# jupyter:\n#   kernelspec:\n#     display_name: Other\n#     name: other\n# ---\n"+d.Percent(nil), nil)
	require.NoError(t, err)
	require.Equal(t, text, string(d.Bytes()))
	_, err = d.ApplyText("# ---\n# jupyter:\n#   kernelspec:\n#     name: lacks the display name\n# ---\n# %%\n", nil)
	require.NoError(t, err)
}

func TestPercent(t *testing.T) {
	t.Parallel()
	d := build(t,
		markdown("# Title\n\ntext"),
		code("%matplotlib inline\nx = 1  # %% no\n# %% looks like a cell\n# # %% too\n!ls\nif x:\n    %time f()\ns = '''\n!not\n'''"),
		notebook.NewCell{Source: "%%bash -x\necho hi\n", Tags: []string{"a"}, Metadata: json.RawMessage(`{"title": "Run it", "collapsed": true, "slideshow": {"slide_type": "slide"}}`)},
		notebook.NewCell{Type: notebook.Raw, Source: "raw"},
		code("%%time\nx"), code(""),
		notebook.NewCell{Source: "y", Metadata: json.RawMessage(`{"a b": 1, "title": "k=v"}`)},
		markdown("%% like a marker\n# %% too"),
	)
	require.Equal(t, `# %% [markdown]
# # Title
#
# text

# %%
# %matplotlib inline
x = 1  # %% no
# # %% looks like a cell
# # # %% too
# !ls
if x:
    # %time f()
s = '''
!not
'''

# %% Run it magic_args="-x" language="bash" slideshow={"slide_type": "slide"} tags=["a"]
# echo hi

# %% [raw]
# raw

# %%
# %%time
x

# %%

# %% {"title": "k=v", "a b": 1}
y

# %% [markdown]
r"""
%% like a marker
# %% too
"""
`, d.Percent(nil))
	require.NoError(t, d.SetNotebookMetadata(map[string]any{"display_name": "Python 3: x", "language": "python", "name": "python3", "n": 1}, "kernelspec"))
	require.True(t, strings.HasPrefix(d.Percent(&notebook.PercentOptions{Header: true, NoMetadata: true}),
		"# ---\n# jupyter:\n#   kernelspec:\n#     display_name: 'Python 3: x'\n#     language: python\n#     name: python3\n# ---\n\n# %% [markdown]\n"))
	require.NotContains(t, d.Percent(&notebook.PercentOptions{NoMetadata: true}), "Run it")
	require.Empty(t, notebook.New().Percent(&notebook.PercentOptions{Header: true}))
}

// A script that this package writes is read back as the same cells.
func TestPercentRoundTrip(t *testing.T) {
	t.Parallel()
	value := rapid.SampledFrom([]any{1.0, "text", "k=v {", "[markdown]", []any{"a", nil}, map[string]any{"x": "y"}, true, nil})
	rapid.Check(t, func(t *rapid.T) {
		d := notebook.New()
		var want []jupytextCell
		for range rapid.IntRange(0, 5).Draw(t, "cells") {
			spec := cellGen().Draw(t, "cell")
			spec.Source = strings.ReplaceAll(spec.Source, "\r", "")
			if spec.Type != notebook.Code && strings.Contains(spec.Source, "%%") {
				// Quoting cannot hold both kinds of quotes, nor an end that escapes.
				spec.Source = strings.NewReplacer("'", "", `"`, "", `\`, "").Replace(spec.Source)
			}
			if spec.Type != notebook.Code {
				// Text in triple quotes is markdown that was quoted.
				spec.Source = strings.NewReplacer(`"""`, "", "'''", "").Replace(spec.Source)
			} else if strings.ContainsAny(spec.Source, `"'\`) {
				spec.Source = strings.NewReplacer("'", "", `"`, "", `\`, "").Replace(spec.Source)
			}
			spec.Source = strings.TrimRightFunc(spec.Source, unicode.IsSpace)
			metadata := map[string]any{}
			for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"label", "a-b", "title", "odd key", "t.u", "é"}), 0, 3, rapid.ID).Draw(t, "names") {
				metadata[name] = value.Draw(t, "value")
			}
			raw, err := json.Marshal(metadata)
			require.NoError(t, err)
			spec.Metadata = raw
			_, err = d.Append(spec)
			require.NoError(t, err)
			want = append(want, jupytextCell{spec.Type, spec.Source, metadata})
		}
		got, err := notebook.ParseText(d.Percent(nil), notebook.FormatPercent)
		require.NoError(t, err)
		var cells []jupytextCell
		for _, c := range got.Cells {
			metadata := map[string]any{}
			if c.Metadata != nil {
				require.NoError(t, json.Unmarshal(c.Metadata, &metadata))
			}
			cells = append(cells, jupytextCell{c.Type, strings.TrimRightFunc(c.Source, unicode.IsSpace), metadata})
		}
		require.Empty(t, cmp.Diff(want, cells), d.Percent(nil))
	})
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	d := parse(t, threeCells)
	require.NoError(t, d.SetNotebookMetadata("python", "language_info", "name"))
	_, err := d.SetSource(notebook.At(1), "# Title\n![p](attachment:p.png) ![q](attachment:q.png)\n")
	require.NoError(t, err)
	_, err = d.Insert(1, code("has ``` in it\n"), code(""))
	require.NoError(t, err)
	require.NoError(t, d.SetOutputs(notebook.At(1), 1,
		notebook.NewStream("stderr", "\x1b[31mred\x1b[0m\n"),
		notebook.NewDisplay(notebook.Bundle{"text/markdown": notebook.TextValue("*m*"), "text/plain": notebook.TextValue("no")}, nil),
		notebook.NewDisplay(notebook.Bundle{"image/png": notebook.ImageValue([]byte("png")), "text/plain": notebook.TextValue("no")}, nil),
		notebook.NewDisplay(notebook.Bundle{"image/svg+xml": notebook.TextValue("<svg/>")}, nil),
		notebook.NewResult(1, notebook.Bundle{"text/html": notebook.TextValue("<b>"), "text/plain": notebook.TextValue("plain")}, nil),
		notebook.NewResult(1, notebook.Bundle{"text/html": notebook.TextValue("<i>")}, nil),
		notebook.NewResult(1, notebook.Bundle{"application/json": json.RawMessage("1")}, nil),
		notebook.NewError("E", "v", []string{"\x1b[0;31mTraceback\x1b[0m", "E: v"}), notebook.NewError("E", "v", nil)))
	want := "```python\nprint(1)\n```\n\n```text\n1\n```\n\n````python\nhas ``` in it\n````\n\n```text\nred\n```\n\n*m*\n\n" +
		"![output](data:image/png;base64,cG5n)\n\n![output](data:image/svg+xml;base64,PHN2Zy8+)\n\n```text\nplain\n```\n\n<i>\n\n```text\nTraceback\nE: v\n```\n\n```text\nE: v\n```\n\n" +
		"# Title\n![p](data:image/png;base64,AA==) ![q](attachment:q.png)\n\nraw\n"
	require.Equal(t, want, d.Markdown(nil))
	var kinds []string
	got := d.Markdown(&notebook.MarkdownOptions{NoOutputs: true, Image: func(mime string, data []byte) string {
		kinds = append(kinds, mime)
		return "a.png"
	}})
	require.Equal(t, "```python\nprint(1)\n```\n\n````python\nhas ``` in it\n````\n\n# Title\n![p](a.png) ![q](attachment:q.png)\n\nraw\n", got)
	require.Equal(t, []string{"image/png"}, kinds)
	require.Empty(t, notebook.New().Markdown(nil))
}

// What Jupytext wrote is what this package writes, but for blank lines.
func TestPercentIsWrittenAsJupytextWritesIt(t *testing.T) {
	t.Parallel()
	squeeze := func(s string) string {
		return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' }), "\n")
	}
	for _, name := range []string{"jupytext", "active"} {
		script := readFile(t, "testdata/percent/"+name+".py")
		d := notebook.New()
		_, err := d.ApplyText(script, &notebook.ApplyOptions{Format: notebook.FormatPercent})
		require.NoError(t, err)
		if _, body, found := strings.Cut(script, "# ---\n\n"); found {
			script = body
		}
		require.Equal(t, squeeze(script), squeeze(d.Percent(nil)))
	}
}

// A cell that opens a block and leaves it open does not reach into the next one when it
// is a script for a while.
func TestAnOpenBlockStaysInItsCell(t *testing.T) {
	t.Parallel()
	d := build(t, markdown("```\nopen"), code("x"), markdown("```"), code("y"))
	got, err := notebook.ParseText(d.Percent(nil), notebook.FormatPercent)
	require.NoError(t, err)
	require.Len(t, got.Cells, 4)
	for i, c := range got.Cells {
		require.Equal(t, d.Cell(i).Source(), c.Source)
	}
	// Fences that nothing closes are each looked for once.
	got, err = notebook.ParseText("# %% [markdown]\n"+strings.Repeat("# ```x\n", 50_000)+"# %%\n", notebook.FormatPercent)
	require.NoError(t, err)
	require.Len(t, got.Cells, 2)
}

func TestCorpusExports(t *testing.T) {
	t.Parallel()
	for name, data := range corpus(t) {
		d := parse(t, string(data))
		before := string(d.Bytes())
		_, err := notebook.ParseText(d.Percent(&notebook.PercentOptions{Header: true}), notebook.FormatPercent)
		require.NoError(t, err, name)
		require.NotContains(t, d.Markdown(nil), "\x1b[3", name)
		require.Equal(t, before, string(d.Bytes()), "exports do not edit")
	}
}
