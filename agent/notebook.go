package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/coppice-run/coppice/notebook"
	"github.com/coppice-run/coppice/sinks/budget"
)

const notebookReadDescription = `Reads a Jupyter notebook (.ipynb) as text.

- Each cell begins with a marker line, "# %% [code] cell:3"; cells count from 0.
- outputs shows what cells have shown, in lines that begin with "#> "; they are no part of the source.
- What is too long is cut after a line; cells reads on: "12-".
- A path may end in lines of that text: "nb.ipynb:1-40", "nb.ipynb:3+7", "nb.ipynb:1-20,40-"; "nb.ipynb:raw" is the JSON, "nb.ipynb:raw:1-20" lines of it.`

const notebookEditDescription = `Edits a Jupyter notebook (.ipynb), cell by cell or as a whole. What is not edited stays as it is, outputs too.

- edits are made in order; cell is the index that notebook_read shows, also after cells above it were inserted or deleted.
- replace sets the source of a cell, and its type if one is given; insert makes a cell before the one named, or at the end; delete removes one.
- text is the whole notebook in the form of notebook_read: a marker with cell:N takes that cell along with its outputs, one without makes a new cell, a cell without a marker is deleted.
- A notebook that is not there is made. An edit that cannot be made changes nothing.`

// readCut is how much of a notebook one call shows, in bytes.
const readCut = budget.DefaultBytes

// outputMark begins the lines of outputs in the text of a notebook.
const outputMark = "#> "

// notebookTools are notebook_read and notebook_edit, and notebook_run where code
// may run.
func (k kit) notebookTools(mode Mode) []Tool {
	path := property{name: "path", schema: text("The notebook; relative to the working directory of the session."), required: true}
	cells := property{name: "cells", schema: text(`Which cells, by index: "3", "2-5", "7-" or "0,2-5"; all if it is left out.`)}
	flag := func(name, about string) property {
		return property{name: name, schema: map[string]any{"type": "boolean", "default": false, "description": about}}
	}
	edit := schema(
		property{name: "action", schema: map[string]any{"type": "string", "enum": []string{"replace", "insert", "delete"}, "description": "What to do."}, required: true},
		property{name: "cell", schema: map[string]any{"type": "integer", "minimum": 0, "description": "Index of the cell; insert puts the new one before it, or at the end without it."}},
		property{name: "source", schema: text("The source, for replace and insert.")},
		property{name: "type", schema: map[string]any{"type": "string", "enum": []string{"code", "markdown", "raw"}, "description": "Type of the cell; code for insert, as it was for replace."}},
	)
	tools := []Tool{{
		Name: "notebook_read", Label: "Read a notebook", Description: notebookReadDescription, ReadOnly: true,
		Schema: render(schema(path, cells, flag("outputs", "Show the outputs as text."))), call: callNotebookRead,
	}, {
		Name: "notebook_edit", Label: "Edit a notebook", Description: notebookEditDescription, Destructive: true,
		Schema: render(schema(path,
			property{name: "edits", schema: map[string]any{"type": "array", "minItems": 1, "items": edit, "description": "Edits of single cells."}},
			property{name: "text", schema: text("The whole notebook as text, in place of edits.")},
		)), call: callNotebookEdit,
	}}
	if mode == ModeBash {
		return tools
	}
	run := []property{
		path, cells, notebookLimits.property("timeout"), flag("allow_errors", "Go on after a cell that raises."), flag("reset", "Start a new kernel before the first cell."),
		{name: "parameters", schema: map[string]any{"type": "object", "description": "Values for the notebook's parameters, by name; they are put into a cell of their own."}},
	}
	if k.o.SessionArgument {
		run = append(run, property{name: "session", schema: text("Name of the session to run in; that of the conversation if it is left out.")})
	}
	return append(tools, Tool{
		Name: "notebook_run", Label: "Run a notebook", Description: notebookRunDescription, Destructive: true,
		Schema: render(schema(run...)), call: k.callNotebookRun,
	})
}

// notebookPath is where a call's notebook is.
func notebookPath(c Call, path *string) (string, error) {
	switch {
	case path == nil || *path == "":
		return "", &Error{Argument: "path", Problem: "is missing; pass the path of an .ipynb file"}
	case !notebook.IsPath(*path):
		return "", &Error{Argument: "path", Problem: fmt.Sprintf("%q is no notebook: its name must end in .ipynb", *path)}
	case filepath.IsAbs(*path):
		return filepath.Clean(*path), nil
	}
	cwd, err := workingDir(c.Session.Cwd) // a file belongs to no session: its name is not needed
	return filepath.Join(cwd, *path), err
}

// notebookProblem tells a model what is wrong with a notebook, or with what it
// said about it.
func notebookProblem(argument string, err error) error {
	var bad *notebook.Error
	var file *fs.PathError
	if errors.As(err, &bad) || errors.As(err, &file) {
		return &Error{Argument: argument, Problem: err.Error()}
	}
	return err
}

// cellsOf reads the argument cells.
func cellsOf(d *notebook.Document, cells string) (*notebook.CellSet, error) {
	if cells == "" {
		return nil, nil
	}
	set, err := notebook.ParseCells(cells)
	if err == nil {
		err = set.Check(d.Len())
	}
	return set, notebookProblem("cells", err)
}

func callNotebookRead(ctx context.Context, c Call) (Result, error) {
	var a struct {
		Path    *string `json:"path"`
		Cells   string  `json:"cells"`
		Outputs bool    `json:"outputs"`
	}
	if err := arguments(c, &a); err != nil {
		return Result{}, err
	}
	named, selected := cutSelector(a.Path)
	path, err := notebookPath(c, named)
	if err != nil {
		return Result{}, err
	}
	if selected != "" {
		return selectedLines(ctx, path, selected, a.Cells != "" || a.Outputs)
	}
	file, err := notebook.Open(ctx, path)
	if err != nil {
		return Result{}, notebookProblem("path", err)
	}
	set, err := cellsOf(file.Document, a.Cells)
	if err != nil {
		return Result{}, err
	}
	if file.Len() == 0 {
		return Result{Text: "The notebook has no cells."}, nil
	}
	return Result{Text: notebookText(file.Document, set, a.Outputs)}, nil
}

// selectedLines is the part of a notebook that a selector behind its path names, as much
// as one call shows.
func selectedLines(ctx context.Context, path, selected string, more bool) (Result, error) {
	if more {
		return Result{}, &Error{Argument: "path", Problem: fmt.Sprintf("cells and outputs do not go with lines (:%s); leave one of them out", selected)}
	}
	sel, err := notebook.ParseSelector(selected)
	if err != nil {
		return Result{}, notebookProblem("path", err)
	}
	file, err := notebook.Open(ctx, path)
	if err != nil {
		return Result{}, notebookProblem("path", err)
	}
	return Result{Text: linesOf(file, sel, readCut)}, nil
}

// notebookText is the view of chosen cells, as much as one call shows.
func notebookText(d *notebook.Document, set *notebook.CellSet, outputs bool) string {
	var b strings.Builder
	last, full := -1, false
	write := func(line string) {
		if full = full || b.Len()+len(line) > readCut && b.Len() > 0; !full {
			b.WriteString(line + "\n")
		}
	}
	for line := range d.Lines() {
		if line.Cell != last {
			if outputs && last >= 0 && set.Contains(last) {
				outputLines(d.Cell(last), write)
			}
			if full {
				break
			}
			last = line.Cell
		}
		if set.Contains(line.Cell) {
			write(line.Text)
		}
	}
	if outputs && last >= 0 && set.Contains(last) {
		outputLines(d.Cell(last), write)
	}
	text := strings.TrimSuffix(b.String(), "\n")
	if full {
		text += fmt.Sprintf("\n[cut in cell %d of %d: cells \"%d-\" reads on]", last, d.Len(), last)
	}
	return text
}

// outputLines writes what a cell has shown.
func outputLines(c *notebook.Cell, write func(string)) {
	if c.Stale() && c.OutputCount() > 0 {
		write(outputMark + "(stale: an earlier source made this)")
	}
	for _, o := range c.Outputs() {
		text := o.Text
		switch o.Type {
		case notebook.DisplayData, notebook.ExecuteResult:
			text = bundleText(o.Data)
		case notebook.ErrorOutput:
			text = o.EName + ": " + o.EValue
		case notebook.Stream:
		default:
			text = "[" + string(o.Type) + "]"
		}
		for line := range strings.Lines(strings.TrimSuffix(text, "\n")) {
			write(outputMark + strings.TrimRight(line, "\r\n"))
		}
	}
}

// bundleText is what a text shows of a bundle.
func bundleText(b notebook.Bundle) string {
	for _, mime := range []string{"text/markdown", "text/plain"} {
		if text, ok := b.Text(mime); ok {
			return text
		}
	}
	for mime := range b {
		if strings.HasPrefix(mime, "image/") {
			return "[" + mime + "]"
		}
	}
	return "[output]"
}

// notebookEdit is one edit of a call.
type notebookEdit struct {
	Action string  `json:"action"`
	Cell   *int    `json:"cell"`
	Source *string `json:"source"`
	Type   string  `json:"type"`
}

func callNotebookEdit(ctx context.Context, c Call) (Result, error) {
	var a struct {
		Path  *string        `json:"path"`
		Edits []notebookEdit `json:"edits"`
		Text  *string        `json:"text"`
	}
	if err := arguments(c, &a); err != nil {
		return Result{}, err
	}
	switch {
	case a.Text == nil && len(a.Edits) == 0:
		return Result{}, &Error{Argument: "edits", Problem: "is missing; pass a list of {action, cell, source, type}, or text"}
	case a.Text != nil && len(a.Edits) > 0:
		return Result{}, &Error{Argument: "text", Problem: "cannot go with edits; pass one of them"}
	}
	path, err := notebookPath(c, a.Path)
	if err != nil {
		return Result{}, err
	}
	file, err := notebook.OpenOrNew(ctx, path)
	if err != nil {
		return Result{}, notebookProblem("path", err)
	}
	var done []string
	if a.Text != nil {
		done, err = applyNotebookText(file, *a.Text)
	} else {
		done, err = applyNotebookEdits(file.Document, a.Edits)
	}
	if err != nil {
		return Result{}, err
	}
	written, err := file.Save(ctx)
	if err != nil {
		return Result{}, notebookProblem("path", err)
	}
	if !written {
		return Result{Text: "Nothing was to be changed."}, nil
	}
	done = append(done, fmt.Sprintf("The notebook now has %d cells.", file.Len()))
	return Result{Text: strings.Join(done, "\n")}, nil
}

func applyNotebookText(file *notebook.File, text string) ([]string, error) {
	if strings.TrimSpace(text) == "" && file.Len() > 0 {
		return nil, &Error{Argument: "text", Problem: fmt.Sprintf("is empty and would delete all %d cells; delete them by edits if that is meant", file.Len())}
	}
	report, err := file.ApplyText(text, &notebook.ApplyOptions{EditorNewline: true})
	if err != nil {
		return nil, notebookProblem("text", err)
	}
	edited, inserted := 0, 0
	for _, cell := range report.Cells {
		switch {
		case cell.Was < 0:
			inserted++
		case cell.Edited:
			edited++
		}
	}
	done := []string{fmt.Sprintf("Replaced %d, inserted %d, deleted %d cells.", edited, inserted, len(report.Deleted))}
	for _, line := range report.Doubtful {
		done = append(done, fmt.Sprintf("Line %d looks like a marker but is not one; it was taken as source.", line))
	}
	for _, m := range report.Unmatched {
		why := "which is not there"
		if m.Taken {
			why = "as a line above does"
		}
		done = append(done, fmt.Sprintf("Line %d names cell %d, %s; it made a new cell, without outputs, id and metadata.", m.Line, m.Index, why))
	}
	return done, nil
}

// applyNotebookEdits makes edits, whose cells are counted as the notebook is
// before the first of them. Nothing is saved after an error.
func applyNotebookEdits(d *notebook.Document, edits []notebookEdit) ([]string, error) {
	before, gone := d.Cells(), map[*notebook.Cell]bool{}
	var done []string
	for i, e := range edits {
		if field, problem := e.wrong(before, gone); problem != "" {
			return nil, &Error{Argument: fmt.Sprintf("edits[%d].%s", i, field), Problem: problem}
		}
		line, err := e.apply(d, before, gone)
		if err != nil {
			return nil, notebookProblem(fmt.Sprintf("edits[%d]", i), err)
		}
		done = append(done, line)
	}
	return done, nil
}

// wrong says which field of an edit cannot be, and why; "" when all can.
func (e notebookEdit) wrong(before []*notebook.Cell, gone map[*notebook.Cell]bool) (field, problem string) {
	switch e.Action {
	case "replace", "insert", "delete":
	default:
		return "action", fmt.Sprintf("%q is not one of replace, insert, delete", e.Action)
	}
	switch notebook.CellType(e.Type) {
	case "", notebook.Code, notebook.Markdown, notebook.Raw:
	default:
		return "type", fmt.Sprintf("%q is not one of code, markdown, raw", e.Type)
	}
	inserts := e.Action == "insert"
	switch {
	case e.Source == nil && e.Action != "delete":
		return "source", "is missing; pass the source of the cell"
	case e.Cell == nil && !inserts:
		return "cell", "is missing; pass the index that notebook_read shows"
	case e.Cell == nil || *e.Cell == len(before) && inserts:
		return "", ""
	case *e.Cell < 0 || *e.Cell >= len(before):
		return "cell", fmt.Sprintf("there is no cell %d: the notebook has %d cells, counted from 0", *e.Cell, len(before))
	case gone[before[*e.Cell]]:
		return "cell", fmt.Sprintf("cell %d was deleted by an edit above", *e.Cell)
	}
	return "", ""
}

// apply makes an edit that is not wrong, and says what was done.
func (e notebookEdit) apply(d *notebook.Document, before []*notebook.Cell, gone map[*notebook.Cell]bool) (done string, err error) {
	place := d.Len()
	if e.Cell != nil && *e.Cell < len(before) {
		place = d.Index(before[*e.Cell])
	}
	kind := notebook.CellType(e.Type)
	switch e.Action {
	case "insert":
		kind = cmp.Or(kind, notebook.Code)
		_, err = d.Insert(place, notebook.NewCell{Type: kind, Source: *e.Source})
		return fmt.Sprintf("Inserted a %s cell at %d.", kind, place), err
	case "replace":
		_, err = d.SetSource(notebook.At(place), *e.Source)
		if err == nil && kind != "" {
			_, err = d.SetType(notebook.At(place), kind)
		}
		return fmt.Sprintf("Replaced cell %d (%s).", *e.Cell, d.Cell(place).Type()), err
	default:
		gone[before[*e.Cell]] = true
		return fmt.Sprintf("Deleted cell %d (%s).", *e.Cell, before[*e.Cell].Type()), d.Delete(notebook.At(place))
	}
}
