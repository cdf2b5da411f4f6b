package notebook

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Selector names lines of a view. The zero value is all lines of the text
// view.
type Selector struct {
	// Raw selects the JSON as it is written instead of the text view.
	Raw bool
	// Ranges are ascending and do not touch each other; none means all lines.
	Ranges []LineRange
}

// LineRange is the lines First to Last, both included, counted from 1. Last 0
// means the end.
type LineRange struct{ First, Last int }

// ParseSelector reads a selector:
//
//	12        line 12
//	3-9       lines 3 to 9
//	3+7       seven lines from line 3
//	40-       from line 40 to the end
//	-20       the first twenty lines
//	1-20,40-  several ranges, in any order; what overlaps is joined
//	raw       the JSON instead of the text view
//	raw:1-20  lines of the JSON; also 1-20:raw
//
// White space around the parts is allowed, and an empty selector is all lines.
// The error is of kind ErrSelector.
func ParseSelector(s string) (Selector, error) {
	var sel Selector
	for part := range strings.SplitSeq(s, ":") {
		part = strings.TrimSpace(part)
		switch {
		case part == "":
		case part == "raw" && !sel.Raw:
			sel.Raw = true
		case part == "raw" || sel.Ranges != nil:
			return Selector{}, fault(ErrSelector, "%q has two parts of one kind", s)
		default:
			for one := range strings.SplitSeq(part, ",") {
				r, err := parseRange(strings.TrimSpace(one))
				if err != nil {
					return Selector{}, err
				}
				sel.Ranges = append(sel.Ranges, r)
			}
		}
	}
	sel.Ranges = joinRanges(sel.Ranges)
	return sel, nil
}

func parseRange(s string) (LineRange, error) {
	bad := func(why string) (LineRange, error) {
		return LineRange{}, fault(ErrSelector, "%q: %s", s, why)
	}
	if from, count, ok := strings.Cut(s, "+"); ok {
		first, err1 := lineNumber(from)
		n, err2 := lineNumber(count)
		if err1 != nil || err2 != nil || first+n < first {
			return bad("expected a line and a count, such as 3+7")
		}
		return LineRange{First: first, Last: first + n - 1}, nil
	}
	from, to, isRange := strings.Cut(s, "-")
	if from == "" && to == "" {
		return bad("expected a line or a range, such as 12, 3-9 or 40-")
	}
	r := LineRange{First: 1}
	var err error
	if from != "" {
		if r.First, err = lineNumber(from); err != nil {
			return bad("lines are numbered from 1")
		}
	}
	switch {
	case !isRange:
		r.Last = r.First
	case to != "":
		if r.Last, err = lineNumber(to); err != nil {
			return bad("lines are numbered from 1")
		}
		if r.Last < r.First {
			return bad("the range ends before it begins")
		}
	}
	return r, nil
}

func lineNumber(s string) (int, error) {
	if strings.Trim(s, "0123456789") != "" {
		return 0, strconv.ErrSyntax
	}
	n, err := strconv.Atoi(s)
	if err == nil && n < 1 {
		err = strconv.ErrRange
	}
	return n, err
}

// joinRanges sorts ranges and joins those that overlap or touch.
func joinRanges(ranges []LineRange) []LineRange {
	slices.SortFunc(ranges, func(a, b LineRange) int { return a.First - b.First })
	var joined []LineRange
	for _, r := range ranges {
		if len(joined) == 0 {
			joined = append(joined, r)
			continue
		}
		last := &joined[len(joined)-1]
		switch {
		case last.Last == 0:
			return joined
		case r.First > last.Last && r.First-last.Last > 1:
			joined = append(joined, r)
		case r.Last == 0 || r.Last > last.Last:
			last.Last = r.Last
		}
	}
	return joined
}

// place says where a line is in relation to the selection.
type place int

const (
	between  place = iota // not selected, later lines may be
	selected              // selected
	beyond                // after the last selected line
)

func (s Selector) place(line int) place {
	if len(s.Ranges) == 0 {
		return selected
	}
	for _, r := range s.Ranges {
		switch {
		case line < r.First:
			return between
		case r.Last == 0 || line <= r.Last:
			return selected
		}
	}
	return beyond
}

// Contains reports whether the selector names the line.
func (s Selector) Contains(line int) bool { return line > 0 && s.place(line) == selected }

// String returns the selector in the form that [ParseSelector] reads.
func (s Selector) String() string {
	var parts []string
	for _, r := range s.Ranges {
		switch r.Last {
		case 0:
			parts = append(parts, fmt.Sprintf("%d-", r.First))
		case r.First:
			parts = append(parts, strconv.Itoa(r.First))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", r.First, r.Last))
		}
	}
	lines := strings.Join(parts, ",")
	switch {
	case s.Raw && lines != "":
		return "raw:" + lines
	case s.Raw:
		return "raw"
	}
	return lines
}

// SplitPath splits what a person types into the path of a notebook and a
// selector: "nb.ipynb:1-20" is nb.ipynb and 1-20. The selector begins after
// the colon that follows the extension, so drive letters stay in the path. A
// text that names no notebook is returned whole.
func SplitPath(s string) (path, selector string) {
	lower := strings.ToLower(s)
	if len(lower) != len(s) {
		return s, ""
	}
	if i := strings.LastIndex(lower, ".ipynb:"); i >= 0 {
		i += len(".ipynb")
		return s[:i], s[i+1:]
	}
	return s, ""
}
