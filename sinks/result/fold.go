package result

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/budget"
)

// Fold gathers the output of one call. Make one with [New].
type Fold struct {
	o     Options
	total int // cells of the call

	cells    []*cell // in order of their index
	displays map[string]*shown
	captured captured
	spill    spill

	events, eventBytes int
	eventsDropped      int
	// attached counts the drawings that were kept as artifacts.
	attached, attachedBytes int
}

// shown is a display that can be updated.
type shown struct {
	cell *cell
	slot *budget.Slot
}

// New returns the fold of a call that has so many cells.
func New(o Options, cells int) *Fold {
	o = o.withDefaults()
	f := &Fold{o: o, total: max(cells, 1)}
	f.spill = spill{store: o.Store, limit: o.Budget.Bytes}
	f.captured.o = o
	return f
}

// Add folds one event in. Events of a cell that is not the latest are welcome:
// background threads print when they like.
func (f *Fold) Add(e messages.Event) {
	switch e := e.(type) {
	case messages.Stream:
		if e.Text != "" {
			f.stream(f.output(e.Cell), e.Name, e.Text)
		}
	case messages.Display:
		f.display(e)
	case messages.ExecuteResult:
		f.display(messages.Display{Position: e.Position, Data: e.Data, Metadata: e.Metadata, DisplayID: e.DisplayID})
	case messages.Error:
		f.block(f.output(e.Cell), told(e.ErrorDetails))
	case messages.Notice:
		f.block(f.output(e.Cell), e.Text)
	case messages.InputRequest:
		if e.Prompt != "" {
			f.stream(f.output(e.Cell), messages.StdoutStream, e.Prompt)
		}
	case messages.ClearOutput:
		f.clear(e)
	case messages.Status:
		if len(e.Data) > 0 {
			f.status(e.Cell, e.Data)
		}
	case messages.Final:
	}
}

// cell returns the cell of that index. The first time it is given its share of
// the budget, and the cells before it keep what they show.
func (f *Fold) cell(index int) *cell {
	if index < 0 { // of the call itself
		index = 0
		if n := len(f.cells); n > 0 {
			index = f.cells[n-1].index
		}
	}
	index = min(index, f.total-1)
	at, found := slices.BinarySearchFunc(f.cells, index, func(c *cell, i int) int { return c.index - i })
	if found {
		return f.cells[at]
	}
	b := f.o.Budget
	bytes, lines := b.Bytes, b.Lines
	for _, c := range f.cells {
		usedBytes, usedLines := c.window.Used()
		c.window.Limit(max(usedBytes, MinShare), max(usedLines, MinShareLines))
		bytes, lines = bytes-usedBytes, lines-usedLines
	}
	left := f.total - index
	if f.o.Tokens > 0 { // the first ones come first
		left = 1
	}
	share := b
	share.Bytes = min(max(bytes/left, MinShare), b.Bytes)
	share.Lines = min(max(lines/left, MinShareLines), b.Lines)
	share.HeadBytes = int(int64(b.HeadBytes) * int64(share.Bytes) / int64(b.Bytes))
	share.TailOnly = b.HeadBytes == 0
	c := &cell{index: index, window: budget.New(share), columns: b.Columns}
	if f.o.Tokens > 0 {
		c.tokens = &estimate{}
	}
	f.cells = slices.Insert(f.cells, at, c)
	return c
}

// output returns the cell of that index for new output.
func (f *Fold) output(index int) *cell {
	c := f.cell(index)
	if c.clear {
		f.empty(c)
	}
	return c
}

func (f *Fold) stream(c *cell, name messages.StreamName, text string) {
	c.stream(name, text)
	f.keep(c, f.spill.write(text))
}

// block adds a text of its own, as it came; it is cleaned here.
func (f *Fold) block(c *cell, text string) {
	if text == "" {
		return
	}
	c.block(lineOf(text))
	f.keep(c, f.spill.block(text))
}

// keep opens the artifact when the text of c does not hold everything, or when
// too much is held for one.
func (f *Fold) keep(c *cell, over bool) {
	if over || c.passed() || f.o.Tokens > 0 && f.seen() > f.o.Tokens {
		f.spill.open()
	}
}

// display adds a display or updates one.
func (f *Fold) display(e messages.Display) {
	status := f.o.statusMIME()
	if raw, ok := e.Data[status]; ok {
		f.status(e.Cell, raw)
		return
	}
	rest, lines := f.figures(e.Data)
	raw, markdown := bundleText(rest, status, f.o.JSONText)
	if len(lines) > 0 {
		raw = strings.TrimPrefix(raw+"\n"+strings.Join(lines, "\n"), "\n")
	}
	if e.Update && f.update(e, raw, markdown) {
		return
	}
	c := f.output(e.Cell)
	text := f.capture(c, e, raw, -1)
	c.markdown = c.markdown || markdown
	if e.DisplayID != "" && f.slotFree() {
		f.displays[e.DisplayID] = &shown{cell: c, slot: c.slot(text)}
	} else {
		c.block(text)
	}
	f.keep(c, f.spill.block(raw))
}

// slotFree reports whether one more display can be remembered for updates.
func (f *Fold) slotFree() bool {
	if f.displays == nil {
		f.displays = make(map[string]*shown)
	}
	if len(f.displays) >= maxSlots {
		maps.DeleteFunc(f.displays, func(_ string, s *shown) bool { return !s.slot.Live() })
	}
	return len(f.displays) < maxSlots
}

// update replaces the display of that name. It returns false when there is none
// in the text.
func (f *Fold) update(e messages.Display, raw string, markdown bool) bool {
	s := f.displays[e.DisplayID]
	if s == nil || !s.slot.Live() {
		return false
	}
	at := f.captured.forget(func(x entry) bool { return x.display == e.DisplayID })
	s.slot.Set([]byte(f.capture(s.cell, e, raw, at)))
	s.cell.markdown = s.cell.markdown || markdown
	f.keep(s.cell, f.spill.block(raw))
	return true
}

// capture keeps the images and the JSON of a display, in place at or last, and
// returns the display's text with what is to be said of those that it does not
// keep.
func (f *Fold) capture(c *cell, e messages.Display, text string, at int) string {
	text = lineOf(text)
	for _, n := range f.captured.add(c.index, e, at, f.attach) {
		text += "[" + n + "]\n"
	}
	return text
}

// status keeps a status event.
func (f *Fold) status(index int, raw messages.RawJSON) {
	if !statusEvent(raw) {
		return
	}
	c := f.cell(index)
	if f.events >= f.o.Events || f.eventBytes+len(raw) > f.o.EventBytes {
		f.eventsDropped++
		return
	}
	f.events++
	f.eventBytes += len(raw)
	c.events = append(c.events, raw)
}

// clear removes the output of a cell, now or when the next comes.
func (f *Fold) clear(e messages.ClearOutput) {
	c := f.cell(e.Cell)
	if e.Wait {
		c.clear = true
		return
	}
	f.empty(c)
}

func (f *Fold) empty(c *cell) {
	c.clear, c.markdown = false, false
	if c.tokens != nil {
		*c.tokens = estimate{}
	}
	c.screen.Clear()
	c.window.Reset()
	f.captured.forget(func(x entry) bool { return x.cell == c.index })
	for id, s := range f.displays {
		if s.cell == c {
			delete(f.displays, id)
		}
	}
}

// Output returns what was gathered so far, and makes the artifact readable. More
// may be added afterwards.
func (f *Fold) Output() messages.Output {
	out := messages.Output{Cells: []messages.CellOutput{}}
	for _, c := range f.cells {
		c.end()
		f.keep(c, false)
	}
	f.spill.flush()
	if n := len(f.cells); n > 0 {
		f.keep(f.cells[n-1], false)
		if f.eventsDropped > 0 {
			f.cells[n-1].block(fmt.Sprintf("[%d more status events not kept]\n", f.eventsDropped))
			f.eventsDropped = 0
		}
	}
	for _, c := range f.cells {
		out.Cells = append(out.Cells, c.output())
	}
	out.JSON, out.Images = f.captured.json(), f.captured.images()
	out.Artifact, out.NotKept = f.spill.uri(), f.spill.missing()
	out.Truncation = f.truncation(out.Artifact)
	if f.o.Tokens > 0 {
		out.Truncation = f.limit(out.Cells, out.Truncation)
	}
	return out
}

// truncation sums up what the cells' windows elided, nil if that is nothing.
func (f *Fold) truncation(uri string) *messages.Truncation {
	t := messages.Truncation{Direction: "middle", MaxBytes: int64(f.o.Budget.Bytes), Artifact: uri}
	if f.o.Budget.HeadBytes == 0 {
		t.Direction = "tail"
	}
	for _, c := range f.cells {
		s := c.window.Stats()
		t.TotalBytes += s.TotalBytes
		t.TotalLines += s.TotalLines
		t.OutputBytes += s.ShownBytes
		t.OutputLines += s.ShownLines
		if s.Truncated && t.TruncatedBy == "" {
			t.TruncatedBy = s.By
		}
		if f.total == 1 && s.TailLines > 0 {
			t.ShownStart, t.ShownEnd = s.TotalLines-s.TailLines+1, s.TotalLines
		}
	}
	if t.TruncatedBy == "" {
		return nil
	}
	return &t
}

// Begun reports whether something was shown.
func (f *Fold) Begun() bool { return len(f.cells) > 0 }

// Held reports whether there is an artifact to close.
func (f *Fold) Held() bool { return f.spill.file != nil }

// Close ends the artifact. What [Fold.Output] returned stays good.
func (f *Fold) Close() error { return f.spill.close() }
