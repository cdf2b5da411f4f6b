package notebook_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/notebook"
)

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
		"a name that is shown already": {func(c *notebook.Recording) {
			c.Display(plain("1"), nil, "id")
			c.Result(4, plain("2"), nil, "id")
			c.Display(plain("3"), nil, "other")
		}, []string{"2", "2", "3"}},
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
