package render

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Table sets rows in columns, two spaces apart. The first row is the header
// when header is set.
func Table(s Style, rows [][]string, header bool) []string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	lines := make([]string, 0, len(rows))
	for n, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			if i > 0 {
				b.WriteString("  ")
			}
			if header && n == 0 {
				cell = s.in(dim, cell)
			}
			if i < len(row)-1 {
				cell = pad(cell, widths[i])
			}
			b.WriteString(cell)
		}
		lines = append(lines, s.Fit(b.String()))
	}
	return lines
}

// Check is one thing that was promised or looked at.
type Check struct {
	What string
	OK   bool
	// Detail says what was seen; of a failure it says why.
	Detail string
}

// Checks writes a list of checks, each with ok or FAILED.
func Checks(s Style, list []Check) []string {
	lines := make([]string, len(list))
	for i, c := range list {
		mark := s.in(green, "ok    ")
		if !c.OK {
			mark = s.in(red, "FAILED")
		}
		line := mark + "  " + c.What
		if c.Detail != "" {
			line += s.in(dim, " ("+c.Detail+")")
		}
		lines[i] = s.Fit(line)
	}
	return lines
}

// Finding is one thing that coppice doctor found.
type Finding struct {
	What string
	// State is ok, warning, failed, fixed or skipped.
	State string
	// Detail says what was seen, Mend what mends it: a command.
	Detail, Mend string
}

// Findings writes findings, each with its state and, below it, what mends it. Lines
// are not cut: a command has to be whole to be copied.
func Findings(s Style, list []Finding) []string {
	var lines []string
	for _, f := range list {
		mark, colour := f.State, dim
		switch f.State {
		case "ok", "fixed":
			colour = green
		case "warning":
			mark, colour = "warn", yellow
		case "failed":
			mark, colour = "FAILED", red
		}
		lines = append(lines, s.in(colour, pad(mark, 7))+" "+f.What+": "+Plain(f.Detail))
		if f.Mend != "" {
			lines = append(lines, strings.Repeat(" ", 8)+"→ "+Plain(f.Mend))
		}
	}
	return lines
}

// Plain removes all control sequences from text.
func Plain(text string) string { return ansi.Strip(text) }
