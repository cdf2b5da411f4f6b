package notebook_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/coppice-run/coppice/notebook"
)

// A notebook is shown as text, the text is edited, and the edit is saved.
func Example() {
	dir, err := os.MkdirTemp("", "notebook")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	f, err := notebook.OpenOrNew(context.Background(), filepath.Join(dir, "prices.ipynb"))
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := f.ApplyText("# %% [markdown]\n# Prices\n# %% [code]\ntotal = 1", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(report.Cells), "cells")

	// The markers now say which cell is which.
	text := f.Text()
	fmt.Println(text)
	if _, err := f.ApplyText(strings.Replace(text, "total = 1", "total = 2", 1), nil); err != nil {
		fmt.Println(err)
		return
	}
	written, err := f.Save(context.Background())
	fmt.Println(written, err)
	// Output:
	// 2 cells
	// # %% [markdown] cell:0
	// # Prices
	// # %% [code] cell:1
	// total = 1
	// true <nil>
}

// Lines of the view are chosen with a selector.
func ExampleDocument_Select() {
	d := notebook.New()
	if _, err := d.Append(notebook.NewCell{Source: "a\nb\nc"}, notebook.NewCell{Type: notebook.Markdown, Source: "d"}); err != nil {
		fmt.Println(err)
		return
	}
	sel, err := notebook.ParseSelector("1-2,5-")
	if err != nil {
		fmt.Println(err)
		return
	}
	for line := range d.Select(sel) {
		fmt.Println(line.Number, line.Text)
	}
	// Output:
	// 1 # %% [code] cell:0
	// 2 a
	// 5 # %% [markdown] cell:1
	// 6 d
}

// A runner records what the kernel sends while a cell runs.
func ExampleRecorder() {
	d := notebook.New()
	if _, err := d.Append(notebook.NewCell{Source: "print('hi')\n6 * 7"}); err != nil {
		fmt.Println(err)
		return
	}
	rec, err := notebook.NewRecorder(d).Begin(notebook.At(0))
	if err != nil {
		fmt.Println(err)
		return
	}
	rec.Stream("stdout", "h")
	rec.Stream("stdout", "i\n")
	rec.Result(1, notebook.Bundle{"text/plain": notebook.TextValue("42")}, nil, "")
	rec.Finish(1, notebook.Timing{})
	for _, o := range d.Cell(0).Outputs() {
		text, _ := o.Data.Text("text/plain")
		fmt.Printf("%s %q\n", o.Type, o.Text+text)
	}
	// Output:
	// stream "hi\n"
	// execute_result "42"
}

// Two edits of one notebook are merged cell by cell.
func ExampleMerge() {
	base := notebook.New()
	if _, err := base.Append(notebook.NewCell{Source: "a = 1", ID: "x"}, notebook.NewCell{Source: "b = 1", ID: "y"}); err != nil {
		fmt.Println(err)
		return
	}
	ours, theirs := base.Clone(), base.Clone()
	_, err1 := ours.SetSource(notebook.ByID("x"), "a = 2")
	_, err2 := theirs.SetSource(notebook.ByID("y"), "b = 2")
	if err1 != nil || err2 != nil {
		fmt.Println(err1, err2)
		return
	}
	merged, conflicts := notebook.Merge(base, ours, theirs, nil)
	fmt.Print(notebook.Diff(base, merged))
	fmt.Println(len(conflicts), "conflicts")
	// Output:
	// ~ [code] cell:0 source
	//   - a = 1
	//   + a = 2
	// ~ [code] cell:1 source
	//   - b = 1
	//   + b = 2
	// 0 conflicts
}
