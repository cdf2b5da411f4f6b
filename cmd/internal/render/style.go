package render

import (
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// Style says for what kind of output text is made. The zero value is plain
// text of any width.
type Style struct {
	// Colour allows SGR sequences.
	Colour bool
	// Terminal says that the text goes to a terminal: what code prints there
	// may return the carriage, and a line is shown before it has ended.
	Terminal bool
	// Width is the number of columns; 0 is no limit.
	Width int
	// Images is how the terminal shows images; "": it does not.
	Images Protocol
}

// paint is a colour or weight as its SGR parameter.
type paint string

const (
	bold   paint = "1"
	dim    paint = "2"
	red    paint = "31"
	green  paint = "32"
	yellow paint = "33"
	blue   paint = "34"
	cyan   paint = "36"
)

// in returns text in a colour; no colour and empty text
// leave it as it is.
func (s Style) in(p paint, text string) string {
	if !s.Colour || text == "" || p == "" {
		return text
	}
	return "\x1b[" + string(p) + "m" + text + "\x1b[0m"
}

// Fit cuts a line to the width.
func (s Style) Fit(line string) string {
	if s.Width <= 0 {
		return line
	}
	return ansi.Truncate(line, s.Width, "…")
}

// wrap returns text in a colour on as many lines as it takes: what it says
// matters more than its looks.
func (s Style) wrap(p paint, text string) []string {
	if s.Width > 0 {
		text = ansi.Wrap(text, s.Width, "")
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = s.in(p, strings.TrimRight(l, " "))
	}
	return lines
}

// pad fills text with spaces to a width.
func pad(text string, width int) string {
	if n := width - ansi.StringWidth(text); n > 0 {
		return text + strings.Repeat(" ", n)
	}
	return text
}

// Duration writes a duration with about three digits: 840 µs, 12 ms, 1.24 s,
// 30 s, 2 min 5 s.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "0 ms"
	case d < time.Millisecond:
		return strconv.FormatInt(d.Microseconds(), 10) + " µs"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < time.Minute && d%time.Second == 0:
		return strconv.Itoa(int(d/time.Second)) + " s"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) + " s"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	default:
		d = d.Round(time.Second)
		return strconv.Itoa(int(d.Minutes())) + " min " + strconv.Itoa(int(d.Seconds())%60) + " s"
	}
}

// Bytes writes a number of bytes in binary units: 512 B, 53.1 MiB.
func Bytes(n int64) string {
	const k = 1024
	if n < k {
		return strconv.FormatInt(n, 10) + " B"
	}
	f := float64(n)
	for _, unit := range []string{"KiB", "MiB", "GiB"} {
		if f /= k; f < k || unit == "GiB" {
			return strconv.FormatFloat(f, 'f', 1, 64) + " " + unit
		}
	}
	panic("unreachable")
}

// Number writes how many there are of something: 1 cell, 2 cells, 3 entries.
func Number(n int, what string) string {
	if n != 1 {
		switch {
		case strings.HasSuffix(what, "y"):
			what = strings.TrimSuffix(what, "y") + "ies"
		case strings.HasSuffix(what, "ch"), strings.HasSuffix(what, "ss"):
			what += "es"
		default:
			what += "s"
		}
	}
	return strconv.Itoa(n) + " " + what
}

// ShortPath writes a path under home with ~ and keeps the end of a long one.
func ShortPath(path, home string, width int) string {
	if home != "" {
		if rest, ok := strings.CutPrefix(path, home); ok && (rest == "" || rest[0] == '/' || rest[0] == '\\') {
			path = "~" + rest
		}
	}
	if w := ansi.StringWidth(path); width > 1 && w > width {
		path = ansi.TruncateLeft(path, w-width+1, "…")
	}
	return path
}

// Title writes a heading.
func (s Style) Title(text string) string { return s.in(bold, "== "+text) }

// Quiet writes what is only worth a glance.
func (s Style) Quiet(text string) string { return s.in(dim, text) }
