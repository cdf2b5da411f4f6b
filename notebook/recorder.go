package notebook

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// Recorder turns what a kernel sends while cells of a notebook run into their
// outputs, by the rules of the Jupyter messaging specification ("Messages on
// the IOPub channel"). It spans the cells of a run, because a cell may update
// what an earlier one displayed.
//
// It edits the document and so belongs to the document's goroutine.
type Recorder struct {
	doc *Document
	// FoldProgress drops what a carriage return or a backspace overwrote in
	// streams: of a progress bar the last state stays. Without it, streams are
	// recorded as they were written.
	FoldProgress bool
	// displays holds the outputs that a display_id can update.
	displays map[string][]*slot
	// cells holds the latest recording of each cell.
	cells map[*Cell]*Recording
}

// Recording collects the outputs of one cell.
//
//	Begin ──▶ recording ──▶ Finish
//	             │  ▲
//	             └──┘ Stream, Display, Result, Error, Update, Clear, Flush
//
// After Finish, the outputs change only by an Update from a later cell.
type Recording struct {
	rec      *Recorder
	cell     *Cell
	slots    []*slot
	count    int
	clear    bool // empty the outputs when the next one comes
	finished bool
}

// slot is one output that is being collected.
type slot struct {
	owner *Recording
	out   Output
	text  []byte // of a stream, so far
	dead  bool   // cleared
}

// NewRecorder returns a recorder for runs of the notebook's cells.
func NewRecorder(d *Document) *Recorder {
	return &Recorder{doc: d, displays: make(map[string][]*slot), cells: make(map[*Cell]*Recording)}
}

// Begin starts a cell: its outputs and prompt number are cleared.
func (r *Recorder) Begin(ref Ref) (*Recording, error) {
	c, err := r.doc.findCode(ref)
	if err != nil {
		return nil, err
	}
	r.doc.clearOutputs(c)
	if before := r.cells[c]; before != nil {
		before.drop() // what it displayed is gone and is not to be updated
	}
	r.cells[c] = &Recording{rec: r, cell: c}
	return r.cells[c], nil
}

// Stream records text. Text that follows text of the same stream becomes one
// output with it.
func (c *Recording) Stream(name, text string) {
	if text == "" {
		return
	}
	c.ready()
	if n := len(c.slots); n > 0 && c.slots[n-1].out.Type == Stream && c.slots[n-1].out.Name == name {
		c.slots[n-1].write(text, c.rec.FoldProgress)
		return
	}
	s := c.add(NewStream(name, ""))
	s.write(text, c.rec.FoldProgress)
}

// Display records display_data. With a displayID it can be updated later, and updates
// what was shown under it before; metadata may be nil.
func (c *Recording) Display(data Bundle, metadata json.RawMessage, displayID string) {
	c.ready()
	c.Update(displayID, data, metadata)
	c.register(displayID, c.add(NewDisplay(data, metadata)))
}

// Result records execute_result; its count becomes the cell's. With a
// displayID it can be updated later, and updates what was shown under it before;
// metadata may be nil.
func (c *Recording) Result(count int, data Bundle, metadata json.RawMessage, displayID string) {
	c.ready()
	c.Update(displayID, data, metadata)
	c.count = max(c.count, count)
	c.register(displayID, c.add(NewResult(count, data, metadata)))
}

// Error records an exception.
func (c *Recording) Error(ename, evalue string, traceback []string) {
	c.ready()
	c.add(NewError(ename, evalue, traceback))
}

// Update records update_display_data: every output of the run that was
// displayed under displayID, in this cell or in an earlier one, gets the new
// data and metadata. It returns how many there were; with none the message is
// without effect, as the specification has it.
func (c *Recording) Update(displayID string, data Bundle, metadata json.RawMessage) int {
	live := c.rec.displays[displayID]
	n := 0
	for _, s := range live {
		if s.dead {
			continue
		}
		s.out.Data, s.out.Metadata = data, metadata
		n++
		if s.owner.finished {
			s.owner.Flush()
		}
	}
	return n
}

// Clear records clear_output: the outputs so far go away, now or, with wait,
// when the next output comes.
func (c *Recording) Clear(wait bool) {
	if wait {
		c.clear = true
		return
	}
	c.drop()
}

// Outputs returns the outputs so far.
func (c *Recording) Outputs() []Output {
	out := make([]Output, len(c.slots))
	for i, s := range c.slots {
		out[i] = s.output()
	}
	return out
}

// Flush writes the outputs so far into the cell. A runner calls it before it
// saves the notebook in the middle of a cell.
func (c *Recording) Flush() { c.rec.doc.setOutputs(c.cell, c.count, c.Outputs()) }

// Finish writes the outputs into the cell, the prompt number if the kernel told
// one (0 keeps that of the result), and the times of the execution.
func (c *Recording) Finish(count int, t Timing) {
	if count > 0 {
		c.count = count
	}
	c.finished = true
	c.Flush()
	c.rec.doc.setTiming(c.cell, t)
}

// ready empties the outputs if a Clear with wait asked for it.
func (c *Recording) ready() {
	if c.clear {
		c.drop()
	}
}

func (c *Recording) drop() {
	c.clear = false
	for _, s := range c.slots {
		s.dead = true
	}
	c.slots = nil
}

func (c *Recording) add(o Output) *slot {
	s := &slot{owner: c, out: o}
	c.slots = append(c.slots, s)
	return s
}

func (c *Recording) register(displayID string, s *slot) {
	if displayID != "" {
		live := slices.DeleteFunc(c.rec.displays[displayID], func(s *slot) bool { return s.dead })
		c.rec.displays[displayID] = append(live, s)
	}
}

func (s *slot) output() Output {
	if s.out.Type == Stream {
		s.out.Text = string(s.text)
	}
	return s.out
}

func (s *slot) write(text string, fold bool) {
	if !fold || !strings.ContainsAny(text, "\r\b") && !bytes.HasSuffix(s.text, []byte("\r")) {
		s.text = append(s.text, text...)
		return
	}
	// Only the last line can still be overwritten.
	start := bytes.LastIndexByte(s.text, '\n') + 1
	line := append(bytes.Clone(s.text[start:]), text...)
	s.text = append(s.text[:start], foldProgress(line)...)
}

// foldProgress returns text as a terminal would leave it, in the two respects
// that progress bars use: a carriage return takes the line back to its
// beginning and what was there is gone, and a backspace removes a character. A
// carriage return before a newline, or at the end, where the next character is
// not known yet, stays.
func foldProgress(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, c := range text {
		switch {
		case c == '\b' && len(out) > 0 && out[len(out)-1] != '\n':
			_, n := utf8.DecodeLastRune(out)
			out = out[:len(out)-n]
		case c != '\n' && c != '\r' && len(out) > 0 && out[len(out)-1] == '\r':
			out = append(out[:bytes.LastIndexByte(out, '\n')+1], c)
		default:
			out = append(out, c)
		}
	}
	return out
}
