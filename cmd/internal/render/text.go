package render

import (
	"strings"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/sanitise"
)

// text gathers what is to be written, and knows whether the last line of it has
// ended. On a terminal, what code printed passes a filter, and carriage returns
// work as the code meant; otherwise it is folded, so that of a progress bar
// only its last state stays.
type text struct {
	prefix string
	folds  bool
	out    strings.Builder
	// middle says that the last line was not ended yet.
	middle bool

	filters [2]sanitise.Filter
	screen  sanitise.Screen
}

func newText(s Style, prefix string) *text {
	t := &text{prefix: prefix, folds: !s.Terminal || prefix != ""}
	for i := range t.filters {
		t.filters[i].Colour = s.Colour
	}
	return t
}

// output adds what code printed.
func (t *text) output(name messages.StreamName, chunk string) {
	stream := sanitise.Out
	if name == messages.StderrStream {
		stream = sanitise.Err
	}
	if t.folds {
		t.screen.Write(stream, chunk)
		t.printed(string(t.screen.Take()))
		return
	}
	t.printed(string(t.filters[stream].Append(nil, chunk)))
}

// finish ends what code printed, and the last line.
func (t *text) finish() {
	if !t.folds {
		for i := range t.filters {
			t.printed(string(t.filters[i].Close(nil)))
		}
	} else {
		t.screen.Close()
		t.printed(string(t.screen.Take()))
	}
	if t.middle {
		t.out.WriteByte('\n')
		t.middle = false
	}
}

// line adds a line of our own.
func (t *text) line(s string) {
	t.finish()
	t.raw(s + "\n")
}

// printed adds what code printed, which has passed a filter. A control sequence alone,
// such as the end of a colour, does not begin a line.
func (t *text) printed(s string) {
	for line := range strings.Lines(s) {
		if !t.middle && onlySequences(line) {
			t.out.WriteString(line)
			continue
		}
		t.raw(line)
	}
}

// onlySequences reports whether s has nothing but control sequences, in the form that
// the filter lets pass: ESC [ … final.
func onlySequences(s string) bool {
	for s != "" {
		rest, is := strings.CutPrefix(s, "\x1b[")
		end := strings.IndexFunc(rest, func(r rune) bool { return r >= 0x40 && r <= 0x7e })
		if !is || end < 0 {
			return false
		}
		s = rest[end+1:]
	}
	return true
}

// raw adds text with the prefix at the head of each line.
func (t *text) raw(s string) {
	for s != "" {
		if !t.middle {
			t.out.WriteString(t.prefix)
			t.middle = true
		}
		i := strings.IndexByte(s, '\n')
		if i < 0 {
			t.out.WriteString(s)
			return
		}
		t.out.WriteString(s[:i+1])
		s, t.middle = s[i+1:], false
	}
}

// take hands out what was gathered.
func (t *text) take() string {
	s := t.out.String()
	t.out.Reset()
	return s
}
