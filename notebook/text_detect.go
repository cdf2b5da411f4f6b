package notebook

import (
	"regexp"
	"strings"
)

// scriptHead matches the first line of a script that is no marker: one that names the
// interpreter or the encoding, or the beginning of a header.
var scriptHead = regexp.MustCompile(`^#!|^#.*coding[:=]|^\s*# ---\s*$`)

// notHeading reports whether a line that begins with a number sign is rather a comment
// of a script than a heading of markdown: a heading that is commented out, or the second
// of two lines.
func notHeading(before, line string) bool {
	const sign = "# "
	return strings.HasPrefix(line, sign+"#") || strings.HasPrefix(line, sign) && strings.HasPrefix(before, sign) && !strings.HasPrefix(before, sign+"%%")
}

// misspelled matches a line that was meant as a marker of the view but is not one:
// it has cell: after the type, or nothing but a type that there is not. Text
// with such a line is a failed edit of the view and not in the percent format.
var (
	misspelled  = regexp.MustCompile(`^\s*#\s*%%.*\]\s*cell:|^\s*#\s*%%\s*\[[^\]]*\]\s*$`)
	percentType = regexp.MustCompile(`^\s*#\s*%%\s*\[(?:markdown|md|raw|code)\]\s*$`)
)

// failedEdit reports whether a line was meant as a marker of the view but is not one.
func failedEdit(line string) bool {
	return misspelled.MatchString(line) && !percentType.MatchString(line)
}

// looksPercent reports whether text is in the percent format and cannot be the
// view. A marker like "# %% [markdown]" is in both. What tells is a first line
// that only percent has; or that no cell is marked [code], that all markdown is
// commented out, and one thing more: bare markers, lines before the first marker, such
// as a docstring, which the view never has, or comments that are no headings of
// markdown.
func looksPercent(text string) bool {
	var s signs
	for line := range strings.SplitSeq(text, "\n") {
		if !s.see(line) {
			return false
		}
	}
	return s.percent()
}

// signs are what a text shows of the format that it is in.
type signs struct {
	begun       bool // a line that is not blank was seen
	startsAsOne bool // the first such line is one that only percent has
	lead        bool // or no marker at all
	bare        bool // there is a marker that only percent has
	inMarkdown  bool // the line belongs to a cell whose marker is in both formats
	commented   bool // such a cell has a line that is commented out
	comments    bool // which is a comment rather than a heading
	plain       bool // such a cell has a line that is not commented out
	before      string
}

// see takes the next line; false says that the text cannot be in the percent format.
func (s *signs) see(line string) bool {
	m, strict := parseMarker(line)
	strict = strict && m.extra == 0
	if strict && (m.numbered || m.typ == Code) || failedEdit(line) {
		return false
	}
	_, percent := percentOptions(line)
	if !s.begun && strings.TrimSpace(line) != "" {
		s.begun = true
		s.startsAsOne = !strict && (percent || scriptHead.MatchString(line))
		s.lead = !strict && !s.startsAsOne
	}
	switch {
	case strict:
		s.inMarkdown = true
	case percent:
		s.bare, s.inMarkdown = true, false
	case s.inMarkdown:
		s.content(line)
	}
	s.before = line
	return true
}

// content takes a line of a cell whose marker is in both formats.
func (s *signs) content(line string) {
	switch {
	case strings.HasPrefix(line, "#"):
		s.commented = true
		s.comments = s.comments || notHeading(s.before, line)
	case strings.TrimSpace(line) != "":
		s.plain = true
	}
}

// percent judges the text by what it has shown.
func (s *signs) percent() bool {
	switch {
	case s.startsAsOne, s.bare && s.lead:
		return true
	case s.plain:
		return false
	}
	return s.commented && (s.bare || s.lead || s.comments)
}
