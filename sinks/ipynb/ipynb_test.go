package ipynb_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/sinks/ipynb"
	"github.com/coppice-run/coppice/sinks/sinktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, o ipynb.Options) *ipynb.Recorder {
	t.Helper()
	if o.Path == "" {
		o.Path = filepath.Join(t.TempDir(), "session.ipynb")
	}
	r, err := ipynb.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

func exec(code ...string) messages.Execute {
	e := messages.Execute{Key: messages.SessionKey{Session: "s", Cwd: "/"}}
	for _, c := range code {
		e.Cells = append(e.Cells, messages.Cell{Code: c})
	}
	return e
}

// feed makes one call: each cell prints its code, shows it as value, and ends.
func feed(t *testing.T, r *ipynb.Recorder, code ...string) error {
	t.Helper()
	s := r.For(t.Context(), exec(code...))
	for i, c := range code {
		at := messages.Position{Cell: i}
		for _, e := range []messages.Event{
			messages.Status{Position: at, Status: messages.CellRunning},
			messages.Stream{Position: at, Name: messages.StdoutStream, Text: c},
			messages.ExecuteResult{Position: at, Data: messages.Bundle{"text/plain": messages.RawJSON(`"v"`)}},
			messages.Status{Position: at, Status: messages.CellComplete},
		} {
			if err := s.Consume(t.Context(), e); err != nil {
				return err
			}
		}
	}
	require.NoError(t, s.Flush(t.Context()))
	return s.Close()
}

func read(t *testing.T, path string) *notebook.Document {
	t.Helper()
	f, err := notebook.Open(t.Context(), path)
	require.NoError(t, err)
	require.Empty(t, f.Validate())
	return f.Document
}

func TestSuite(t *testing.T) {
	sinktest.Run(t, func(t *testing.T) sinks.Sink {
		return open(t, ipynb.Options{}).For(t.Context(), exec("1", "2", "3"))
	})
}

func TestCallsBecomeCells(t *testing.T) {
	r := open(t, ipynb.Options{})
	path, _ := r.Path()
	require.NoFileExists(t, path, "nothing was recorded yet")
	require.NoError(t, feed(t, r, "a", "b"))
	require.NoError(t, feed(t, r, "c"))
	d := read(t, path)
	require.Equal(t, 3, d.Len())
	for i, want := range []string{"a", "b", "c"} {
		c := d.Cell(i)
		require.Equal(t, want, c.Source())
		count, _ := c.ExecutionCount()
		require.Equal(t, i+1, count)
		outputs := c.Outputs()
		require.Len(t, outputs, 2)
		require.Equal(t, want, outputs[0].Text)
		require.Equal(t, i+1, outputs[1].Count)
	}
	require.Equal(t, "python", d.Language())

	// Another recorder goes on in the same notebook.
	again := open(t, ipynb.Options{Path: path})
	require.NoError(t, feed(t, again, "d"))
	d = read(t, path)
	require.Equal(t, 4, d.Len())
	count, _ := d.Cell(3).ExecutionCount()
	require.Equal(t, 4, count)
}

func TestUpdatesReachEarlierCalls(t *testing.T) {
	r := open(t, ipynb.Options{})
	for _, update := range []bool{false, true} {
		s := r.For(t.Context(), exec("x"))
		text := messages.RawJSON(`"old"`)
		if update {
			text = messages.RawJSON(`"new"`)
		}
		for _, e := range []messages.Event{
			messages.Status{Status: messages.CellRunning},
			messages.Display{Data: messages.Bundle{"text/plain": text}, DisplayID: "d", Update: update},
			messages.Status{Status: messages.CellComplete},
		} {
			require.NoError(t, s.Consume(t.Context(), e))
		}
		require.NoError(t, s.Close())
	}
	path, _ := r.Path()
	text, _ := read(t, path).Cell(0).Outputs()[0].Data.Text("text/plain")
	require.Equal(t, "new", text)
}

// A cell whose end never comes, since its kernel died, is recorded as far as it
// came.
func TestACellThatDoesNotEnd(t *testing.T) {
	r := open(t, ipynb.Options{})
	s := r.For(t.Context(), exec("x"))
	require.NoError(t, s.Consume(t.Context(), messages.Status{Status: messages.CellRunning}))
	require.NoError(t, s.Consume(t.Context(), messages.Stream{Name: messages.StdoutStream, Text: "half"}))
	require.NoError(t, s.Flush(t.Context()))
	path, _ := r.Path()
	require.Equal(t, "half", read(t, path).Cell(0).Outputs()[0].Text)
	require.NoError(t, s.Close())
	require.Equal(t, "half", read(t, path).Cell(0).Outputs()[0].Text)
}

func TestOneSession(t *testing.T) {
	key := messages.SessionKey{Session: "other", Cwd: "/"}
	r := open(t, ipynb.Options{Session: &key})
	require.Nil(t, r.For(t.Context(), exec("x")))
	e := exec("x")
	e.Key = key
	require.NotNil(t, r.For(t.Context(), e))
}

// What others wrote in the meantime is kept; the next call appends to it.
func TestTheFileChangedMeanwhile(t *testing.T) {
	r := open(t, ipynb.Options{})
	require.NoError(t, feed(t, r, "a"))
	path, _ := r.Path()
	mine := notebook.New()
	_, err := mine.Append(notebook.NewCell{Source: "mine"})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, mine.Bytes(), 0o600))
	require.NoError(t, r.Err())
	require.ErrorIs(t, feed(t, r, "b"), notebook.ErrChanged)
	require.ErrorIs(t, r.Err(), notebook.ErrChanged)
	require.Equal(t, mine.Bytes(), read(t, path).Bytes())
	require.NoError(t, feed(t, r, "c"))
	d := read(t, path)
	require.Equal(t, "mine", d.Cell(0).Source())
	require.Equal(t, "c", d.Cell(1).Source())
	require.ErrorIs(t, r.Err(), notebook.ErrChanged, "one is missing, though it goes on")
}

func TestBounds(t *testing.T) {
	r := open(t, ipynb.Options{MaxOutput: 1000, MaxBytes: 2000})
	require.NoError(t, feed(t, r, strings.Repeat("x", 1500)))
	path, _ := r.Path()
	outputs := read(t, path).Cell(0).Outputs()
	require.Len(t, outputs, 1)
	require.Contains(t, outputs[0].Text, "bytes of output left out")
	require.NoError(t, feed(t, r, strings.Repeat("y", 900)))
	require.NoError(t, feed(t, r, "z"))
	next, cells := r.Path()
	require.Equal(t, "session-2.ipynb", filepath.Base(next))
	require.Equal(t, 3, cells)
	require.Equal(t, "z", read(t, next).Cell(0).Source())
}

func TestWhatCannotBeRecorded(t *testing.T) {
	_, err := ipynb.Open(ipynb.Options{})
	require.EqualError(t, err, "record a notebook: no path")
	path := filepath.Join(t.TempDir(), "bad.ipynb")
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	_, err = ipynb.Open(ipynb.Options{Path: path})
	require.ErrorIs(t, err, notebook.ErrInvalidJSON)
	_, err = ipynb.Open(ipynb.Options{Path: filepath.Join(t.TempDir(), "none", "new.ipynb")})
	require.ErrorContains(t, err, "record a notebook: write ")
	require.ErrorIs(t, err, fs.ErrNotExist)
	r := open(t, ipynb.Options{})
	require.NoError(t, r.Close())
	require.ErrorIs(t, feed(t, r, "a"), sinks.ErrClosed)
	require.NoError(t, r.Err(), "who closed it knows")
}
