package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
	"github.com/coppice-run/coppice/notebook/run"
)

// script is a session that does what the code of a cell says: a line is a word
// and its argument.
type script struct {
	count int
	calls []string
	last  run.Call
	// hangs is closed when a cell hangs.
	hangs chan struct{}
}

func (s *script) execute(ctx context.Context, c run.Call) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		s.calls = append(s.calls, c.Cell.Title)
		s.last = c
		s.count++
		cell := messages.CellResult{Outcome: messages.OutcomeOK, ExecutionCount: s.count}
		result := messages.Result{Outcome: messages.OutcomeOK, Backend: "runner"}
		if c.Cell.Code != "away" {
			yield(messages.Status{Status: messages.CellRunning}, nil)
		}
		for line := range strings.Lines(c.Cell.Code) {
			word, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch word {
			case "print":
				yield(messages.Stream{Name: messages.StdoutStream, Text: arg + "\n"}, nil)
			case "sleep":
				d, _ := time.ParseDuration(arg)
				time.Sleep(d)
			case "much":
				yield(messages.Stream{Name: messages.StdoutStream, Text: strings.Repeat("x", 16<<20)}, nil)
			case "widget", "state": // comm and state
				id, data, _ := strings.Cut(arg, " ")
				action := map[string]messages.CommAction{"widget": messages.CommOpen, "state": messages.CommUpdate}[word]
				yield(messages.Comm{ID: id, Action: action, Data: messages.RawJSON(`{"state": ` + data + `, "buffer_paths": [["b"]]}`), Buffers: [][]byte{[]byte(id)}}, nil)
			case "show", "update":
				yield(messages.Display{Data: messages.Bundle{"text/plain": text(arg)}, DisplayID: "d", Update: word == "update"}, nil)
			case "value":
				yield(messages.ExecuteResult{Data: messages.Bundle{"text/plain": text(arg)}, ExecutionCount: s.count}, nil)
			case "clear":
				yield(messages.ClearOutput{Wait: arg == "wait"}, nil)
			case "raise":
				cell.Outcome, cell.Error = messages.OutcomeError, &messages.ErrorDetails{Name: arg, Message: "m"}
				yield(messages.Error{ErrorDetails: *cell.Error}, nil)
			case "away":
				yield(messages.Final{Result: messages.Result{Outcome: messages.OutcomeNotStarted, Reason: "no kernel", Cells: []messages.CellResult{{Outcome: messages.OutcomeNotStarted}}}}, nil)
				return
			case "late":
				cell.Outcome = messages.OutcomeTimeout
			case "die":
				cell.Outcome, result.Reason = messages.OutcomeLost, "the kernel process died"
			case "refuse":
				yield(nil, errors.New("refused"))
				return
			case "hang":
				if s.hangs != nil {
					close(s.hangs)
				}
				<-ctx.Done()
				cell.Outcome = messages.OutcomeCancelled
			}
		}
		yield(messages.Status{Status: messages.CellComplete}, nil)
		result.Outcome, result.Cells = cell.Outcome, []messages.CellResult{cell}
		yield(messages.Final{Result: result}, nil)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func text(s string) messages.RawJSON {
	b, _ := json.Marshal(s)
	return b
}

func cells(t testing.TB, sources ...string) *notebook.Document {
	t.Helper()
	d := notebook.New()
	for _, s := range sources {
		spec := notebook.NewCell{Source: s}
		if prose, ok := strings.CutPrefix(s, "md:"); ok {
			spec = notebook.NewCell{Type: notebook.Markdown, Source: prose}
		}
		if tag, rest, ok := strings.Cut(s, "|"); ok {
			spec.Tags, spec.Source = []string{tag}, rest
		}
		_, err := d.Append(spec)
		require.NoError(t, err)
	}
	return d
}

// outputs is what each cell shows, for people.
func outputs(d *notebook.Document) []string {
	var all []string
	for _, c := range d.Cells() {
		var parts []string
		for _, o := range c.Outputs() {
			text, _ := o.Data.Text("text/plain")
			parts = append(parts, strings.TrimSpace(o.Text)+text+o.EName)
		}
		all = append(all, strings.Join(parts, ";"))
	}
	return all
}

func TestNotebook(t *testing.T) {
	some := func(s string) *notebook.CellSet {
		set, err := notebook.ParseCells(s)
		require.NoError(t, err)
		return set
	}
	for name, tt := range map[string]struct {
		cells   []string
		o       run.Options
		outcome messages.Outcome
		next    int
		calls   string
		outputs string
	}{
		"all code cells, in order":          {cells: []string{"md:# x", "print a", " \n", "value 2"}, outcome: messages.OutcomeOK, next: -1, calls: "cell 1,cell 3", outputs: "|a||2"},
		"stops at the first error":          {cells: []string{"print a", "raise KeyError", "print b"}, outcome: messages.OutcomeError, next: 1, calls: "cell 0,cell 1", outputs: "a|KeyError|"},
		"goes on if errors are allowed":     {cells: []string{"raise KeyError", "print b"}, o: run.Options{AllowErrors: true}, outcome: messages.OutcomeOK, next: -1, calls: "cell 0,cell 1", outputs: "KeyError|b"},
		"goes on if an error is expected":   {cells: []string{"raises-exception|raise KeyError", "print b"}, outcome: messages.OutcomeOK, next: -1, calls: "cell 0,cell 1", outputs: "KeyError|b"},
		"a tagged cell is skipped":          {cells: []string{"skip-execution|print a", "print b"}, outcome: messages.OutcomeOK, next: -1, calls: "cell 1", outputs: "|b"},
		"some cells":                        {cells: []string{"print a", "print b", "print c", "print d"}, o: run.Options{Cells: some("1-2")}, outcome: messages.OutcomeOK, next: -1, calls: "cell 1,cell 2", outputs: "|b|c|"},
		"a lost kernel ends it":             {cells: []string{"print a\ndie", "print b"}, o: run.Options{AllowErrors: true}, outcome: messages.OutcomeLost, next: 0, calls: "cell 0", outputs: "a;[coppice: lost: the kernel process died]|"},
		"an update reaches an earlier cell": {cells: []string{"show old", "update new"}, outcome: messages.OutcomeOK, next: -1, calls: "cell 0,cell 1", outputs: "new|"},
		"output is cleared":                 {cells: []string{"print a\nclear\nprint b", "print c\nclear wait\nprint d", "print e\nclear wait"}, outcome: messages.OutcomeOK, next: -1, calls: "cell 0,cell 1,cell 2", outputs: "b|d|e"},
		"output is bounded":                 {cells: []string{"print 0123456789\nprint 0123456789", "print a\nclear\nprint b"}, o: run.Options{MaxOutput: 90}, outcome: messages.OutcomeOK, next: -1, calls: "cell 0,cell 1", outputs: "0123456789;[coppice: 75 bytes of output left out]|b"},
		"a timeout is told, last":           {cells: []string{"print 0123456789\nprint 0123456789\nlate"}, o: run.Options{MaxOutput: 90, Timeout: time.Second}, outcome: messages.OutcomeTimeout, next: 0, calls: "cell 0", outputs: "0123456789;[coppice: 75 bytes of output left out]\n\n[coppice: timeout: the cell ran longer than 1s]"},
		"an empty notebook":                 {outcome: messages.OutcomeOK, next: -1, calls: "", outputs: ""},
		"parameters come first": {
			cells: []string{"parameters|print a", "print b"}, o: run.Options{Cells: some("1"), Parameters: []notebook.Parameter{{Name: "x", Value: 1}}},
			outcome: messages.OutcomeOK, next: -1, calls: "cell 1,cell 2", outputs: "||b",
		},
	} {
		check := func(t *testing.T) {
			s, d := &script{}, cells(t, tt.cells...)
			saves := 0
			tt.o.Save = func(context.Context) (bool, error) { saves++; return true, nil }
			report, err := run.Notebook(t.Context(), d, tt.o, s.execute)
			require.NoError(t, err)
			require.Equal(t, tt.outcome, report.Outcome)
			require.Equal(t, tt.next, report.Next)
			require.Equal(t, tt.calls, strings.Join(s.calls, ","))
			require.Equal(t, tt.outputs, strings.Join(outputs(d), "|"))
			require.Empty(t, d.Validate())
			ran := len(report.Cells) - report.Count(messages.OutcomeNotStarted)
			require.Equal(t, ran+len(tt.o.Parameters), saves, "a save after every cell, and one for the parameters")
			n := 0
			for _, c := range d.Cells() {
				if count, ok := c.ExecutionCount(); ok {
					n++
					require.Equal(t, n, count, "prompt numbers are the kernel's")
					_, timed := c.Metadata("execution", "iopub.status.busy")
					require.True(t, timed)
				}
			}
			require.Equal(t, ran, n)
		}
		t.Run(name, func(t *testing.T) { synctest.Test(t, check) }) // where saves take no time
	}
}

func TestRefuses(t *testing.T) {
	language := cells(t, "1")
	require.NoError(t, language.SetNotebookMetadata("julia", "kernelspec", "language"))
	kernel := cells(t, "1")
	require.NoError(t, kernel.SetNotebookMetadata("ir", "kernelspec", "name"))
	full := errors.New("no space left")
	for name, tt := range map[string]struct {
		doc  *notebook.Document
		o    run.Options
		want error
		text string
	}{
		"another language":     {doc: language, want: run.ErrLanguage, text: "not a Python notebook: its metadata says julia, and only Python cells can be run"},
		"another kernel":       {doc: kernel, want: run.ErrLanguage, text: `not a Python notebook: its metadata says r (kernelspec "ir"), and only Python cells can be run`},
		"a cell too many":      {doc: cells(t, "1"), o: run.Options{Cells: notebook.CellsFrom(1)}, want: notebook.ErrNoCell},
		"a wrong parameter":    {doc: cells(t, "1"), o: run.Options{Parameters: []notebook.Parameter{{Name: "a b"}}}, want: notebook.ErrArgument},
		"no notebook":          {want: notebook.ErrArgument, text: "invalid argument: there is no notebook; open one with notebook.Open, or make it with notebook.New"},
		"a save that failed":   {doc: cells(t, "print 1", "print 2"), o: run.Options{Save: func(context.Context) (bool, error) { return false, full }}, want: full, text: "save the notebook: no space left"},
		"a request that fails": {doc: cells(t, "refuse"), text: "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &script{}
			report, err := run.Notebook(t.Context(), tt.doc, tt.o, s.execute)
			require.Error(t, err)
			if tt.want != nil {
				require.ErrorIs(t, err, tt.want)
			}
			if tt.text != "" {
				require.EqualError(t, err, tt.text)
			}
			require.Equal(t, messages.OutcomeNotStarted, report.Outcome)
			require.LessOrEqual(t, len(s.calls), 1)
		})
	}
}

func TestAPythonNotebookIsAccepted(t *testing.T) {
	for _, meta := range []string{`{}`, `{"kernelspec":{"name":"python3"}}`, `{"kernelspec":{"name":"conda-env-x-py"}}`, `{"language_info":{"name":"Python"}}`, `{"kernelspec":{"name":"julia-1.9","language":"python"}}`} {
		d, err := notebook.Parse([]byte(`{"cells":[],"metadata":` + meta + `,"nbformat":4,"nbformat_minor":5}`))
		require.NoError(t, err)
		require.NoError(t, run.Check(d), meta)
	}
}

// What the options say of the calls goes with each.
func TestCalls(t *testing.T) {
	s := &script{}
	o := run.Options{
		Timeout: time.Minute, Owner: "me", Env: map[string]string{"A": "b"},
		Input: func(_ context.Context, q messages.InputRequest) (string, error) { return q.Prompt + "!", nil },
	}
	_, err := run.Notebook(t.Context(), cells(t, "print a"), o, s.execute)
	require.NoError(t, err)
	require.Equal(t, messages.Cell{Title: "cell 0", Code: "print a"}, s.last.Cell)
	require.Equal(t, o.Timeout, s.last.Timeout)
	require.Equal(t, o.Owner, s.last.Owner)
	require.Equal(t, o.Env, s.last.Env)
	answer, err := s.last.Input(t.Context(), messages.InputRequest{Prompt: "?"})
	require.NoError(t, err)
	require.Equal(t, "?!", answer)
}

// A cell that reaches no kernel keeps what it showed before.
func TestACellThatDoesNotRunIsNotTouched(t *testing.T) {
	d := cells(t, "away", "print a")
	require.NoError(t, d.SetOutputs(notebook.At(0), 7, notebook.NewStream("stdout", "before")))
	was := string(d.Bytes())
	report, err := run.Notebook(t.Context(), d, run.Options{}, (&script{}).execute)
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeNotStarted, report.Outcome)
	require.Equal(t, "no kernel", report.Reason)
	require.Equal(t, 0, report.Next)
	require.Equal(t, was, string(d.Bytes()))
}

// What a cell shows is saved while it still runs.
func TestOutputOfARunningCellIsSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := &script{hangs: make(chan struct{})}, cells(t, "print a\nhang", "print b")
		ctx, cancel := context.WithCancel(t.Context())
		var saved []string
		go func() {
			<-s.hangs
			time.Sleep(3 * time.Second)
			cancel()
		}()
		report, err := run.Notebook(ctx, d, run.Options{Save: func(ctx context.Context) (bool, error) {
			saved = append(saved, strings.Join(outputs(d), "|"))
			return true, ctx.Err()
		}}, s.execute)
		require.NoError(t, err)
		require.Equal(t, messages.OutcomeCancelled, report.Outcome)
		require.Equal(t, 0, report.Next)
		require.Equal(t, []string{"a|", "a|"}, saved, "after two seconds, and at the end")
	})
}

// However many cells end in a short time, at most a tenth of it goes into saves, and
// nothing waits for longer than that; a cell that runs for long is saved when it ends.
func TestSavesAreBoundedInTimeAndBytes(t *testing.T) {
	for name, tt := range map[string]struct {
		cells []string
		saves []time.Duration // when, from the beginning
		last  string          // what the last save but one had of the cells that showed something
	}{
		"quick cells": {
			cells: repeated("sleep 150ms\nprint a", 30),
			saves: []time.Duration{150 * time.Millisecond, 2350 * time.Millisecond, 4550 * time.Millisecond, 4900 * time.Millisecond}, last: strings.Repeat("a", 28),
		},
		"slow cells": {
			cells: repeated("sleep 3s\nprint a", 3),
			saves: []time.Duration{3 * time.Second, 6200 * time.Millisecond, 9400 * time.Millisecond}, last: "aa",
		},
		"a silent one behind quick ones": {
			cells: []string{"print a", "print b", "sleep 1h"},
			saves: []time.Duration{0, 2200 * time.Millisecond, time.Hour + 200*time.Millisecond}, last: "ab",
		},
		"much output": {
			cells: []string{"print a", "much", "sleep 1s\nprint b", "print c"},
			saves: []time.Duration{0, 200 * time.Millisecond, 1400 * time.Millisecond}, last: "a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, began := cells(t, tt.cells...), time.Now()
				var saves []time.Duration
				var had []string
				_, err := run.Notebook(t.Context(), d, run.Options{SaveEvery: 59 * time.Second, Save: func(context.Context) (bool, error) { // no tick falls on the end of a cell
					saves = append(saves, time.Since(began))
					had = append(had, strings.ReplaceAll(strings.Join(outputs(d), ""), strings.Repeat("x", 16<<20), ""))
					time.Sleep(200 * time.Millisecond)
					return true, nil
				}}, (&script{}).execute)
				require.NoError(t, err)
				require.Equal(t, tt.saves, saves)
				require.Equal(t, tt.last, had[len(had)-2])
			})
		})
	}
}

// repeated is so many cells of one source.
func repeated(source string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = source
	}
	return all
}

func TestReportAsJSON(t *testing.T) {
	report, err := run.Notebook(t.Context(), cells(t, "raise KeyError"), run.Options{}, (&script{}).execute)
	require.NoError(t, err)
	report.Duration, report.Cells[0].Duration, report.Cells[0].ID = 1500*time.Millisecond, time.Second, "a"
	data, err := json.Marshal(report)
	require.NoError(t, err)
	require.JSONEq(t, `{"outcome":"error","backend":"runner","cells":[{"index":0,"id":"a","outcome":"error","execution_count":1,"error":{"name":"KeyError","message":"m"},"duration_ms":1000}],"next":0,"duration_ms":1500}`, string(data))
	data, err = json.Marshal(run.Report{})
	require.NoError(t, err)
	require.Contains(t, string(data), `"cells":[]`)
}

// Who opens a notebook that has run sees colours without a kernel; a language that is
// noted stays as it is.
func TestTheLanguageIsNoted(t *testing.T) {
	for _, noted := range []string{"", "ipython"} {
		d := cells(t, "print a")
		want := `"python"`
		if noted != "" {
			want = `"` + noted + `"`
			require.NoError(t, d.SetNotebookMetadata("python", "kernelspec", "language"))
			require.NoError(t, d.SetNotebookMetadata(noted, "language_info", "name"))
		}
		_, err := run.Notebook(t.Context(), d, run.Options{}, (&script{}).execute)
		require.NoError(t, err)
		got, _ := d.Metadata("language_info", "name")
		require.Equal(t, want, string(got))
	}
}
