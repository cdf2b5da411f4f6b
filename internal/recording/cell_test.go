package recording_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/recording"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
)

func stream(text string) messages.Event {
	return messages.Stream{Name: messages.StdoutStream, Text: text}
}

func display(text string, update bool) messages.Event {
	return messages.Display{Data: messages.Bundle{"text/plain": messages.RawJSON(`"` + text + `"`)}, DisplayID: "d", Update: update}
}

func value(count int) messages.Event {
	return messages.ExecuteResult{Data: messages.Bundle{"text/plain": messages.RawJSON(`"v"`)}, ExecutionCount: count}
}

// document is a notebook with one code cell.
func document(t *testing.T) *notebook.Document {
	t.Helper()
	d := notebook.New()
	_, err := d.Append(notebook.NewCell{Source: "x"})
	require.NoError(t, err)
	return d
}

// shown is what the cell of a notebook shows, for people.
func shown(d *notebook.Document) string {
	var parts []string
	for _, o := range d.Cell(0).Outputs() {
		text, _ := o.Data.Text("text/plain")
		parts = append(parts, o.Text+text+o.EName)
	}
	return strings.Join(parts, ";")
}

func TestCell(t *testing.T) {
	ten := stream("0123456789")
	size := int64(ten.Size())
	raised := messages.Error{ErrorDetails: messages.ErrorDetails{Name: "KeyError"}}
	for name, tt := range map[string]struct {
		events  []messages.Event
		most    int64 // 0: as much as comes
		remarks []string
		want    string
		grew    int64
		omitted int64
	}{
		"what it shows":         {events: []messages.Event{stream("a"), display("b", false), value(1)}, want: "a;b;v", grew: int64(stream("a").Size() + display("b", false).Size() + value(1).Size())},
		"an update":             {events: []messages.Event{display("a", false), display("b", true)}, want: "b", grew: int64(display("a", false).Size())},
		"an update of a value":  {events: []messages.Event{messages.ExecuteResult{Data: display("a", false).(messages.Display).Data, DisplayID: "d"}, display("b", true)}, want: "b", grew: int64(value(0).Size())},
		"an error":              {events: []messages.Event{ten, raised}, most: size, want: "0123456789;KeyError", grew: size + int64(raised.Size())},
		"as much as it may":     {events: []messages.Event{ten, ten}, most: 2 * size, want: "01234567890123456789", grew: 2 * size},
		"more than that":        {events: []messages.Event{ten, ten}, most: 2*size - 1, want: "0123456789;\n[coppice: 74 bytes of output left out]\n", grew: size, omitted: size},
		"nothing after the gap": {events: []messages.Event{ten, ten, stream("")}, most: 2*size - 1, want: "0123456789;\n[coppice: 138 bytes of output left out]\n", grew: size, omitted: size + int64(stream("").Size())},
		"room after a clear":    {events: []messages.Event{ten, ten, messages.ClearOutput{}, ten}, most: 2*size - 1, want: "0123456789", grew: 2 * size},
		"a clear that waits":    {events: []messages.Event{ten, messages.ClearOutput{Wait: true}}, want: "0123456789", grew: size},
		"remarks come last":     {events: []messages.Event{ten, ten}, most: size, remarks: []string{"lost: x"}, want: "0123456789;\n[coppice: 74 bytes of output left out]\n\n[coppice: lost: x]\n", grew: size, omitted: size},
		"no output":             {events: []messages.Event{messages.InputRequest{}, messages.Notice{}, messages.Final{}, messages.Status{Status: messages.CellPending}}},
	} {
		t.Run(name, func(t *testing.T) {
			d := document(t)
			if tt.most == 0 {
				tt.most = 1 << 20
			}
			c, err := recording.Begin(notebook.NewRecorder(d), notebook.At(0), 0, tt.most)
			require.NoError(t, err)
			var grew int64
			for _, e := range tt.events {
				grew += c.Record(e)
			}
			require.Equal(t, tt.omitted, c.Omitted())
			c.Finish(7, tt.remarks...)
			require.Equal(t, tt.want, shown(d))
			require.Equal(t, tt.grew, grew)
			count, _ := d.Cell(0).ExecutionCount()
			require.Equal(t, 7, count)
			require.Empty(t, d.Validate())
		})
	}
}

// A cell that was given a number keeps it, whatever the kernel says.
func TestNumbers(t *testing.T) {
	for _, tt := range []struct{ given, kernel, want int }{{0, 3, 3}, {9, 3, 9}, {9, 0, 9}} {
		d := document(t)
		c, err := recording.Begin(notebook.NewRecorder(d), notebook.At(0), tt.given, 1<<20)
		require.NoError(t, err)
		c.Record(value(3))
		c.Finish(tt.kernel)
		count, _ := d.Cell(0).ExecutionCount()
		require.Equal(t, tt.want, count)
		require.Equal(t, tt.want, d.Cell(0).Outputs()[0].Count)
	}
}

func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := document(t)
		c, err := recording.Begin(notebook.NewRecorder(d), notebook.At(0), 0, 1<<20)
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.Zero(t, c.Duration())
		c.Record(messages.Status{Status: messages.CellRunning})
		began := time.Now()
		time.Sleep(time.Second)
		require.Zero(t, c.Duration(), "it has not ended")
		c.Record(messages.Status{Status: messages.CellError})
		require.Equal(t, time.Second, c.Duration())
		c.Finish(1)
		for key, want := range map[string]time.Time{"iopub.execute_input": began, "iopub.status.busy": began, "iopub.status.idle": began.Add(time.Second), "shell.execute_reply": began.Add(time.Second)} {
			at, ok := d.Cell(0).Metadata("execution", key)
			require.True(t, ok, key)
			require.JSONEq(t, want.UTC().Format(`"2006-01-02T15:04:05.000000Z"`), string(at), key)
		}
	})
}

// What was recorded is in the document before the cell ends, if it is to be.
func TestFlush(t *testing.T) {
	d := document(t)
	c, err := recording.Begin(notebook.NewRecorder(d), notebook.At(0), 0, 1<<20)
	require.NoError(t, err)
	c.Record(stream("a"))
	require.Empty(t, shown(d))
	c.Flush()
	require.Equal(t, "a", shown(d))
	_, err = recording.Begin(notebook.NewRecorder(d), notebook.At(1), 0, 1<<20)
	require.ErrorIs(t, err, notebook.ErrNoCell)
}
