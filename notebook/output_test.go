package notebook_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/notebook"
)

func plain(text string) notebook.Bundle {
	return notebook.Bundle{"text/plain": notebook.TextValue(text)}
}

func TestSetOutputs(t *testing.T) {
	t.Parallel()
	png := notebook.ImageValue([]byte("\x89PNG"))
	for name, tt := range map[string]struct {
		output notebook.Output
		want   string
	}{
		"stream":        {notebook.NewStream("stderr", "a\nb\n"), `{"name": "stderr", "output_type": "stream", "text": ["a\n", "b\n"]}`},
		"empty stream":  {notebook.NewStream("", ""), `{"name": "stdout", "output_type": "stream", "text": []}`},
		"display":       {notebook.NewDisplay(plain("x\ny"), nil), `{"data": {"text/plain": ["x\n", "y"]}, "metadata": {}, "output_type": "display_data"}`},
		"display extra": {notebook.NewDisplay(plain("x"), json.RawMessage(`{"a": 1.0}`)), `{"data": {"text/plain": ["x"]}, "metadata": {"a": 1.0}, "output_type": "display_data"}`},
		"result":        {notebook.NewResult(3, plain("1"), nil), `{"data": {"text/plain": ["1"]}, "execution_count": 3, "metadata": {}, "output_type": "execute_result"}`},
		"result null":   {notebook.NewResult(0, nil, nil), `{"data": {}, "execution_count": null, "metadata": {}, "output_type": "execute_result"}`},
		"error":         {notebook.NewError("E", "v", []string{"\x1b[31mE\x1b[0m", "l\n2"}), `{"ename": "E", "evalue": "v", "output_type": "error", "traceback": ["\u001b[31mE\u001b[0m", "l\n2"]}`},
		"error bare":    {notebook.NewError("E", "", nil), `{"ename": "E", "evalue": "", "output_type": "error", "traceback": []}`},
		"image":         {notebook.NewDisplay(notebook.Bundle{"image/png": png}, nil), `{"data": {"image/png": "iVBORw=="}, "metadata": {}, "output_type": "display_data"}`},
		"image lines":   {notebook.NewDisplay(notebook.Bundle{"image/png": notebook.TextValue("iVBO\nRw==\n")}, nil), `{"data": {"image/png": "iVBO\nRw==\n"}, "metadata": {}, "output_type": "display_data"}`},
		"svg":           {notebook.NewDisplay(notebook.Bundle{"image/svg+xml": notebook.TextValue("<svg>\n</svg>")}, nil), `{"data": {"image/svg+xml": ["<svg>\n", "</svg>"]}, "metadata": {}, "output_type": "display_data"}`},
		"json":          {notebook.NewDisplay(notebook.Bundle{"application/json": json.RawMessage(`{"b": [1.50], "a": "x\ny"}`), "application/x+json": json.RawMessage(`"s"`)}, nil), `{"data": {"application/json": {"b": [1.50], "a": "x\ny"}, "application/x+json": "s"}, "metadata": {}, "output_type": "display_data"}`},
		"not text":      {notebook.NewDisplay(notebook.Bundle{"text/plain": json.RawMessage(`{"a": 1}`), "image/png": json.RawMessage(`5`)}, nil), `{"data": {"image/png": "5", "text/plain": ["{\"a\": 1}"]}, "metadata": {}, "output_type": "display_data"}`},
		"not JSON":      {notebook.NewDisplay(notebook.Bundle{"text/plain": json.RawMessage(`x`), "text/html": nil}, json.RawMessage(`[]`)), `{"data": {}, "metadata": {}, "output_type": "display_data"}`},
		"not UTF-8":     {notebook.NewStream("stdout", "a\xffb"), `{"name": "stdout", "output_type": "stream", "text": ["a\ufffdb"]}`},
		"unknown":       {notebook.Output{Type: "hologram", Raw: json.RawMessage(`{"output_type": "hologram", "beam": 1}`)}, `{"output_type": "hologram", "beam": 1}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := build(t, code("x"))
			require.NoError(t, d.SetOutputs(notebook.At(0), 7, tt.output))
			c := parse(t, string(d.Bytes())).Cell(0)
			var cell struct {
				ExecutionCount int               `json:"execution_count"`
				Outputs        []json.RawMessage `json:"outputs"`
			}
			require.NoError(t, json.Unmarshal(c.JSON(), &cell))
			require.Equal(t, 7, cell.ExecutionCount)
			require.Len(t, cell.Outputs, 1)
			require.JSONEq(t, tt.want, string(cell.Outputs[0]))
			if strings.Contains(tt.want, ".50") {
				require.Contains(t, string(cell.Outputs[0]), "1.50", "numbers keep their spelling")
			}
			if name != "unknown" {
				require.Empty(t, d.Validate())
			}
			// What was read is written again as it was.
			before := string(d.Bytes())
			require.NoError(t, d.SetOutputs(notebook.At(0), 7, d.Cell(0).Outputs()...))
			require.Equal(t, before, string(d.Bytes()))
		})
	}
}

func TestOutputsOfTheCorpusAreReadAndWritten(t *testing.T) {
	t.Parallel()
	for name, data := range corpus(t) {
		d := parse(t, string(data))
		for i, c := range d.Cells() {
			if c.Type() != notebook.Code {
				continue
			}
			count, _ := c.ExecutionCount()
			e := d.Clone()
			require.NoError(t, e.SetOutputs(notebook.At(i), count, c.Outputs()...))
			require.Empty(t, cmp.Diff(c.Outputs(), parse(t, string(e.Bytes())).Cell(i).Outputs()), "%s cell %d", name, i)
		}
	}
}

func TestBundle(t *testing.T) {
	t.Parallel()
	b := notebook.Bundle{
		"text/plain": json.RawMessage(`["a\n", "b"]`), "image/png": notebook.TextValue("iVBO\nRw==\n"),
		"text/x": json.RawMessage(`{}`), "text/y": json.RawMessage(`x`), "image/gif": notebook.TextValue("?"),
	}
	text, ok := b.Text("text/plain")
	require.True(t, ok)
	require.Equal(t, "a\nb", text)
	data, ok := b.Image("image/png")
	require.True(t, ok)
	require.Equal(t, "\x89PNG", string(data))
	for _, mime := range []string{"text/x", "text/y", "text/z"} {
		_, ok = b.Text(mime)
		require.False(t, ok, mime)
	}
	for _, mime := range []string{"image/gif", "image/jpeg"} {
		_, ok = b.Image(mime)
		require.False(t, ok, mime)
	}
}

func TestOutputsAreForCode(t *testing.T) {
	t.Parallel()
	d := build(t, markdown("x"))
	require.EqualError(t, d.SetOutputs(notebook.At(0), 1), "invalid argument: cell 0 is markdown, outputs are for code cells")
	require.ErrorIs(t, d.SetTiming(notebook.At(0), notebook.Timing{}), notebook.ErrArgument)
	require.ErrorIs(t, d.SetOutputs(notebook.At(1), 1), notebook.ErrNoCell)
	_, err := notebook.NewRecorder(d).Begin(notebook.At(0))
	require.ErrorIs(t, err, notebook.ErrArgument)
}

func TestClearOutputs(t *testing.T) {
	t.Parallel()
	d := ran(t, "a", "b", "c")
	require.NoError(t, d.SetTiming(notebook.At(0), notebook.Timing{Busy: time.Unix(0, 0)}))
	n, err := d.ClearOutputs(notebook.At(0), notebook.ByID("c"))
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, 1, d.Cell(1).OutputCount())
	require.JSONEq(t, `{"cell_type": "code", "execution_count": null, "id": "a", "metadata": {}, "outputs": [], "source": ["a"]}`, string(d.Cell(0).JSON()))
	n, err = d.ClearOutputs()
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_, err = d.ClearOutputs(notebook.At(9))
	require.ErrorIs(t, err, notebook.ErrNoCell)
}

func TestStrip(t *testing.T) {
	t.Parallel()
	mark := func(d *notebook.Document) {
		require.NoError(t, d.SetTags(notebook.At(1), "keep_output"))
		require.NoError(t, d.SetMetadata(notebook.At(2), true, "keep_output"))
		require.NoError(t, d.SetMetadata(notebook.At(0), true, "collapsed"))
		require.NoError(t, d.SetMetadata(notebook.At(0), "mine", "other"))
		require.NoError(t, d.SetNotebookMetadata(1, "widgets"))
	}
	counts := func(d *notebook.Document) []int {
		var out []int
		for _, c := range d.Cells() {
			out = append(out, c.OutputCount())
		}
		return out
	}
	d := ran(t, "a", "b", "c", "d")
	mark(d)
	require.Equal(t, 2, d.Strip(nil))
	require.Equal(t, []int{0, 1, 1, 0}, counts(d))
	metadata, _ := d.Cell(0).Metadata()
	require.JSONEq(t, `{"other": "mine"}`, string(metadata))
	_, ok := d.Metadata("widgets")
	require.False(t, ok)
	require.Zero(t, d.Strip(nil), "stripping again changes nothing")

	d = ran(t, "a", "b", "c", "d")
	mark(d)
	require.Equal(t, 4, d.Strip(&notebook.StripOptions{Force: true, KeepCounts: true, CellMetadata: []string{"other"}, NotebookMetadata: []string{}}))
	require.Equal(t, []int{0, 0, 0, 0}, counts(d))
	count, ok := d.Cell(3).ExecutionCount()
	require.True(t, ok)
	require.Equal(t, 4, count)
	metadata, _ = d.Cell(0).Metadata()
	require.JSONEq(t, `{"collapsed": true}`, string(metadata))
	_, ok = d.Metadata("widgets")
	require.True(t, ok)
	require.Empty(t, d.Validate())
}

func TestTiming(t *testing.T) {
	t.Parallel()
	d := build(t, code("x"))
	at := time.Date(2024, 2, 3, 4, 5, 6, 7_008_000, time.FixedZone("", 3600))
	require.NoError(t, d.SetTiming(notebook.At(0), notebook.Timing{Busy: at, Input: at, ReplyStarted: at, Reply: at, Idle: at.Add(time.Second)}))
	value, _ := d.Cell(0).Metadata("execution")
	require.JSONEq(t, `{"iopub.execute_input": "2024-02-03T03:05:06.007008Z", "iopub.status.busy": "2024-02-03T03:05:06.007008Z",
		"iopub.status.idle": "2024-02-03T03:05:07.007008Z", "shell.execute_reply": "2024-02-03T03:05:06.007008Z",
		"shell.execute_reply.started": "2024-02-03T03:05:06.007008Z"}`, string(value))
	require.Empty(t, d.Validate())
	require.NoError(t, d.SetTiming(notebook.At(0), notebook.Timing{}))
	_, ok := d.Cell(0).Metadata("execution")
	require.False(t, ok)
}

// record runs f on a recording of the only cell and returns its outputs.
func record(t *testing.T, f func(c *notebook.Recording)) []notebook.Output {
	t.Helper()
	d := build(t, code("x"))
	c, err := notebook.NewRecorder(d).Begin(notebook.At(0))
	require.NoError(t, err)
	f(c)
	c.Finish(4, notebook.Timing{})
	require.Empty(t, d.Validate())
	count, _ := d.Cell(0).ExecutionCount()
	require.Equal(t, 4, count)
	require.Empty(t, cmp.Diff(len(c.Outputs()), d.Cell(0).OutputCount()))
	return parse(t, string(d.Bytes())).Cell(0).Outputs()
}

func texts(outputs []notebook.Output) []string {
	out := []string{}
	for _, o := range outputs {
		switch o.Type {
		case notebook.Stream:
			out = append(out, o.Name+":"+o.Text)
		case notebook.ErrorOutput:
			out = append(out, o.EName)
		default:
			text, _ := o.Data.Text("text/plain")
			out = append(out, text)
		}
	}
	return out
}

func TestRecording(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		f    func(c *notebook.Recording)
		want []string
	}{
		"nothing": {func(*notebook.Recording) {}, []string{}},
		"text of one stream is one output": {func(c *notebook.Recording) {
			c.Stream("stdout", "a")
			c.Stream("stdout", "b\n")
			c.Stream("stdout", "")
			c.Stream("stderr", "e")
			c.Stream("stdout", "c")
		}, []string{"stdout:ab\n", "stderr:e", "stdout:c"}},
		"other outputs end a stream": {func(c *notebook.Recording) {
			c.Stream("stdout", "a")
			c.Display(plain("d"), nil, "")
			c.Stream("stdout", "b")
			c.Result(4, plain("r"), nil, "")
			c.Error("E", "v", nil)
		}, []string{"stdout:a", "d", "stdout:b", "r", "E"}},
		"update": {func(c *notebook.Recording) {
			c.Display(plain("1"), nil, "id")
			c.Display(plain("2"), nil, "other")
			c.Display(plain("3"), nil, "id")
			c.Result(4, plain("4"), nil, "id")
			require.Equal(t, 3, c.Update("id", plain("new"), nil))
			require.Zero(t, c.Update("unknown", plain("new"), nil))
			require.Zero(t, c.Update("", plain("new"), nil))
		}, []string{"new", "2", "new", "new"}},
		"clear": {func(c *notebook.Recording) {
			c.Stream("stdout", "a")
			c.Clear(false)
			c.Stream("stdout", "b")
		}, []string{"stdout:b"}},
		"clear at the end": {func(c *notebook.Recording) {
			c.Stream("stdout", "a")
			c.Clear(false)
		}, []string{}},
		"clear and wait": {func(c *notebook.Recording) {
			c.Stream("stdout", "a")
			c.Clear(true)
			require.Len(t, c.Outputs(), 1)
			c.Stream("stdout", "b")
		}, []string{"stdout:b"}},
		"wait for what never comes": {func(c *notebook.Recording) {
			c.Stream("stdout", "a")
			c.Clear(true)
			c.Update("none", plain("x"), nil)
		}, []string{"stdout:a"}},
		"what was cleared is not updated": {func(c *notebook.Recording) {
			c.Display(plain("1"), nil, "id")
			c.Clear(true)
			c.Display(plain("2"), nil, "id")
			require.Equal(t, 1, c.Update("id", plain("new"), nil))
		}, []string{"new"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, texts(record(t, tt.f)))
		})
	}
}

func TestRecorderSpansCells(t *testing.T) {
	t.Parallel()
	d := ran(t, "a", "b")
	r := notebook.NewRecorder(d)
	first, err := r.Begin(notebook.At(0))
	require.NoError(t, err)
	require.Zero(t, d.Cell(0).OutputCount(), "Begin clears the cell")
	first.Display(plain("1"), nil, "id")
	first.Flush()
	require.Equal(t, []string{"1"}, texts(d.Cell(0).Outputs()))
	first.Result(8, plain("r"), nil, "")
	first.Finish(0, notebook.Timing{})
	count, _ := d.Cell(0).ExecutionCount()
	require.Equal(t, 8, count, "the count of the result")
	second, err := r.Begin(notebook.At(1))
	require.NoError(t, err)
	require.Equal(t, 1, second.Update("id", plain("new"), json.RawMessage(`{"m": 1}`)))
	second.Finish(9, notebook.Timing{})
	require.Equal(t, []string{"new", "r"}, texts(d.Cell(0).Outputs()))
	require.JSONEq(t, `{"m": 1}`, string(d.Cell(0).Outputs()[0].Metadata))

	again, err := r.Begin(notebook.At(0))
	require.NoError(t, err)
	again.Stream("stdout", "fresh")
	again.Finish(10, notebook.Timing{})
	require.Zero(t, second.Update("id", plain("late"), nil), "the first run's display is gone")
	require.Equal(t, []string{"stdout:fresh"}, texts(d.Cell(0).Outputs()))
	require.Empty(t, d.Validate())
}

func TestFoldProgress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                       "",
		"a\rb":                   "b",
		"long\rx":                "x",
		"keep\n1%\r2%\r3%\n":     "keep\n3%\n",
		"line\r\nnext":           "line\r\nnext",
		"end\r":                  "end\r",
		"ab\bc":                  "ac",
		"é\bx":                   "x",
		"\b":                     "\b",
		"a\n\bx":                 "a\n\bx",
		"a\r\r\rb":               "b",
		"a\r\n\r\nb":             "a\r\n\r\nb",
		"12\b\b34\b\b56":         "56",
		"first\nsecond\rthird\n": "first\nthird\n",
	} {
		require.Equal(t, want, notebook.FoldProgress(text), "%q", text)
	}
	d := build(t, code("x"))
	r := notebook.NewRecorder(d)
	r.FoldProgress = true
	c, err := r.Begin(notebook.At(0))
	require.NoError(t, err)
	for _, part := range []string{"start\n", "10%", "\r", "20%\r", "30%", "\n", "done"} {
		c.Stream("stdout", part)
	}
	require.Equal(t, []string{"stdout:start\n30%\ndone"}, texts(c.Outputs()))
}

// However a text is cut into messages, the folded stream is the same.
func TestFoldingDoesNotDependOnTheChunks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.StringOfN(rapid.SampledFrom([]rune("ab\r\n\bé")), 1, 5, -1)).Draw(t, "parts")
		d := build(t, code("x"))
		r := notebook.NewRecorder(d)
		r.FoldProgress = true
		c, err := r.Begin(notebook.At(0))
		require.NoError(t, err)
		for _, p := range parts {
			c.Stream("stdout", p)
		}
		got := ""
		if outputs := c.Outputs(); len(outputs) > 0 {
			got = outputs[0].Text
		}
		require.Equal(t, notebook.FoldProgress(strings.Join(parts, "")), got)
	})
}

func TestSetParameters(t *testing.T) {
	t.Parallel()
	tagged := func(source string, tags ...string) notebook.NewCell {
		return notebook.NewCell{Source: source, Tags: tags}
	}
	d := build(t, code("a"), tagged("x = 1", notebook.TagParameters), code("b"))
	c, err := d.SetParameters(
		notebook.Parameter{Name: "x", Value: 2}, notebook.Parameter{Name: "s", Value: "q\"\\\n\té\x00\u2028😀"},
		notebook.Parameter{Name: "l", Value: []any{nil, true, false, 1.5, map[string]any{"k": "v"}}},
		notebook.Parameter{Name: "n", Value: json.RawMessage(`[123456789012345678901, 1.50, NaN, -Infinity, Infinity]`)},
	)
	require.NoError(t, err)
	require.Equal(t, "# Parameters\nx = 2\ns = \"q\\\"\\\\\\n\\té\\x00\\u2028😀\"\nl = [None, True, False, 1.5, {\"k\": \"v\"}]\n"+
		"n = [123456789012345678901, 1.50, float('nan'), float('-inf'), float('inf')]\n", c.Source())
	require.Equal(t, 2, d.Index(c), "below the cell tagged parameters")
	require.Equal(t, []string{notebook.TagInjected}, c.Tags())
	require.NoError(t, d.SetOutputs(notebook.At(2), 1, notebook.NewStream("stdout", "x")))
	again, err := d.SetParameters(notebook.Parameter{Name: "x", Value: 3})
	require.NoError(t, err)
	require.Equal(t, c, again)
	require.Equal(t, "# Parameters\nx = 3\n", again.Source())
	require.Zero(t, again.OutputCount())
	require.Equal(t, 4, d.Len())
	none, err := d.SetParameters()
	require.NoError(t, err)
	require.Nil(t, none)
	require.Equal(t, []string{"a", "x = 1", "b"}, sources(d))
	none, err = d.SetParameters()
	require.NoError(t, err)
	require.Nil(t, none)

	top := build(t, code("a"))
	c, err = top.SetParameters(notebook.Parameter{Name: "é_1", Value: nil})
	require.NoError(t, err)
	require.Zero(t, top.Index(c))
	require.Empty(t, top.Validate())
}

func TestParametersThatAreRefused(t *testing.T) {
	t.Parallel()
	d := build(t, code("a"))
	for _, params := range [][]notebook.Parameter{
		{{Name: ""}}, {{Name: "1x"}}, {{Name: "a b"}}, {{Name: "a.b"}}, {{Name: "class"}}, {{Name: "x = 1; y"}},
		{{Name: "x"}, {Name: "x"}}, {{Name: "x", Value: func() {}}},
	} {
		_, err := d.SetParameters(params...)
		require.ErrorIs(t, err, notebook.ErrArgument)
	}
	require.Equal(t, 1, d.Len())
	require.NoError(t, d.SetNotebookMetadata("R", "language_info", "name"))
	_, err := d.SetParameters(notebook.Parameter{Name: "x"})
	require.ErrorContains(t, err, "parameters are for Python notebooks, this one is r")
	odd := build(t, notebook.NewCell{Type: notebook.Markdown, Tags: []string{notebook.TagInjected}})
	_, err = odd.SetParameters(notebook.Parameter{Name: "x"})
	require.ErrorIs(t, err, notebook.ErrArgument)
}
