package recording

import (
	"fmt"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
)

// Cell is the recording of one cell.
type Cell struct {
	outputs *notebook.Recording
	count   int   // the prompt number; 0: the kernel's
	most    int64 // bytes of output
	shown   int64 // bytes of output
	omitted int64 // bytes beyond most
	clears  bool  // the next output takes the place of all before
	timing  notebook.Timing
}

// Begin starts the recording of a cell, whose outputs and prompt number go. count
// is the cell's prompt number, also in its result; 0: those that the kernel gives.
// Of its output most bytes are kept. The error is one of [notebook.Recorder.Begin].
func Begin(r *notebook.Recorder, ref notebook.Ref, count int, most int64) (*Cell, error) {
	outputs, err := r.Begin(ref)
	if err != nil {
		return nil, err
	}
	return &Cell{outputs: outputs, count: count, most: most}, nil
}

// Record records an event and returns about how many bytes the cell grew. Events
// that are not output, such as questions and notices, leave it as it is.
func (c *Cell) Record(e messages.Event) int64 {
	switch e := e.(type) {
	case messages.Status:
		switch e.Status {
		case messages.CellRunning:
			c.Began()
		case messages.CellComplete, messages.CellError:
			c.Ended()
		case messages.CellPending:
		}
		return 0
	case messages.ClearOutput:
		c.outputs.Clear(e.Wait)
		c.clears = true
		return 0
	case messages.Error:
		c.outputs.Error(e.Name, e.Message, e.Traceback)
		return int64(e.Size())
	case messages.Display:
		if e.Update { // it takes the place of what was counted
			c.outputs.Update(e.DisplayID, notebook.Bundle(e.Data), e.Metadata)
			return 0
		}
	case messages.Stream, messages.ExecuteResult:
	default:
		return 0
	}
	return c.output(e)
}

// output records what the cell showed, within its bound.
func (c *Cell) output(e messages.Event) int64 {
	if c.clears {
		c.clears, c.shown, c.omitted = false, 0, 0
	}
	size := int64(e.Size())
	if c.omitted > 0 || c.shown+size > c.most {
		c.omitted += size
		return 0
	}
	c.shown += size
	switch e := e.(type) {
	case messages.Stream:
		c.outputs.Stream(string(e.Name), e.Text)
	case messages.Display:
		c.outputs.Display(notebook.Bundle(e.Data), e.Metadata, e.DisplayID)
	case messages.ExecuteResult:
		count := e.ExecutionCount
		if c.count > 0 {
			count = c.count
		}
		c.outputs.Result(count, notebook.Bundle(e.Data), e.Metadata, e.DisplayID)
	}
	return size
}

// Began notes that the cell begins to run now. A status that is recorded does so
// too.
func (c *Cell) Began() {
	now := time.Now()
	c.timing.Busy, c.timing.Input = now, now
}

// Ended notes that the cell ends now. A status that is recorded does so too.
func (c *Cell) Ended() {
	now := time.Now()
	c.timing.Reply, c.timing.Idle = now, now
}

// Duration is how long the cell ran, 0 unless it ran to its end.
func (c *Cell) Duration() time.Duration {
	if c.timing.Busy.IsZero() || !c.timing.Idle.After(c.timing.Busy) {
		return 0
	}
	return c.timing.Idle.Sub(c.timing.Busy)
}

// Omitted is how many bytes of output were left out so far.
func (c *Cell) Omitted() int64 { return c.omitted }

// Flush writes what was recorded so far into the document.
func (c *Cell) Flush() { c.outputs.Flush() }

// Finish writes what was recorded into the document, with a remark on what was left
// out and further ones, the times, and the prompt number that the kernel gave, 0 if
// it gave none.
func (c *Cell) Finish(count int, remarks ...string) {
	if c.omitted > 0 {
		c.remark(fmt.Sprintf("%d bytes of output left out", c.omitted))
	}
	for _, r := range remarks {
		c.remark(r)
	}
	if c.count > 0 {
		count = c.count
	}
	c.outputs.Finish(count, c.timing)
}

func (c *Cell) remark(text string) {
	c.outputs.Stream(string(messages.StderrStream), "\n[coppice: "+text+"]\n")
}
