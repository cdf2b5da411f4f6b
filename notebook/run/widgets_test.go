package run_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
	"github.com/coppice-run/coppice/notebook/run"
)

// An Output widget of ipywidgets, on the wire.
const (
	opens   = `widget out {"_model_module": "@jupyter-widgets/output", "_model_name": "OutputModel", "msg_id": "", "outputs": []}`
	enters  = `state out {"msg_id": "m"}`
	leaves  = `state out {"msg_id": ""}`
	another = `widget slider {"_model_module": "@jupyter-widgets/controls", "_model_name": "IntSliderModel", "value": 1}`
)

// widgetState is the state of a widget in the notebook's metadata, "" for none.
func widgetState(t *testing.T, d *notebook.Document, id string, path ...string) string {
	t.Helper()
	raw, _ := d.Metadata(append([]string{"widgets", "application/vnd.jupyter.widget-state+json", "state", id}, path...)...)
	return string(raw)
}

func lines(l ...string) string { return strings.Join(l, "\n") }

// What code shows inside of "with out:" is the widget's, and in the notebook's metadata
// with all that a frontend needs to show it; the cell goes on without it.
func TestWhatAWidgetCapturesIsNotTheCells(t *testing.T) {
	d := cells(t,
		lines(opens, "print a", enters, "print b", "show c", "print d", leaves, "print e"),
		lines("update new", enters, "clear wait", "print f"),
		lines("print g", another, `state slider {"value": 2}`),
	)
	var had []string
	report, err := run.Notebook(t.Context(), d, run.Options{
		Save:     func(context.Context) (bool, error) { had = append(had, widgetState(t, d, "out")); return true, nil },
		Progress: func(s run.Step) { require.NotEqual(t, "comm", typeOf(s.Event)) },
	}, (&script{}).execute)
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeOK, report.Outcome)
	require.Equal(t, []string{"a\ne", "", "g"}, outputs(d), "a cell that ended in a widget ends that")
	require.Contains(t, had[0], `"b\n"`, "it is saved with the cell")
	require.JSONEq(t, `[{"name": "stdout", "output_type": "stream", "text": ["f\n"]}]`, widgetState(t, d, "out", "state", "outputs"))
	require.JSONEq(t, `"OutputModel"`, widgetState(t, d, "out", "model_name"))
	require.JSONEq(t, `2`, widgetState(t, d, "slider", "state", "value"))
	require.JSONEq(t, `[{"data": "c2xpZGVy", "encoding": "base64", "path": ["b"]}]`, widgetState(t, d, "slider", "buffers"))
	require.Empty(t, d.Validate())

	// A run of some cells leaves what the others showed, one of all begins afresh.
	some, err := notebook.ParseCells("2")
	require.NoError(t, err)
	for _, o := range []run.Options{{Cells: some}, {}} {
		_, err = d.SetSource(notebook.At(2), lines("widget new "+`{"_model_name": "M"}`, "widget none {}"))
		require.NoError(t, err)
		if o.Cells == nil {
			_, err = d.SetSource(notebook.At(0), "print a")
			require.NoError(t, err)
			_, err = d.SetSource(notebook.At(1), "print b")
			require.NoError(t, err)
		}
		_, err = run.Notebook(t.Context(), d, o, (&script{}).execute)
		require.NoError(t, err)
		require.NotEmpty(t, widgetState(t, d, "new"))
		require.Empty(t, widgetState(t, d, "none"), "it is no widget")
		require.Equal(t, o.Cells != nil, widgetState(t, d, "out") != "")
	}
}

func typeOf(e messages.Event) string {
	if e == nil {
		return ""
	}
	return e.Type()
}

// The state of widgets and what they capture are bounded, as the output of cells is.
func TestWidgetsAreBounded(t *testing.T) {
	long := strings.Repeat("x", 300)
	d := cells(t, lines(opens, enters, "print "+long, "print "+long, "print "+long), lines(another, `state slider {"value": "`+strings.Repeat("y", 900)+`"}`))
	report, err := run.Notebook(t.Context(), d, run.Options{MaxOutput: 1000}, (&script{}).execute)
	require.NoError(t, err)
	require.Equal(t, int64(365), report.Cells[0].Omitted, "what a line of 300 weighs")
	require.Contains(t, outputs(d)[0], "365 bytes of captured output left out")
	require.NotContains(t, widgetState(t, d, "slider"), "yyy")
	var got []struct{ Text []string }
	require.NoError(t, json.Unmarshal([]byte(widgetState(t, d, "out", "state", "outputs")), &got))
	require.Len(t, got[0].Text, 2)
}
