package notebook

import (
	"regexp"
	"slices"
	"strings"
)

// fenceLine matches a line that opens or closes a block of markdown.
var fenceLine = regexp.MustCompile("^ {0,3}(`{3,}|~{3,})(.*)$")

// codeFence is what opens or closes a block; the zero value is none.
type codeFence struct {
	sign  byte
	count int
}

// fences follows the blocks in the cells of a script that are commented out.
type fences struct {
	open codeFence // of the block that is being read
	// never are the shortest fences, by their sign, that nothing further down closes, so
	// that each is looked for once.
	never map[byte]int
}

// reads reads the line at i of a script, in a cell that is commented out, and reports
// whether it belongs to a block: an opening, which is one only when there is an end to it
// further down, a closing, or what is between.
func (f *fences) reads(lines []string, i int) bool {
	if f.open.count > 0 {
		if f.open.closedBy(lines[i]) {
			f.open = codeFence{}
		}
		return true
	}
	opening, ok := openedBy(lines[i])
	if least, looked := f.never[opening.sign]; !ok || looked && opening.count >= least {
		return false
	}
	if !slices.ContainsFunc(lines[i+1:], opening.closedBy) {
		if f.never == nil {
			f.never = make(map[byte]int)
		}
		f.never[opening.sign] = opening.count
		return false
	}
	f.open = opening
	return true
}

// openedBy returns the fence that a line opens.
func openedBy(line string) (codeFence, bool) {
	m := fenceLine.FindStringSubmatch(uncomment([]string{line})[0])
	if m == nil || m[1][0] == '`' && strings.Contains(m[2], "`") {
		return codeFence{}, false
	}
	return codeFence{sign: m[1][0], count: len(m[1])}, true
}

// closedBy reports whether a line closes the block: the same sign, at least as often, and
// nothing behind it.
func (f codeFence) closedBy(line string) bool {
	m := fenceLine.FindStringSubmatch(uncomment([]string{line})[0])
	return m != nil && m[1][0] == f.sign && len(m[1]) >= f.count && strings.TrimSpace(m[2]) == ""
}

// opensFence reports whether the lines of a cell open a block that they do not close: in a
// script it could reach into the cells below.
func opensFence(lines []string) bool {
	var open codeFence
	for _, line := range lines {
		switch opening, ok := openedBy(line); {
		case open.count > 0 && open.closedBy(line):
			open = codeFence{}
		case open.count == 0 && ok:
			open = opening
		}
	}
	return open.count > 0
}
