package notebook

import (
	"bytes"
	"iter"
	"path/filepath"
	"strings"
)

// IsPath reports whether a path names a notebook: its extension is .ipynb, in
// upper or lower case.
func IsPath(path string) bool { return strings.EqualFold(filepath.Ext(path), ".ipynb") }

// Line is a line of the text view.
type Line struct {
	// Number counts from 1.
	Number int
	// Text is the line without its newline.
	Text string
	// Cell is the index of the cell that the line belongs to; -1 in a raw view.
	Cell int
	// Marker says that the line is the cell's marker.
	Marker bool
}

// Text returns the editable text of the whole notebook: for each cell its
// marker line and its source, joined with newlines. Reading it back with
// [Document.ApplyText] changes nothing, whatever the sources hold. A notebook
// without cells is an empty text.
func (d *Document) Text() string {
	var b strings.Builder
	for i, c := range d.cells {
		if i > 0 {
			b.WriteByte('\n')
		}
		c.writeText(&b, i)
	}
	return b.String()
}

func (c *Cell) writeText(b *strings.Builder, index int) {
	b.WriteString(marker{typ: c.typ, index: index, numbered: true}.String())
	source := c.Source()
	if source == "" {
		return
	}
	if !strings.Contains(source, markerStart) {
		b.WriteByte('\n')
		b.WriteString(source)
		return
	}
	for line := range strings.SplitSeq(source, "\n") {
		b.WriteByte('\n')
		b.WriteString(escapeLine(line))
	}
}

// Lines yields the lines of [Document.Text] one by one. A cell is decoded when
// its first line is asked for, so that reading the beginning of a large
// notebook costs little. An edit of the document ends the sequence's validity.
func (d *Document) Lines() iter.Seq[Line] {
	return func(yield func(Line) bool) {
		number := 0
		for i, c := range d.cells {
			number++
			if !yield(Line{Number: number, Text: marker{typ: c.typ, index: i, numbered: true}.String(), Cell: i, Marker: true}) {
				return
			}
			source := c.Source()
			if source == "" {
				continue
			}
			for line := range strings.SplitSeq(source, "\n") {
				number++
				if !yield(Line{Number: number, Text: escapeLine(line), Cell: i}) {
					return
				}
			}
		}
	}
}

// Select yields the lines that a selector names, in ascending order: of the
// text view, or with [Selector.Raw] of the JSON as it is written. It stops
// where the selector does.
func (d *Document) Select(sel Selector) iter.Seq[Line] {
	lines := d.Lines()
	if sel.Raw {
		lines = d.rawLines()
	}
	return func(yield func(Line) bool) {
		for line := range lines {
			switch sel.place(line.Number) {
			case selected:
				if !yield(line) {
					return
				}
			case beyond:
				return
			}
		}
	}
}

// rawLines yields the lines of the JSON.
func (d *Document) rawLines() iter.Seq[Line] {
	return func(yield func(Line) bool) {
		data := d.src
		if d.edited {
			data = d.Bytes()
		}
		number := 0
		for line := range bytes.Lines(data) {
			number++
			if !yield(Line{Number: number, Text: string(bytes.TrimSuffix(line, []byte("\n"))), Cell: -1}) {
				return
			}
		}
	}
}
