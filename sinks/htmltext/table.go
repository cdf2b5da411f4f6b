package htmltext

import (
	"strconv"
	"strings"
)

const (
	// maxColumns is how many columns of a table are shown.
	maxColumns = 500
	// maxCells bounds the empty cells that spans add.
	maxCells = 1 << 17
)

// table is a table as it is read.
type table struct {
	rows    [][]string
	header  int // leading rows that hold column heads
	width   int
	filled  int   // cells that spans added
	pending []int // for each column, how many rows a span above still takes
}

// table renders a table as a pipe table. A table of one cell is a layout, and
// gives its contents.
func (r *renderer) table(n *node) []blockText {
	if r.cell {
		return []blockText{{text: r.line(n)}}
	}
	if only := n.onlyCell(); only != nil {
		return r.blocks(only)
	}
	t := &table{}
	var out []blockText
	r.cell = true
	r.rows(n, t, false, &out)
	r.cell = false
	if t.width == 0 {
		return out
	}
	return append(out, blockText{text: t.String()})
}

// onlyCell returns the cell of a table that has one, nil for other tables.
func (n *node) onlyCell() *node {
	var found *node
	count := 0
	var walk func(*node)
	walk = func(n *node) {
		for _, c := range n.children {
			switch {
			case c.is("td", "th", "caption"):
				found = c
				count++
			case c.is("thead", "tbody", "tfoot", "tr"):
				walk(c)
			}
			if count > 1 {
				return
			}
		}
	}
	walk(n)
	if count != 1 || found.tag != "td" {
		return nil
	}
	return found
}

// rows reads the rows of a table or of one of its sections.
func (r *renderer) rows(n *node, t *table, head bool, out *[]blockText) {
	for _, c := range n.children {
		if !c.shown() {
			continue
		}
		switch c.tag {
		case "caption":
			if text := r.line(c); text != "" {
				*out = append(*out, blockText{text: text})
			}
		case "thead":
			r.rows(c, t, true, out)
		case "tbody", "tfoot":
			r.rows(c, t, false, out)
		case "tr":
			r.row(c, t, head)
		case "td", "th": // a cell without a row
			r.row(&node{tag: "tr", children: []*node{c}}, t, head)
		}
	}
}

// row reads one row.
func (r *renderer) row(n *node, t *table, head bool) {
	var cells []string
	heads, all := 0, 0
	add := func(text string, rows int) {
		if len(cells) >= maxColumns {
			return
		}
		for len(t.pending) <= len(cells) {
			t.pending = append(t.pending, 0)
		}
		t.pending[len(cells)] = rows - 1
		cells = append(cells, text)
	}
	spanned := func() {
		for len(cells) < len(t.pending) && t.pending[len(cells)] > 0 && t.filled < maxCells {
			t.pending[len(cells)]--
			t.filled++
			cells = append(cells, "")
		}
	}
	for _, c := range n.children {
		if !c.is("td", "th") || !c.shown() {
			continue
		}
		all++
		if c.tag == "th" {
			heads++
		}
		spanned()
		rows := span(c.attr().rowspan)
		add(cellText(r.line(c)), rows)
		for i := 1; i < span(c.attr().colspan) && t.filled < maxCells; i++ {
			t.filled++
			add("", rows)
		}
	}
	spanned()
	if all == 0 {
		return
	}
	if (head || heads == all) && t.header == len(t.rows) {
		t.header++
	}
	t.width = max(t.width, len(cells))
	t.rows = append(t.rows, cells)
}

// span reads a colspan or a rowspan.
func span(s string) int {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < 1 {
		return 1
	}
	return min(n, 1000)
}

func cellText(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", `\|`)
}

// String returns the pipe table. Its first row is the head, as the form wants
// it; a table without column heads gets empty ones.
func (t *table) String() string {
	rows := t.rows
	head := make([]string, 0, t.width)
	if t.header > 0 {
		head, rows = rows[0], rows[1:]
	}
	var b strings.Builder
	t.write(&b, head, "")
	b.WriteByte('\n')
	t.write(&b, nil, "---")
	for _, row := range rows {
		b.WriteByte('\n')
		t.write(&b, row, "")
	}
	return b.String()
}

// write writes one row; cells that are missing are filled with fill. A row is
// not filled up once the table has had its share of empty cells.
func (t *table) write(b *strings.Builder, cells []string, fill string) {
	b.WriteByte('|')
	for i := range t.width {
		text := fill
		if i < len(cells) {
			text = cells[i]
		} else if fill == "" {
			if t.filled >= maxCells {
				return
			}
			t.filled++
		}
		if text == "" {
			b.WriteString("  |")
			continue
		}
		b.WriteByte(' ')
		b.WriteString(text)
		b.WriteString(" |")
	}
}
