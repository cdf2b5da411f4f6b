package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
	"github.com/coppice-run/coppice/notebook/run"
)

// readCells returns the cells of a command line: those of -c first, then those
// of the file, which is a Python script, a notebook, or "-" for a script on
// standard input.
func (a *app) readCells(ctx context.Context, code []string, file string) ([]messages.Cell, error) {
	cells := make([]messages.Cell, 0, len(code))
	for _, c := range code {
		cells = append(cells, messages.Cell{Code: c})
	}
	if file == "" {
		if len(cells) == 0 {
			return nil, console.Usagef("nothing to run: give -c CODE, a FILE.py or FILE.ipynb, or - for standard input")
		}
		return cells, nil
	}
	more, err := a.readFile(ctx, file)
	if err != nil {
		return nil, err
	}
	return append(cells, more...), nil
}

func (a *app) readFile(ctx context.Context, name string) ([]messages.Cell, error) {
	switch {
	case name == "-":
		text, err := a.ReadInput()
		if err != nil {
			return nil, console.Usagef("read standard input: %w", err)
		}
		return scriptCells("standard input", text)
	case notebook.IsPath(name):
		return notebookCells(ctx, name)
	case isDir(name):
		return nil, console.Usagef("%s is a folder; name a .py or .ipynb file in it", name)
	case !strings.EqualFold(filepath.Ext(name), ".py"):
		return nil, console.Usagef("%s is neither a .py nor an .ipynb file; code goes after -c, standard input is -", name)
	}
	text, err := file.Read(ctx, name, console.MaxSource)
	if err != nil {
		return nil, console.UsageError{Err: err}
	}
	return scriptCells(name, string(text))
}

func isDir(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.IsDir()
}

// firstInvalid is where the first byte is that is no UTF-8.
func firstInvalid(text string) int {
	for i, r := range text {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
				return i
			}
		}
	}
	return len(text)
}

// scriptCells splits a script at its "# %%" lines. Markdown cells are left out:
// there is nothing in them to run.
func scriptCells(name, source string) ([]messages.Cell, error) {
	if !utf8.ValidString(source) {
		return nil, console.Usagef("%s is not UTF-8 text, at byte %d; save it as UTF-8 (iconv -f latin1 -t utf-8), or name a Python file", name, firstInvalid(source))
	}
	text, err := notebook.ParseText(source, notebook.FormatPercent)
	if err != nil {
		return nil, console.Usagef("%s: %w", name, err)
	}
	var cells []messages.Cell
	some := false
	for _, c := range text.Cells {
		if c.Type != notebook.Code {
			continue
		}
		some = some || strings.TrimSpace(c.Source) != ""
		var m struct {
			Title string `json:"title"`
		}
		if len(c.Metadata) > 0 && json.Unmarshal(c.Metadata, &m) != nil {
			m.Title = "" // a title that is no text is not shown
		}
		cells = append(cells, messages.Cell{Title: m.Title, Code: c.Source})
	}
	if !some {
		return nil, console.Usagef("%s has no code", name)
	}
	return cells, nil
}

// notebookCells returns the cells of a notebook file that a run of it runs. Each
// is titled with its place in the document.
func notebookCells(ctx context.Context, file string) ([]messages.Cell, error) {
	doc, err := notebook.Open(ctx, file)
	if err != nil {
		return nil, console.UsageError{Err: err}
	}
	if err := run.Check(doc.Document); err != nil {
		return nil, console.Usagef("%s: %w", file, err)
	}
	var cells []messages.Cell
	for i, c := range doc.Cells() {
		if run.Runnable(c) {
			cells = append(cells, messages.Cell{Title: fmt.Sprintf("cell %d", i), Code: c.Source()})
		}
	}
	if len(cells) == 0 {
		return nil, console.Usagef("%s has no code", file)
	}
	return cells, nil
}
