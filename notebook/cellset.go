package notebook

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// CellSet is a set of cell indices, given as ranges. The nil set has all
// cells.
type CellSet struct {
	ranges [][2]int // first and last, both included
}

// ParseCells reads ranges of cell indices, which count from 0 as in the
// markers of the text view:
//
//	3          cell 3
//	2-5        cells 2 to 5
//	7-         cell 7 and all after it
//	-2         the first cells, up to 2
//	0,2-5,9-   several, in any order
//
// The error is of kind ErrArgument.
func ParseCells(text string) (*CellSet, error) {
	s := &CellSet{}
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		from, ok := cellBound(first, 0, isRange)
		to, okLast := from, true
		if isRange {
			to, okLast = cellBound(last, math.MaxInt, first != "")
		}
		if !ok || !okLast {
			return nil, fault(ErrArgument, "%q names no cells; write them as 3, 2-5, 7- or 0,2-5", text)
		}
		if to < from {
			return nil, fault(ErrArgument, "cells %q: %d comes after %d", text, from, to)
		}
		s.ranges = append(s.ranges, [2]int{from, to})
	}
	return s, nil
}

// cellBound reads one end of a range; an end that is left out is open.
func cellBound(text string, open int, mayBeOpen bool) (index int, ok bool) {
	if text == "" {
		return open, mayBeOpen
	}
	n, err := strconv.ParseUint(text, 10, 31)
	return int(n), err == nil
}

// CellsFrom is the set of all cells from an index on.
func CellsFrom(index int) *CellSet { return &CellSet{ranges: [][2]int{{index, math.MaxInt}}} }

// Contains reports whether a cell is in the set.
func (s *CellSet) Contains(index int) bool {
	return s == nil || slices.ContainsFunc(s.ranges, func(r [2]int) bool { return r[0] <= index && index <= r[1] })
}

// Check returns an error of kind ErrNoCell when the set names a cell that a
// document of so many cells does not have. Open ends name none.
func (s *CellSet) Check(cells int) error {
	if s == nil {
		return nil
	}
	for _, r := range s.ranges {
		last := r[1]
		if last == math.MaxInt {
			last = r[0]
		}
		if last >= cells {
			if cells == 0 {
				return fault(ErrNoCell, "the notebook has no cells")
			}
			return fault(ErrNoCell, "there is no cell %d; the last one is %d", last, cells-1)
		}
	}
	return nil
}
