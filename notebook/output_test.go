package notebook_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

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
