package notebook

import (
	"strconv"
	"strings"
)

// A marker line of the text view is, as a whole line,
//
//	# %% [code|markdown|raw]( cell:N)?
//
// with nothing before or after. A line of a source that has this shape, or has
// it with more percent signs, is shown with one percent sign more; reading
// takes it away again. So every source survives.
//
// A carriage return at the end does not count: text from an editor that ends
// lines with CRLF has one there.

const markerStart = "# %%"

// marker is a line of marker shape, taken apart.
type marker struct {
	// extra counts the percent signs beyond two; with any, the line is an
	// escaped line of a source.
	extra int
	typ   CellType
	// index is the N of cell:N, -1 when there is none or it is beyond int.
	index int
	// numbered says that cell:N was there.
	numbered bool
}

// parseMarker reads a line without its newline.
func parseMarker(line string) (marker, bool) {
	rest, ok := strings.CutPrefix(line, markerStart)
	if !ok {
		return marker{}, false
	}
	rest = strings.TrimSuffix(rest, "\r")
	m := marker{index: -1}
	for strings.HasPrefix(rest, "%") {
		rest = rest[1:]
		m.extra++
	}
	rest, ok = strings.CutPrefix(rest, " [")
	if !ok {
		return marker{}, false
	}
	name, rest, ok := strings.Cut(rest, "]")
	m.typ = CellType(name)
	if !ok || !m.typ.Valid() {
		return marker{}, false
	}
	if rest == "" {
		return m, true
	}
	number, ok := strings.CutPrefix(rest, " cell:")
	if !ok || number == "" || strings.Trim(number, "0123456789") != "" {
		return marker{}, false
	}
	m.numbered = true
	if i, err := strconv.Atoi(number); err == nil {
		m.index = i
	}
	return m, true
}

func (m marker) String() string {
	s := markerStart + strings.Repeat("%", m.extra) + " [" + string(m.typ) + "]"
	if m.numbered {
		s += " cell:" + strconv.Itoa(m.index)
	}
	return s
}

// escapeLine returns a line of a source as the text view shows it.
func escapeLine(line string) string {
	if _, ok := parseMarker(line); ok {
		return markerStart + "%" + line[len(markerStart):]
	}
	return line
}

// unescapeLine undoes escapeLine.
func unescapeLine(line string) string {
	if m, ok := parseMarker(line); ok && m.extra > 0 {
		return markerStart + line[len(markerStart)+1:]
	}
	return line
}

// doubtful reports whether a line is no marker but may have been meant as one:
// "#%% [code]", "# %% [Code]", "# %% [code] cell:1 " with a space at the end.
func doubtful(line string) bool {
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), "#")
	if !ok {
		return false
	}
	rest, ok = strings.CutPrefix(strings.TrimSpace(rest), "%%")
	if !ok {
		return false
	}
	name, _, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(rest), "["), "]")
	if !ok || !CellType(strings.ToLower(strings.TrimSpace(name))).Valid() {
		return false
	}
	_, isMarker := parseMarker(line)
	return !isMarker
}
