package notebook

import (
	"encoding/json"
	"slices"
	"strings"
)

// ApplyOptions say how edited text becomes edits. The zero value is exact.
type ApplyOptions struct {
	// Format is how the text is written.
	Format TextFormat
	// ClearOutputs removes the outputs of code cells whose source changed, in
	// this call, whatever Document.Stale says.
	ClearOutputs bool
	// EditorNewline says that the text comes from an editor that ends every
	// file with a newline. One at the end of the text is then dropped, unless
	// the last cell goes back to a cell whose source ended with one.
	EditorNewline bool
}

// ApplyReport tells what ApplyText did.
type ApplyReport struct {
	// Cells has an entry for each cell that the notebook has now, in order.
	Cells []AppliedCell
	// Deleted are the former indices of the cells that are gone.
	Deleted []int
	// Doubtful are the lines of the text that look like failed markers; see
	// [Text].
	Doubtful []int
	// Unmatched are the markers that name a cell which is not there, or which a
	// marker above names already: they made new cells, without what the cell has
	// that was perhaps meant. Of a notebook that had no cells none is told.
	Unmatched []UnmatchedMarker
}

// UnmatchedMarker is a marker whose cell:N goes back to no cell.
type UnmatchedMarker struct {
	// Line is the number of its line, from 1, and Index the N.
	Line, Index int
	// Taken says that there is such a cell, but that it went to a marker above.
	Taken bool
}

// AppliedCell tells what became of one cell.
type AppliedCell struct {
	// Was is the index of the cell before, -1 for a new one.
	Was int
	// Edited, Retyped and Moved say what changed. Cells between which others
	// were inserted or deleted have not moved.
	Edited, Retyped, Moved bool
	// Stale says that the cell's outputs were made by another source.
	Stale bool
}

// Changed reports whether the text changed anything.
func (r *ApplyReport) Changed() bool {
	return len(r.Deleted) > 0 || slices.ContainsFunc(r.Cells, func(c AppliedCell) bool {
		return c.Was < 0 || c.Edited || c.Retyped || c.Moved
	})
}

// ApplyText makes the notebook be what an edited text says.
//
//   - A marker with cell:N goes back to the cell that has index N before the
//     call, if no marker above it does already: the cell's id, metadata,
//     attachments and outputs stay, its type and source become the text's.
//   - Any other marker makes a new cell, with empty metadata.
//   - The order of the text is the new order. Cells without a marker are
//     deleted.
//   - Code cells have execution_count and outputs afterwards, and markdown and
//     raw cells have not.
//
// Cells of a percent text have no index; they go back to the cells that they
// resemble, and the metadata in their markers is added to the cell's.
//
// The error is of kind ErrText, and then nothing has changed. opts may be nil.
func (d *Document) ApplyText(text string, opts *ApplyOptions) (*ApplyReport, error) {
	var o ApplyOptions
	if opts != nil {
		o = *opts
	}
	t, err := ParseText(text, o.Format)
	if err != nil {
		return nil, err
	}
	if t.Format == FormatPercent {
		d.assignIndices(t.Cells)
	}
	if o.ClearOutputs {
		defer func(p StalePolicy) { d.Stale = p }(d.Stale)
		d.Stale = StaleClear
	}
	a := applier{doc: d, text: t, options: o, old: slices.Clone(d.cells), taken: make(map[int]bool), used: d.usedIDs()}
	return a.run()
}

// assignIndices gives the cells of a percent text the index of the cell that
// they resemble.
func (d *Document) assignIndices(cells []TextCell) {
	b := make([]sketch, len(cells))
	for i, c := range cells {
		b[i] = sketch{typ: c.Type, source: c.Source}
	}
	a := sketches(d.cells)
	for i := range a {
		// The format does not keep these newlines, so they tell nothing.
		a[i] = sketch{typ: a[i].typ, source: strings.TrimRight(a[i].source, "\n")}
	}
	for _, p := range align(a, b) {
		cells[p.b].Index = p.a
		if a[p.a].source == b[p.b].source {
			cells[p.b].Source = d.cells[p.a].Source()
		}
	}
}

// applier is one run of ApplyText.
type applier struct {
	doc     *Document
	text    *Text
	options ApplyOptions
	old     []*Cell
	taken   map[int]bool
	used    map[string]bool
}

func (a *applier) run() (*ApplyReport, error) {
	report := &ApplyReport{Doubtful: a.text.Doubtful}
	cells := make([]*Cell, 0, len(a.text.Cells))
	for i, tc := range a.text.Cells {
		was := tc.Index
		switch {
		case was < 0:
			was = -1
		case was >= len(a.old) || a.taken[was]:
			if len(a.old) > 0 {
				report.Unmatched = append(report.Unmatched, UnmatchedMarker{Line: tc.Line, Index: was, Taken: was < len(a.old)})
			}
			was = -1
		default:
			a.taken[was] = true
		}
		if i == len(a.text.Cells)-1 {
			tc.Source = a.lastSource(tc.Source, was)
		}
		c, done, err := a.cell(tc, was)
		if err != nil {
			return nil, err
		}
		cells = append(cells, c)
		report.Cells = append(report.Cells, done)
	}
	for i := range a.old {
		if !a.taken[i] {
			report.Deleted = append(report.Deleted, i)
		}
	}
	markMoved(report.Cells)
	a.doc.setCells(cells)
	a.kernelspec()
	return report, nil
}

// lastSource takes off the newline that an editor ended the file with.
func (a *applier) lastSource(source string, was int) string {
	if !a.options.EditorNewline || was >= 0 && strings.HasSuffix(a.old[was].Source(), "\n") {
		return source
	}
	return strings.TrimSuffix(source, "\n")
}

func (a *applier) cell(tc TextCell, was int) (*Cell, AppliedCell, error) {
	if was < 0 {
		c, err := a.doc.newCell(NewCell{Type: tc.Type, Source: tc.Source, Metadata: tc.Metadata}, a.used)
		return c, AppliedCell{Was: -1}, err
	}
	c := a.old[was]
	done := AppliedCell{Was: was, Retyped: c.typ != tc.Type}
	a.doc.setType(c, tc.Type)
	done.Edited = a.doc.setSource(c, a.restoreCRLF(c.Source(), tc.Source))
	a.addMetadata(c, tc.Metadata)
	done.Stale = c.Stale() || done.Edited && a.doc.Stale == StaleKeep && c.OutputCount() > 0
	return c, done, nil
}

// restoreCRLF gives the CRLF line ends back to a source that had them, when
// the whole text had such ends and they were taken off.
func (a *applier) restoreCRLF(was, source string) string {
	if !a.text.CRLF || !strings.Contains(was, "\r\n") {
		return source
	}
	if strings.ReplaceAll(was, "\r\n", "\n") == source {
		return was
	}
	if strings.Count(was, "\n") == strings.Count(was, "\r\n") {
		return strings.ReplaceAll(source, "\n", "\r\n")
	}
	return source
}

// addMetadata sets the members that a percent marker names.
func (a *applier) addMetadata(c *Cell, metadata json.RawMessage) {
	if metadata == nil {
		return
	}
	rawNode(metadata).each(func(_ int, key []byte, v *node) bool {
		if name := decodeString(key); !same(c.n.at("metadata", name), v) {
			a.doc.setMetadata(c, v, name)
		}
		return true
	})
}

// kernelspec takes the kernel from the header of a percent text when the
// notebook names none.
func (a *applier) kernelspec() {
	spec := json.RawMessage(nil)
	if a.text.Metadata != nil {
		spec, _ = rawValue(rawNode(a.text.Metadata).get("kernelspec"))
	}
	if _, have := a.doc.Metadata("kernelspec"); spec == nil || have {
		return
	}
	n := rawNode(spec)
	if n.get("name") == nil || n.get("display_name") == nil {
		return // nbformat wants both
	}
	a.doc.touch()
	setPath(a.doc.root, n, a.doc.style(), 0, []string{"metadata", "kernelspec"})
}

// markMoved finds the fewest cells that must have moved.
func markMoved(cells []AppliedCell) {
	var seq, place []int
	for i, c := range cells {
		if c.Was >= 0 {
			seq, place = append(seq, c.Was), append(place, i)
		}
	}
	stayed := increasing(seq)
	for i, p := range place {
		cells[p].Moved = !stayed[i]
	}
}
