package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/notebook"
)

// outputPrefix stands before each line of an output that is shown as text.
const outputPrefix = "#> "

func (a *app) nbShowCommand() *cobra.Command {
	var (
		lines, cells          string
		raw, outputs, numbers bool
		most                  int
	)
	cmd := nbCommand("show FILE[:LINES]", "Show a notebook as text",
		`Show the editable text of a notebook, or some of its lines:

  12  3-9  3+7 (seven lines)  40-  -20  1-20,40-  raw (the JSON)  raw:1-20

With --outputs, what cells showed stands below each, behind "#> ". That is for
reading: text with it is not what apply takes.`,
		`  coppice notebook show report.ipynb
  coppice notebook show report.ipynb:1-20,40-
  coppice notebook show report.ipynb --cells 3-5 --outputs`, 1, 1,
		func(ctx context.Context, args []string) error {
			path, selector := notebook.SplitPath(args[0])
			if selector != "" && lines != "" {
				return usagef("give the lines once: behind the file or with --lines")
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
				return usagef("--raw shows the JSON as it is, without --outputs and --cells")
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
			a.showNotebook(d, sel, set, outputs, numbers, most)
			return nil
		})
	f := cmd.Flags()
	f.StringVarP(&lines, "lines", "l", "", "the lines to show, like behind the file")
	f.StringVar(&cells, "cells", "", "the cells to show: 3, 2-5, 7- or 0,2-5")
	f.BoolVar(&raw, "raw", false, "show the JSON as it is written")
	f.BoolVarP(&outputs, "outputs", "o", false, "show the outputs too, as text")
	f.IntVar(&most, "output-lines", 40, "at most so many lines of one output; 0: all")
	f.BoolVarP(&numbers, "numbers", "n", false, "show line numbers")
	return cmd
}

func (a *app) showNotebook(d *notebook.Document, sel notebook.Selector, set *notebook.CellSet, outputs, numbers bool, most int) {
	style := a.style(a.out)
	var b strings.Builder
	flush := func(least int) {
		if b.Len() > least {
			a.out.print(b.String())
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
		a.err.lines("coppice: nothing is selected: there are " + render.Number(lines, "line"))
	}
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

func (a *app) nbCellsCommand() *cobra.Command {
	var asJSON bool
	cmd := nbCommand("cells FILE", "List the cells", "List the cells of a notebook: index, id, type, prompt number, lines, outputs, tags\nand first line.", "", 1, 1,
		func(ctx context.Context, args []string) error {
			d, err := a.readNotebook(ctx, args[0])
			if err != nil {
				return err
			}
			rows := []cellRow{}
			for i, c := range d.Cells() {
				rows = append(rows, rowOf(i, c))
			}
			if asJSON {
				return a.writeJSON(rows)
			}
			a.out.lines(cellTable(a.style(a.out), rows)...)
			return nil
		})
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

func (a *app) nbSearchCommand() *cobra.Command {
	var literal, asJSON bool
	cmd := nbCommand("search FILE PATTERN", "Find a regular expression in the sources",
		"Find a regular expression (Go's syntax) in the sources of all cells. The exit code\nis 1 when nothing matches.", "", 2, 2,
		func(ctx context.Context, args []string) error {
			pattern, err := compile(args[1], literal)
			if err != nil {
				return err
			}
			d, err := a.readNotebook(ctx, args[0])
			if err != nil {
				return err
			}
			matches, err := d.Search(pattern, nil)
			if err != nil {
				return err
			}
			for _, m := range matches {
				if asJSON {
					err = a.writeJSON(map[string]any{"cell": m.Cell, "line": m.Line, "column": m.Column, "text": m.Text})
				} else {
					a.out.lines(fmt.Sprintf("cell:%d:%d:%d: %s", m.Cell, m.Line, m.Column, m.Text))
				}
				if err != nil {
					return err
				}
			}
			if len(matches) == 0 {
				return &codeError{code: codeRaised}
			}
			return nil
		})
	cmd.Flags().BoolVarP(&literal, "literal", "F", false, "the pattern is a text, no expression")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each match as a line of JSON")
	return cmd
}

func compile(pattern string, literal bool) (*regexp.Regexp, error) {
	if literal {
		pattern = regexp.QuoteMeta(pattern)
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, usageError{fmt.Errorf("pattern: %w", err)}
	}
	return re, nil
}

func (a *app) nbValidateCommand() *cobra.Command {
	var asJSON bool
	cmd := nbCommand("validate FILE...", "Check notebooks against the rules of their format",
		"Check notebooks against the rules of their nbformat: those of the official\nschemas, and that ids are unique. Problems are told with their path. - is standard\ninput. The exit code is 1 when there is an error.", "", 1, -1,
		func(ctx context.Context, args []string) error {
			wrong := false
			for _, path := range args {
				problems, err := a.problems(ctx, path)
				if err != nil {
					return err
				}
				if asJSON {
					list := []map[string]any{}
					for _, p := range problems {
						list = append(list, map[string]any{"severity": p.Severity, "path": p.Path, "reason": p.Reason, "cell": p.Cell})
					}
					if err := a.writeJSON(map[string]any{"file": path, "problems": list}); err != nil {
						return err
					}
				}
				for _, p := range problems {
					wrong = wrong || p.Severity == notebook.SeverityError
					if !asJSON {
						a.out.lines(path + ": " + p.String())
					}
				}
				if len(problems) == 0 && !asJSON {
					a.out.lines(path + ": valid")
				}
			}
			if wrong {
				return &codeError{code: codeRaised}
			}
			return nil
		})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print an object for each file")
	return cmd
}

// problems are what is wrong with a file; one that cannot be read as a notebook
// has one.
func (a *app) problems(ctx context.Context, path string) ([]notebook.Problem, error) {
	d, err := a.readNotebook(ctx, path)
	if err == nil {
		return d.Validate(), nil
	}
	for _, kind := range []error{notebook.ErrInvalidJSON, notebook.ErrStructure, notebook.ErrCell, notebook.ErrVersion} {
		if errors.Is(err, kind) {
			return []notebook.Problem{{Severity: notebook.SeverityError, Path: "$", Reason: err.Error(), Cell: -1}}, nil
		}
	}
	return nil, err
}

func (a *app) nbDiffCommand() *cobra.Command {
	var asJSON bool
	cmd := nbCommand("diff OLD NEW", "Compare two notebooks, cell by cell",
		"Compare two notebooks. Cells are matched by id, or by what they hold; moved cells\nare told as moved. - is standard input. The exit code is 1 when they differ.", "", 2, 2,
		func(ctx context.Context, args []string) error {
			before, err := a.readNotebook(ctx, args[0])
			if err != nil {
				return err
			}
			after, err := a.readNotebook(ctx, args[1])
			if err != nil {
				return err
			}
			diff := notebook.Diff(before, after)
			if asJSON {
				if err := a.writeJSON(diffJSON(diff)); err != nil {
					return err
				}
			} else {
				for line := range strings.Lines(diff.String()) {
					a.out.print(a.style(a.out).DiffLine(strings.TrimSuffix(line, "\n")) + "\n")
				}
			}
			if !diff.Empty() {
				return &codeError{code: codeRaised}
			}
			return nil
		})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// diffJSON is a comparison as --json shows it: lines begin with what diff(1)
// writes before them.
func diffJSON(diff *notebook.Difference) map[string]any {
	cells := []map[string]any{}
	for _, c := range diff.Cells {
		lines := make([]string, len(c.Lines))
		for i, l := range c.Lines {
			lines[i] = string(l.Op) + l.Text
		}
		cells = append(cells, map[string]any{
			"old": c.Old, "new": c.New, "id": c.ID, "type": c.Type, "old_type": c.OldType, "lines": lines,
			"source": c.Source, "outputs": c.Outputs, "execution_count": c.Count, "metadata": c.Metadata, "attachments": c.Attachments, "moved": c.Moved,
		})
	}
	return map[string]any{"cells": cells, "metadata": append([]string{}, diff.Metadata...), "nbformat": diff.Version}
}

// rawJSON reads a value of the command line: JSON, or else the text itself.
func rawJSON(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return notebook.TextValue(text)
}
