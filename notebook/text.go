package notebook

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// TextFormat is a way to write a notebook as text.
type TextFormat int

const (
	// FormatAuto is FormatPercent for text that can only be that: it begins
	// with a cell line or a header of the percent format and has no cell:N
	// marker. Everything else is FormatCells.
	FormatAuto TextFormat = iota
	// FormatCells is the view of this package, [Document.Text].
	FormatCells
	// FormatPercent is the percent format of Jupytext, Spyder and VS Code, for
	// languages whose comments begin with "#".
	FormatPercent
)

// Text is a text that was read, and not yet applied to a notebook.
type Text struct {
	// Format is FormatCells or FormatPercent.
	Format TextFormat
	Cells  []TextCell
	// Metadata is what the header of a percent text says about the notebook: a
	// JSON object with kernelspec, or nil.
	Metadata json.RawMessage
	// Doubtful are the numbers of lines, from 1, that look as if a marker was
	// meant but are not, such as "#%% [code]", which were read as content; in a
	// percent text, of markers with metadata that nbformat does not allow, which
	// was left out.
	Doubtful []int
	// CRLF says that the lines of the text ended with carriage return and
	// newline. The sources here have newlines alone.
	CRLF bool
}

// TextCell is one cell of a text.
type TextCell struct {
	Type   CellType
	Source string
	// Index is the N of cell:N, the cell of the original that this one goes
	// back to; -1 when the marker has none.
	Index int
	// Line is the number of the marker line, from 1; 0 when there was none.
	Line int
	// Metadata are the members that a percent marker gives the cell, its title
	// among them: a JSON object, or nil.
	Metadata json.RawMessage
}

// ParseText reads text that was written or edited by a person or a program. A
// byte order mark and CRLF line ends are accepted. The error is of kind
// ErrText.
func ParseText(text string, format TextFormat) (*Text, error) {
	if !utf8.ValidString(text) {
		return nil, fault(ErrText, "the text is not UTF-8")
	}
	text = strings.TrimPrefix(text, string(utf8BOM))
	t := &Text{}
	// The view never ends its first marker with a carriage return, whatever
	// the sources hold. One there means that an editor put one everywhere.
	if first, _, _ := strings.Cut(text, "\n"); strings.HasSuffix(first, "\r") {
		t.CRLF = true
		text = strings.ReplaceAll(text, "\r\n", "\n")
	}
	if format == FormatPercent || format == FormatAuto && looksPercent(text) {
		t.Format = FormatPercent
		t.readPercent(text)
		return t, nil
	}
	t.Format = FormatCells
	if err := t.readCells(text); err != nil {
		return nil, err
	}
	return t, nil
}

// readCells reads the view: a marker, the lines of its source, and so on.
func (t *Text) readCells(text string) error {
	if text == "" {
		return nil
	}
	var source []string
	finish := func() {
		if n := len(t.Cells); n > 0 {
			t.Cells[n-1].Source = strings.Join(source, "\n")
			source = source[:0]
		}
	}
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		if m, ok := parseMarker(line); ok && m.extra == 0 {
			finish()
			t.Cells = append(t.Cells, TextCell{Type: m.typ, Index: m.index, Line: number})
			continue
		}
		if number == 1 {
			return fault(ErrText, `expected first line to be "# %%%% [code] cell:0", "# %%%% [markdown] cell:0", or "# %%%% [raw] cell:0".`)
		}
		if doubtful(line) {
			t.Doubtful = append(t.Doubtful, number)
		}
		source = append(source, unescapeLine(line))
	}
	finish()
	return nil
}
