package result_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/artifact"
	"github.com/coppice-run/coppice/sinks/budget"
	"github.com/coppice-run/coppice/sinks/result"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func out(cell int, text string) messages.Event {
	return messages.Stream{Position: messages.Position{Cell: cell}, Name: messages.StdoutStream, Text: text}
}

func show(cell int, id string, bundle map[string]any) messages.Display {
	d := messages.Display{Position: messages.Position{Cell: cell}, DisplayID: id, Data: messages.Bundle{}}
	for mime, v := range bundle {
		raw, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		d.Data[mime] = raw
	}
	return d
}

func fold(o result.Options, cells int, events ...messages.Event) messages.Output {
	f := result.New(o, cells)
	for _, e := range events {
		f.Add(e)
	}
	o1 := f.Output()
	if err := f.Close(); err != nil {
		panic(err)
	}
	return o1
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, got, 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(string(want), string(got)))
}

// TestGolden folds recorded events, one JSON object a line.
func TestGolden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.events")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			var events []messages.Event
			for line := range strings.Lines(string(data)) {
				e, err := messages.ParseEvent([]byte(line))
				require.NoError(t, err, line)
				events = append(events, e)
			}
			var b bytes.Buffer
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			require.NoError(t, enc.Encode(fold(result.Options{}, 4, events...)))
			golden(t, strings.TrimSuffix(file, ".events")+".golden.json", b.Bytes())
		})
	}
}

func TestBrand(t *testing.T) {
	t.Parallel()
	o := fold(result.Options{Brand: "omp"}, 1, show(0, "", map[string]any{"application/x-omp-status": map[string]any{"op": nil}}),
		show(0, "", map[string]any{"application/x-omp-status": map[string]any{"op": "x"}}), show(0, "", map[string]any{"application/x-coppice-status": map[string]any{"op": "y"}}))
	require.Len(t, o.Cells[0].Events, 1, "an op that is null does not count")
	require.JSONEq(t, `{"op":"x"}`, string(o.Cells[0].Events[0]))
	require.Equal(t, "[application/x-coppice-status of 10B not shown]\n", o.Cells[0].Text, "a status of another brand is a type like any other")
}

func TestCapturesAreBounded(t *testing.T) {
	t.Parallel()
	red, green, blue, white := pixel(t, 1, 255, 0, 0), pixel(t, 1, 0, 255, 0), pixel(t, 1, 0, 0, 255), pixel(t, 1, 255, 255, 255)
	large := noise(t)
	o := result.Options{Images: 2, ImageBytes: 200, JSON: 1, JSONBytes: 100, Events: 1, JSONText: 20}
	got := fold(o, 1,
		show(0, "", map[string]any{"image/png": red}), show(0, "", map[string]any{"image/png": large}),
		show(0, "", map[string]any{"image/jpeg": green}), show(0, "", map[string]any{"image/png": blue}),
		show(0, "", map[string]any{"application/json": strings.Repeat("é", 30)}), show(0, "", map[string]any{"application/json": 2, "text/plain": "two"}),
		messages.Status{Data: messages.RawJSON(`{"op":"a"}`)}, messages.Status{Data: messages.RawJSON(`{"op":"b"}`)})
	require.Equal(t, []messages.Image{{MIME: "image/png", Data: red, Width: 1, Height: 1}, {MIME: "image/png", Data: green, Width: 1, Height: 1}}, got.Images)
	require.Len(t, got.JSON, 1)
	require.Len(t, got.Cells[0].Events, 1)
	require.Equal(t, "[image/png of 1.1KB not kept: the limit of a call is 200B]\n[image/png of 100B not kept: the call has 2 already]\n"+
		"\"ééééééééé\n[… 43B more …]\ntwo\n[application/json of 1B not kept: the call has 1 already]\n[1 more status events not kept]\n", got.Cells[0].Text)

	got = fold(o, 1, show(0, "i", map[string]any{"image/png": red}), show(0, "", map[string]any{"image/png": green}),
		func() messages.Event {
			d := show(0, "i", map[string]any{"image/png": blue, "image/jpeg": white})
			d.Update = true
			return d
		}())
	require.Equal(t, []messages.Image{{MIME: "image/png", Data: blue, Width: 1, Height: 1}, {MIME: "image/png", Data: green, Width: 1, Height: 1}}, got.Images, "an update gives its room back and keeps its place")
}

func TestManyDisplaysThatCanBeUpdated(t *testing.T) {
	t.Parallel()
	f := result.New(result.Options{}, 1)
	for i := range 300 {
		f.Add(show(0, fmt.Sprint(i), map[string]any{"text/plain": fmt.Sprintf("%d\n", i)}))
	}
	for _, i := range []int{3, 299} {
		d := show(0, fmt.Sprint(i), map[string]any{"text/plain": fmt.Sprintf("new %d", i)})
		d.Update = true
		f.Add(d)
	}
	text := f.Output().Cells[0].Text
	require.Contains(t, text, "\n2\nnew 3\n4\n")
	require.True(t, strings.HasSuffix(text, "\n298\n299\nnew 299\n"), "one that is not remembered is shown again")
}

// TestArtifactIsTheRawOutput: the artifact holds what was printed, from its
// first byte, whatever the text shows.
func TestArtifactIsTheRawOutput(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		store := artifact.New(artifact.Options{Dir: tempDir(t)})
		f := result.New(result.Options{Store: store, Budget: budget.Options{Bytes: 100}}, 1)
		var raw strings.Builder
		for range rapid.IntRange(0, 30).Draw(t, "events") {
			s := rapid.StringMatching(`(\x1b\[3[0-7]m|[a-z ]{1,10}|\r|\n|é|\x{fffd}){0,6}`).Draw(t, "text")
			f.Add(out(0, s))
			raw.WriteString(s)
		}
		o := f.Output()
		require.NoError(t, f.Close())
		if o.Artifact == "" {
			require.Nil(t, o.Truncation)
			require.LessOrEqual(t, raw.Len(), 100)
			_, err := store.List()
			require.ErrorIs(t, err, artifact.ErrNoDirectory, "nothing is created in vain")
			return
		}
		require.Equal(t, "artifact://0", o.Artifact)
		file, err := store.Open(o.Artifact)
		require.NoError(t, err)
		defer file.Close()
		got, err := io.ReadAll(file)
		require.NoError(t, err)
		require.Equal(t, raw.String(), string(got))
	})
}

// tempDir is a directory that is there until the property was checked.
func tempDir(t *rapid.T) string {
	dir, err := os.MkdirTemp("", "result-test-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "artifacts")
}

func TestTruncation(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&text, "line %d\n", i+1)
	}
	store := artifact.New(artifact.Options{Dir: t.TempDir()})
	o := fold(result.Options{Store: store}, 1, out(0, text.String()))
	require.Empty(t, cmp.Diff(&messages.Truncation{
		Direction: "middle", TruncatedBy: "lines", TotalLines: 5000, TotalBytes: int64(text.Len()), OutputLines: 3000, OutputBytes: 28893,
		MaxBytes: 51200, ShownStart: 3201, ShownEnd: 5000, Artifact: "artifact://0",
	}, o.Truncation))
	require.True(t, strings.HasPrefix(o.Cells[0].Text, "line 1\nline 2\n"))
	require.Contains(t, o.Cells[0].Text, "line 1200\n[… 2000 lines, 19.5KB elided …]\nline 3201\n")

	tail := fold(result.Options{Store: store, Budget: budget.Options{TailOnly: true, Bytes: 1000}}, 1, out(0, text.String()))
	require.Empty(t, cmp.Diff(&messages.Truncation{
		Direction: "tail", TruncatedBy: "bytes", TotalLines: 5000, TotalBytes: int64(text.Len()), OutputLines: 100, OutputBytes: 1000,
		MaxBytes: 1000, ShownStart: 4901, ShownEnd: 5000, Artifact: "artifact://1",
	}, tail.Truncation))

	none := fold(result.Options{Budget: budget.Options{Bytes: 1000}}, 1, out(0, text.String()))
	require.NotNil(t, none.Truncation, "without a store the rest is lost, and the result says that there is more")
	require.Empty(t, none.Artifact)
}

func TestColumnsAdvertiseTheArtifact(t *testing.T) {
	t.Parallel()
	store := artifact.New(artifact.Options{Dir: t.TempDir()})
	o := fold(result.Options{Store: store, Budget: budget.Options{Columns: 5}}, 1, out(0, "1234567\nab\n1234567"))
	require.Equal(t, "12345…\nab\n12345…\n[Some lines truncated to 5 bytes: 2]\n", o.Cells[0].Text)
	require.Nil(t, o.Truncation)
	require.Equal(t, "artifact://0", o.Artifact)
}

// TestFoldedFloodStaysBounded: a progress bar of many megabytes is one line; the
// raw output moves to the artifact all the same.
func TestFoldedFloodStaysBounded(t *testing.T) {
	t.Parallel()
	store := artifact.New(artifact.Options{Dir: t.TempDir()})
	f := result.New(result.Options{Store: store}, 1)
	for i := range 20000 {
		f.Add(out(0, fmt.Sprintf("\r%d of 20000 %s", i+1, strings.Repeat("#", 50))))
	}
	o := f.Output()
	require.NoError(t, f.Close())
	require.Equal(t, "20000 of 20000 "+strings.Repeat("#", 50), o.Cells[0].Text)
	require.Nil(t, o.Truncation)
	require.Equal(t, "artifact://0", o.Artifact)
	info, err := store.Resolve(o.Artifact)
	require.NoError(t, err)
	require.Greater(t, info.Bytes, int64(1<<20))
}

func TestArtifactThatCannotBeMade(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	o := fold(result.Options{Store: artifact.New(artifact.Options{Dir: filepath.Join(file, "x")}), Budget: budget.Options{Bytes: 2000}}, 1,
		out(0, strings.Repeat("x", 3000)), out(0, "\nlast\n"))
	require.Empty(t, o.Artifact)
	require.Contains(t, o.NotKept, "The full output could not be kept: make artifacts directory")
}

// TestSharesStayWithinTheBudget: whatever the cells print, late output of
// earlier cells included, all of it is bounded, and no cell gets less than the
// least share.
func TestSharesStayWithinTheBudget(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cells := rapid.IntRange(1, 30).Draw(t, "cells")
		f := result.New(result.Options{Budget: budget.Options{Bytes: 20 << 10, Lines: 600}}, cells)
		printed := make([]int, cells)
		at := 0
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			at = min(cells-1, at+rapid.IntRange(0, 1).Draw(t, "next"))
			i := at
			if rapid.IntRange(0, 5).Draw(t, "late") == 0 {
				i = rapid.IntRange(0, at).Draw(t, "cell")
			}
			n := rapid.SampledFrom([]int{1, 50, 400}).Draw(t, "lines")
			f.Add(out(i, strings.Repeat(strings.Repeat("x", 39)+"\n", n)))
			printed[i] += 40 * n
		}
		total := 0
		for _, c := range f.Output().Cells {
			total += len(c.Text)
			if printed[c.Index] <= result.MinShareLines*40 {
				require.Len(t, c.Text, printed[c.Index])
			}
		}
		require.LessOrEqual(t, total, 20<<10+cells*(result.MinShare+64))
	})
}

func TestLaterCellsGetWhatEarlierOnesLeft(t *testing.T) {
	t.Parallel()
	o := fold(result.Options{}, 10, out(0, "little\n"), out(9, strings.Repeat("x", 50<<10-7)))
	require.Nil(t, o.Truncation)
	require.Len(t, o.Cells[1].Text, 50<<10-7)
}

func TestOutputCanBeAskedForTwice(t *testing.T) {
	t.Parallel()
	f := result.New(result.Options{}, 2)
	f.Add(out(0, "a\rb"))
	first := f.Output()
	require.Equal(t, "b", first.Cells[0].Text)
	require.Empty(t, cmp.Diff(first, f.Output()))
	f.Add(out(0, "c\n"))
	require.Equal(t, "bc\n", f.Output().Cells[0].Text)
	require.Empty(t, cmp.Diff(messages.Output{Cells: []messages.CellOutput{}}, fold(result.Options{}, 0)))
}

// FuzzFold: any stream of events gives valid, clean, bounded text.
func FuzzFold(f *testing.F) {
	f.Add([]byte(`{"type":"stdout","text":"a\r\u001b[Kb"}`))
	f.Add([]byte(`{"type":"display","data":{"text/html":"<b>x"},"display_id":"d"}`))
	f.Add([]byte(`{"type":"display","data":{"application/json":{"a":[1]}},"display_id":"d","update":true}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		fd := result.New(result.Options{Budget: budget.Options{Bytes: 2048}}, 3)
		for line := range bytes.Lines(data) {
			if e, err := messages.ParseEvent(line); err == nil {
				fd.Add(e)
				fd.Add(e)
			}
		}
		for _, c := range fd.Output().Cells {
			require.True(t, utf8.ValidString(c.Text))
			require.LessOrEqual(t, len(c.Text), 2048+200)
			require.NotContains(t, c.Text, "\x1b")
		}
	})
}

func BenchmarkSmallCall(b *testing.B) {
	event := show(0, "", map[string]any{"text/plain": "2"})
	b.ReportAllocs()
	for b.Loop() {
		f := result.New(result.Options{}, 1)
		f.Add(event)
		f.Output()
		_ = f.Close()
	}
}

func BenchmarkStream(b *testing.B) {
	f := result.New(result.Options{Store: artifact.New(artifact.Options{Dir: b.TempDir()})}, 1)
	e := out(0, strings.Repeat("the quick brown fox jumps over the lazy dog\n", 20))
	b.SetBytes(int64(e.Size()))
	b.ReportAllocs()
	for b.Loop() {
		f.Add(e)
	}
	_ = f.Close()
}
