package notebook

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/notebook"
)

// outputsHead is the first line of a text with outputs, by which apply knows one: no marker, so
// that others who read the text view refuse it too.
const outputsHead = outputPrefix + "with outputs: to read, not to apply"

// refuseOutputs returns an error for a text of show with outputs: their lines would become code.
func refuseOutputs(text string) error {
	first, _, _ := strings.Cut(strings.TrimPrefix(text, "\ufeff"), "\n")
	if strings.TrimSpace(first) != outputsHead {
		return nil
	}
	return console.Usagef("the text has outputs in it, as show --outputs writes them: edit what show writes without --outputs; nothing was changed")
}

// outputPrefix stands before each line of an output that is shown as text.
const outputPrefix = "#> "

func (a *app) showCommand() *cobra.Command {
	var (
		lines, cells          string
		raw, outputs, numbers bool
		most                  int
	)
	cmd := console.Command{
		Use: "show FILE[:LINES]", Short: "Show a notebook as text",
		Long: `Show the editable text of a notebook, or some of its lines:

  12  3-9  3+7 (seven lines)  40-  -20  1-20,40-  raw (the JSON)  raw:1-20

With --outputs, what cells showed stands below each, behind "#> ". That is for
reading: the first line says so, and apply refuses the text.

The exit code is 2 when FILE has none of the lines, or lacks one of the --cells.`,
		Example: `  coppice notebook show report.ipynb
  coppice notebook show report.ipynb:1-20,40-
  coppice notebook show report.ipynb --cells 3-5 --outputs`,
		Args: console.Arguments{Least: 1, Most: 1}, Errors: failure,
		Run: func(ctx context.Context, args []string) error {
			path, selector := notebook.SplitPath(args[0])
			if selector != "" && lines != "" {
				return console.Usagef("give the lines once: behind the file or with --lines")
			}
			if raw {
				selector += ":raw"
			}
			sel, err := notebook.ParseSelector(selector + lines)
			if err != nil {
				return err
			}
			var set *notebook.CellSet
			if cells != "" {
				if set, err = notebook.ParseCells(cells); err != nil {
					return err
				}
			}
			if sel.Raw && (outputs || set != nil) {
				return console.Usagef("--raw shows the JSON as it is, without --outputs and --cells")
			}
			read := a.lookAtCells
			if outputs || sel.Raw {
				read = a.readNotebook
			}
			d, err := read(ctx, path)
			if err != nil {
				return err
			}
			if err := set.Check(d.Len()); err != nil {
				return err
			}
			return a.showNotebook(d, sel, set, outputs, numbers, most)
		},
	}.Make()
	f := cmd.Flags()
	f.StringVarP(&lines, "lines", "l", "", "the lines to show, like behind the file")
	f.StringVar(&cells, "cells", "", "the cells to show: 3, 2-5, 7- or 0,2-5")
	f.BoolVar(&raw, "raw", false, "show the JSON as it is written")
	f.BoolVarP(&outputs, "outputs", "o", false, "show the outputs too, as text")
	f.IntVar(&most, "output-lines", 40, "at most so many lines of one output; 0: all")
	f.BoolVarP(&numbers, "numbers", "n", false, "show line numbers")
	return cmd
}

func (a *app) showNotebook(d *notebook.Document, sel notebook.Selector, set *notebook.CellSet, outputs, numbers bool, most int) error {
	style := a.Style(a.Out)
	var b strings.Builder
	flush := func(least int) {
		if b.Len() > least {
			a.Out.Print(b.String())
			b.Reset()
		}
	}
	write := func(number int, line string) {
		if numbers {
			prefix := "      "
			if number > 0 {
				prefix = fmt.Sprintf("%5d ", number)
			}
			b.WriteString(style.Quiet(prefix))
		}
		b.WriteString(line + "\n")
		flush(1 << 15)
	}
	last := -1
	ended := func() {
		if outputs && last >= 0 {
			for _, line := range outputLines(style, d.Cell(last), most) {
				write(0, line)
			}
		}
	}
	selected := false
	for line := range d.Select(sel) {
		if !selected && outputs && anyOutput(d, set) {
			write(0, style.Quiet(outputsHead))
		}
		selected = true
		if line.Cell >= 0 && !set.Contains(line.Cell) {
			continue
		}
		if line.Cell != last {
			ended()
			last = line.Cell
		}
		if line.Marker {
			write(line.Number, style.Strong(line.Text))
		} else {
			write(line.Number, style.Safe(line.Text))
		}
	}
	ended()
	flush(0)
	if !selected && len(sel.Ranges) > 0 {
		lines := 0
		for range d.Select(notebook.Selector{Raw: sel.Raw}) {
			lines++
		}
		return console.Usagef("nothing is selected: there are %s", render.Number(lines, "line"))
	}
	return nil
}

// anyOutput reports whether one of the cells has shown something.
func anyOutput(d *notebook.Document, set *notebook.CellSet) bool {
	for i, c := range d.Cells() {
		if set.Contains(i) && c.OutputCount() > 0 {
			return true
		}
	}
	return false
}

// outputLines is what a cell showed, as text.
func outputLines(s render.Style, c *notebook.Cell, most int) []string {
	var lines []string
	if c.Stale() {
		lines = append(lines, s.Quiet(outputPrefix)+"(stale: an earlier source made this)")
	}
	for _, o := range c.Outputs() {
		for _, line := range outputText(s, o, most) {
			lines = append(lines, strings.TrimRight(s.Quiet(outputPrefix)+line, " "))
		}
	}
	return lines
}

// cellRow is a cell in the list of cells; its JSON form is that of --json.
type cellRow struct {
	Index   int               `json:"index"`
	ID      string            `json:"id,omitempty"`
	Type    notebook.CellType `json:"type"`
	Count   *int              `json:"execution_count,omitempty"`
	Lines   int               `json:"lines"`
	Outputs int               `json:"outputs"`
	Stale   bool              `json:"stale,omitempty"`
	Tags    []string          `json:"tags,omitempty"`
	First   string            `json:"first_line"`
}

func (a *app) cellsCommand() *cobra.Command {
	var asJSON bool
	cmd := console.Command{
		Use: "cells FILE", Short: "List the cells",
		Long: "List the cells of a notebook: index, id, type, prompt number, lines, outputs, tags\nand first line.",
		Args: console.Arguments{Least: 1, Most: 1}, Errors: failure,
		Run: func(ctx context.Context, args []string) error {
			d, err := a.readNotebook(ctx, args[0])
			if err != nil {
				return err
			}
			rows := []cellRow{}
			for i, c := range d.Cells() {
				rows = append(rows, rowOf(i, c))
			}
			if asJSON {
				return a.WriteJSON(rows)
			}
			a.Out.Lines(cellTable(a.Style(a.Out), rows)...)
			return nil
		},
	}.Make()
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

func rowOf(i int, c *notebook.Cell) cellRow {
	source := c.Source()
	row := cellRow{Index: i, ID: c.ID(), Type: c.Type(), Lines: len(notebook.SplitLines(source)), Outputs: c.OutputCount(), Stale: c.Stale(), Tags: c.Tags(), First: firstLine(source)}
	if count, ok := c.ExecutionCount(); ok {
		row.Count = &count
	}
	return row
}

// firstLine is the first line of a source that says anything.
func firstLine(source string) string {
	for line := range strings.Lines(source) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}

func cellTable(s render.Style, rows []cellRow) []string {
	table := [][]string{{"cell", "id", "type", "run", "lines", "outputs", "first line"}}
	for _, r := range rows {
		run, outputs, first := "", "", r.First
		if r.Count != nil {
			run = "[" + strconv.Itoa(*r.Count) + "]"
		}
		if r.Outputs > 0 {
			outputs = strconv.Itoa(r.Outputs)
			if r.Stale {
				outputs += " stale"
			}
		}
		if len(r.Tags) > 0 {
			first = "(" + strings.Join(r.Tags, ", ") + ") " + first
		}
		table = append(table, []string{strconv.Itoa(r.Index), r.ID, string(r.Type), run, strconv.Itoa(r.Lines), outputs, render.OneLine(first)})
	}
	return render.Table(s, table, true)
}
