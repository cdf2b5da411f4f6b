package sanitise

import "unicode/utf8"

// MaxRow is how many columns of the last row can still be overwritten. What is
// further left is fixed, as it is on a terminal whose rows are that wide: a
// longer line continues on the next row.
const MaxRow = 4096

const (
	tabStop = 8
	// maxJump is how far past the end of a row the cursor may be put, so that
	// a few bytes of control sequence do not make thousands of blanks.
	maxJump  = 256
	maxMarks = 32 // bytes of combining marks in one cell
	// filler is the rune of a cell that belongs to the character before it:
	// the right half of a wide one, the rest of a tab.
	filler = -1
)

// cell is one column of a row.
type cell struct {
	r     rune // 0: nothing was written here; filler
	marks string
}

// row is the last line of a screen. While output only goes forward, which is
// nearly always, it is a plain buffer with the cursor at its end, or at its
// start after a carriage return. The first character that overwrites something
// turns it into cells.
type row struct {
	buf   []byte
	start bool // the cursor is at the start of buf, not at its end
	grid  bool // cells and cur hold the row, not buf
	cells []cell
	cur   int
}

// put writes a run of printable text and returns the committed part of the row
// in dst, if the row grew past MaxRow.
func (w *row) put(dst []byte, s string) []byte {
	if w.start && len(w.buf) > 0 && !w.grid {
		w.toGrid()
		w.cur = 0
	}
	w.start = false
	for len(s) > 0 {
		if w.grid {
			var size int
			dst, size = w.putRune(dst, s)
			s = s[size:]
			continue
		}
		n := MaxRow - len(w.buf)
		if n >= len(s) {
			w.buf = append(w.buf, s...)
			n = len(s)
		} else {
			for n > 0 && !utf8.RuneStart(s[n]) {
				n--
			}
			dst = append(dst, w.buf...)
			dst = append(dst, s[:n]...)
			w.buf = w.buf[:0]
		}
		s = s[n:]
	}
	return dst
}

// putRune writes the first character of s at the cursor of a grid.
func (w *row) putRune(dst []byte, s string) ([]byte, int) {
	r, size := utf8.DecodeRuneInString(s)
	n := columns(r)
	if n == 0 {
		w.mark(s[:size])
		return dst, size
	}
	next := w.cur + n
	if r == '\t' {
		next = (w.cur/tabStop + 1) * tabStop
	}
	if next > w.width() {
		dst = w.appendTo(dst, false)
		w.reset()
		return w.put(dst, s[:size]), size
	}
	if r == '\t' {
		w.tab(next)
		return dst, size
	}
	for i := range n {
		w.clear(w.cur + i)
	}
	w.cells[w.cur].r = r
	if n == 2 {
		w.cells[w.cur+1].r = filler
	}
	w.cur += n
	return dst, size
}

// clear makes column i exist and blank, and what the character there leaves of
// itself in other columns.
func (w *row) clear(i int) {
	for len(w.cells) <= i {
		w.cells = append(w.cells, cell{})
	}
	if w.cells[i].r == filler {
		j := i
		for ; w.cells[j].r == filler; j-- {
			w.cells[j] = cell{r: ' '}
		}
		w.cells[j] = cell{r: ' '}
	}
	for j := i + 1; j < len(w.cells) && w.cells[j].r == filler; j++ {
		w.cells[j] = cell{r: ' '}
	}
	w.cells[i] = cell{}
}

// tab moves to the column stop. Past the end of the row it is kept as a
// character, so that tab-separated text stays what it is.
func (w *row) tab(stop int) {
	if w.cur == len(w.cells) {
		w.cells = append(w.cells, cell{r: '\t'})
		for len(w.cells) < stop {
			w.cells = append(w.cells, cell{r: filler})
		}
	}
	w.cur = stop
}

// width is how many columns the row may have: MaxRow, or what it had when it
// became a grid, since a tab is one byte and up to eight columns.
func (w *row) width() int { return max(MaxRow, len(w.cells)) }

// mark joins a combining mark to the character before the cursor.
func (w *row) mark(s string) {
	i := min(w.cur, len(w.cells)) - 1
	for i > 0 && w.cells[i].r == filler {
		i--
	}
	if i < 0 || len(w.cells[i].marks)+len(s) > maxMarks {
		return
	}
	w.cells[i].marks += s
}

// back moves the cursor one column to the left.
func (w *row) back() {
	if w.start || !w.grid && len(w.buf) == 0 {
		return
	}
	if !w.grid {
		w.toGrid()
	}
	w.cur = max(w.cur-1, 0)
}

// home moves the cursor to the first column.
func (w *row) home() {
	w.cur, w.start = 0, true
	if w.grid {
		w.start = false
	}
}

// toGrid turns the buffer into cells, with the cursor at their end.
func (w *row) toGrid() {
	w.start, w.grid = false, true
	w.cells, w.cur = w.cells[:0], 0
	for text := w.buf; len(text) > 0; {
		r, size := utf8.DecodeRune(text)
		switch n := columns(r); {
		case r == '\t':
			w.tab((w.cur/tabStop + 1) * tabStop)
		case n == 0:
			w.mark(string(text[:size]))
		default:
			w.cells = append(w.cells, cell{r: r})
			if n == 2 {
				w.cells = append(w.cells, cell{r: filler})
			}
			w.cur += n
		}
		text = text[size:]
	}
	w.buf = w.buf[:0]
}

// move puts the cursor in column to.
func (w *row) move(to int) {
	if !w.grid {
		if to == 0 {
			w.home()
			return
		}
		w.toGrid()
	}
	w.cur = min(max(to, 0), w.width()-1, len(w.cells)+maxJump)
}

// column returns where the cursor is.
func (w *row) column() int {
	if w.grid {
		return w.cur
	}
	if w.start {
		return 0
	}
	w.toGrid()
	return w.cur
}

// erase clears the columns from the cursor on, or all of them.
func (w *row) erase(all bool) {
	switch {
	case !w.grid && w.start:
		w.buf = w.buf[:0]
	case !w.grid && (!all || len(w.buf) == 0):
		// Nothing is to the right of the cursor.
	case !all:
		if w.cur < len(w.cells) {
			w.clear(w.cur)
			w.cells = w.cells[:w.cur]
		}
	default:
		if !w.grid {
			w.toGrid()
		}
		w.cells = w.cells[:0]
	}
}

// appendTo appends the row as text to dst. Blanks at the end of a row that was
// overwritten cannot be seen; trim leaves them out.
func (w *row) appendTo(dst []byte, trim bool) []byte {
	if !w.grid {
		return append(dst, w.buf...)
	}
	end := len(w.cells)
	for trim && end > 0 && w.cells[end-1].marks == "" && (w.cells[end-1].r == 0 || w.cells[end-1].r == ' ') {
		end--
	}
	for _, c := range w.cells[:end] {
		switch c.r {
		case filler:
		case 0:
			dst = append(dst, ' ')
		default:
			dst = utf8.AppendRune(dst, c.r)
		}
		dst = append(dst, c.marks...)
	}
	return dst
}

// reset empties the row.
func (w *row) reset() {
	w.buf, w.start, w.grid, w.cells, w.cur = w.buf[:0], false, false, w.cells[:0], 0
}

// empty reports whether the row shows nothing.
func (w *row) empty() bool {
	if !w.grid {
		return len(w.buf) == 0
	}
	return len(w.appendTo(nil, true)) == 0
}
