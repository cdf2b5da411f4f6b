package result

import (
	"fmt"
	"unicode/utf8"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/budget"
	"github.com/coppice-run/coppice/sinks/sanitise"
)

// cell is the output of one cell of the call.
type cell struct {
	index    int
	screen   sanitise.Screen
	window   *budget.Window
	tokens   *estimate // of all that was written, nil when no one asks
	columns  int
	events   []messages.RawJSON
	markdown bool
	clear    bool // the next output removes what is there
}

// stream adds what was printed.
func (c *cell) stream(name messages.StreamName, text string) {
	to := sanitise.Out
	if name == messages.StderrStream {
		to = sanitise.Err
	}
	c.screen.Write(to, text)
	c.write(c.screen.Take())
}

// write adds text that is clean. It ends with a whole character.
func (c *cell) write(text []byte) {
	c.count(text)
	c.window.Write(text)
}

// count adds text to the estimate.
func (c *cell) count(text []byte) {
	if c.tokens == nil {
		return
	}
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		c.tokens.add(r)
		text = text[n:]
	}
}

// endRow makes the next text begin a line.
func (c *cell) endRow() {
	c.screen.Break()
	c.write(c.screen.Take())
}

// block adds text that begins a line and ends one.
func (c *cell) block(text string) {
	c.endRow()
	c.write([]byte(text))
}

// slot adds such text so that it can be replaced.
func (c *cell) slot(text string) *budget.Slot {
	c.endRow()
	c.count([]byte(text))
	return c.window.Slot([]byte(text))
}

// passed reports whether the text does not hold everything.
func (c *cell) passed() bool { return c.window.Truncated() || c.window.Cut() }

// end commits the last row. More may come after it, on the same line.
func (c *cell) end() {
	c.screen.Close()
	c.write(c.screen.Take())
}

// output returns what is kept of the cell.
func (c *cell) output() messages.CellOutput {
	text := c.window.Text()
	if c.window.Cut() {
		s := c.window.Stats()
		if text != "" && text[len(text)-1] != '\n' {
			text += "\n"
		}
		text += fmt.Sprintf("[Some lines truncated to %d bytes: %d]\n", c.columns, s.CutLines)
	}
	return messages.CellOutput{Index: c.index, Text: text, Events: c.events, HasMarkdown: c.markdown}
}
