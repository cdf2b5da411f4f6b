package render

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/htmltext"
	"github.com/coppice-run/coppice/sinks/sanitise"
)

// Strong writes what a reader looks for.
func (s Style) Strong(text string) string { return s.in(bold, text) }

// Good and Bad write a verdict.
func (s Style) Good(text string) string { return s.in(green, text) }

// Bad writes what went wrong.
func (s Style) Bad(text string) string { return s.in(red, text) }

// Warn writes what someone should know.
func (s Style) Warn(text string) string { return s.in(yellow, text) }

// Accent writes what a reader may look for.
func (s Style) Accent(text string) string { return s.in(cyan, text) }

// OneLine makes text fit for one line.
func OneLine(text string) string { return oneLine(text) }

// Safe makes a line of a file fit for a terminal; for anything else it is left
// as it is.
func (s Style) Safe(line string) string {
	if !s.Terminal {
		return line
	}
	return sanitise.Clean(line)
}

// DiffLine colours a line of a comparison by its first sign.
func (s Style) DiffLine(line string) string {
	line = s.Safe(line)
	switch {
	case strings.HasPrefix(line, "  +"), strings.HasPrefix(line, "+"):
		return s.in(green, line)
	case strings.HasPrefix(line, "  -"), strings.HasPrefix(line, "-"):
		return s.in(red, line)
	case strings.HasPrefix(line, "  "):
		return line
	default:
		return s.in(bold, line)
	}
}

// StreamText is what code printed, as lines; of a progress bar the last state
// stays.
func StreamText(s Style, text string) []string {
	var screen sanitise.Screen
	screen.Write(sanitise.Out, text)
	screen.Close()
	return printed(s, string(screen.Take()))
}

// Traceback is an exception as lines.
func Traceback(s Style, e messages.ErrorDetails) []string {
	if lines := tracebackLines(s, e.Traceback); len(lines) > 0 {
		return lines
	}
	return []string{strings.TrimSuffix(oneLine(e.Name+": "+e.Message), ":")}
}

// BundleText is rich output as text: the best text there is of it, and what
// else it holds in brackets.
func BundleText(s Style, b messages.Bundle) []string {
	lines := Bundle(Style{Width: s.Width, Terminal: s.Terminal}, b)
	for i, line := range lines {
		if rest, ok := strings.CutPrefix(line, "▣ "); ok {
			lines[i] = "[" + rest + "]"
		}
	}
	_, plain := b[messages.MIMEPlain]
	_, markdown := b[messages.MIMEMarkdown]
	if html, ok := b.Text(messages.MIMEHTML); ok && !plain && !markdown {
		lines = printed(s, htmltext.Markdown(html))
	}
	if data, ok := b[messages.MIMEJSON]; ok && !plain && !markdown {
		lines = append(lines, oneLine(compactJSON(data)))
	}
	return lines
}

func compactJSON(data messages.RawJSON) string {
	var v any
	if json.Unmarshal(data, &v) != nil {
		return string(data)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return string(data)
	}
	return string(text)
}

// Cut keeps the first and last of many lines, and says how many are left out.
// most 0 keeps all.
func Cut(lines []string, most int) []string {
	if most <= 0 || len(lines) <= most {
		return lines
	}
	head := (most + 1) / 2
	tail := most - head
	out := slices.Clone(lines[:head])
	out = append(out, fmt.Sprintf("… %s left out", Number(len(lines)-head-tail, "line")))
	return append(out, lines[len(lines)-tail:]...)
}
