package notebook

import (
	"regexp"
	"strings"
)

// Match is a place in a source that a search found.
type Match struct {
	// Cell is the cell's index.
	Cell int
	// Start and End are byte offsets into the cell's source.
	Start, End int
	// Line and Column are where the match starts, from 1; columns count bytes.
	Line, Column int
	// Text is the line it starts in, without its newline.
	Text string
}

// SearchOptions narrow a search. The zero value looks into every cell.
type SearchOptions struct {
	// Types are the cell types to look into; none means all.
	Types []CellType
	// Cells are the cells to look into; none means all.
	Cells []Ref
}

// Search finds a pattern in the sources. A literal text is searched for with
// regexp.QuoteMeta. opts may be nil.
func (d *Document) Search(pattern *regexp.Regexp, opts *SearchOptions) ([]Match, error) {
	cells, err := d.searched(opts)
	if err != nil {
		return nil, err
	}
	var found []Match
	for _, i := range cells {
		source := d.cells[i].Source()
		for _, at := range pattern.FindAllStringIndex(source, -1) {
			m := Match{Cell: i, Start: at[0], End: at[1]}
			lineStart := strings.LastIndexByte(source[:m.Start], '\n') + 1
			m.Line = 1 + strings.Count(source[:m.Start], "\n")
			m.Column = m.Start - lineStart + 1
			m.Text, _, _ = strings.Cut(source[lineStart:], "\n")
			found = append(found, m)
		}
	}
	return found, nil
}

// ReplaceAll replaces what a pattern matches in the sources, with $1 and the
// like as in regexp.Regexp.ReplaceAllString, and returns how many matches were
// replaced. What becomes of outputs is up to Document.Stale. opts may be nil.
func (d *Document) ReplaceAll(pattern *regexp.Regexp, with string, opts *SearchOptions) (int, error) {
	if err := checkText(with); err != nil {
		return 0, err
	}
	cells, err := d.searched(opts)
	if err != nil {
		return 0, err
	}
	replaced := 0
	for _, i := range cells {
		source := d.cells[i].Source()
		n := len(pattern.FindAllStringIndex(source, -1))
		if n == 0 {
			continue
		}
		replaced += n
		d.setSource(d.cells[i], pattern.ReplaceAllString(source, with))
	}
	return replaced, nil
}

// searched returns the indices of the cells to look into, in order.
func (d *Document) searched(opts *SearchOptions) ([]int, error) {
	if opts == nil {
		opts = &SearchOptions{}
	}
	types := make(map[CellType]bool)
	for _, t := range opts.Types {
		if err := checkType(t); err != nil {
			return nil, err
		}
		types[t] = true
	}
	named := make(map[int]bool)
	for _, ref := range opts.Cells {
		i, err := d.find(ref)
		if err != nil {
			return nil, err
		}
		named[i] = true
	}
	var cells []int
	for i, c := range d.cells {
		if (len(types) == 0 || types[c.typ]) && (len(opts.Cells) == 0 || named[i]) {
			cells = append(cells, i)
		}
	}
	return cells, nil
}
