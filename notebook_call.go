package coppice

import (
	"context"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
)

// slowSave is how many times as long as a save takes must pass before the next
// one, so that saving a large notebook does not hold up its cells.
const slowSave = 10

// notebookCall is the execution of one cell. It belongs to the goroutine of its
// run.
type notebookCall struct {
	run         *notebookRun
	place, cell int
	recording   *notebook.Recording // nil until the cell runs: one that does not keeps what it showed
	timing      notebook.Timing
	final       *messages.Result // nil until the call has ended
	dirty       bool             // the recording holds what is not saved
	recorded    int64            // bytes of output
	omitted     int64            // bytes beyond MaxOutput
	clears      bool             // the next output takes the place of all before
}

// notebookArrival is what the session's stream yields.
type notebookArrival struct {
	event messages.Event
	err   error
}

// make makes the call and returns when it has ended, and with it the goroutine
// that reads the stream.
func (c *notebookCall) make(ctx context.Context, request Request) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	arrivals := make(chan notebookArrival)
	go func() { // ends with the stream; this function reads until it has ended
		defer close(arrivals)
		for e, err := range c.run.stream(ctx, request) {
			arrivals <- notebookArrival{e, err}
		}
	}()
	tick := time.NewTicker(c.run.o.SaveEvery)
	defer tick.Stop()
	var first error
	for {
		var err error
		select {
		case a, open := <-arrivals:
			switch {
			case !open:
				return first
			case a.err != nil:
				err = a.err
			case first == nil:
				err = c.event(a.event)
			}
		case <-tick.C:
			if first == nil {
				err = c.saveMeanwhile(ctx)
			}
		}
		if err != nil && first == nil {
			first = err
			cancel()
		}
	}
}

// saveMeanwhile saves what the cell has shown so far.
func (c *notebookCall) saveMeanwhile(ctx context.Context) error {
	r := c.run
	if !c.dirty || time.Since(r.saved) < slowSave*r.saving {
		return nil
	}
	c.recording.Flush()
	c.dirty = false
	return r.save(ctx)
}

// event records one event.
func (c *notebookCall) event(e messages.Event) error {
	c.run.o.Progress(NotebookStep{Kind: NotebookCellEvent, Place: c.place, Cell: c.cell, Event: e})
	switch e := e.(type) {
	case messages.InputRequest, messages.Notice:
		return nil // for whoever watches the run, and no output of the cell
	case messages.Final:
		c.final = &e.Result
		return nil
	}
	if c.recording == nil {
		recording, err := c.run.recorder.Begin(notebook.At(c.cell))
		if err != nil {
			return fmt.Errorf("record cell %d: %w", c.cell, err)
		}
		c.recording = recording
	}
	c.dirty = true
	switch e := e.(type) {
	case messages.Status:
		c.status(e)
	case messages.ClearOutput:
		c.recording.Clear(e.Wait)
		c.clears = true
	case messages.Error:
		c.recording.Error(e.Name, e.Message, e.Traceback)
	case messages.Stream, messages.Display, messages.ExecuteResult:
		c.output(e)
	}
	return nil
}

// output records what a cell showed, within MaxOutput.
func (c *notebookCall) output(e messages.Event) {
	if e, ok := e.(messages.Display); ok && e.Update { // it takes the place of what was counted
		c.recording.Update(e.DisplayID, notebook.Bundle(e.Data), e.Metadata)
		return
	}
	if c.clears {
		c.clears, c.recorded, c.omitted = false, 0, 0
	}
	size := int64(e.Size())
	if c.omitted > 0 || c.recorded+size > c.run.o.MaxOutput {
		c.omitted += size
		return
	}
	c.recorded += size
	switch e := e.(type) {
	case messages.Stream:
		c.recording.Stream(string(e.Name), e.Text)
	case messages.Display:
		c.recording.Display(notebook.Bundle(e.Data), e.Metadata, e.DisplayID)
	case messages.ExecuteResult:
		c.recording.Result(e.ExecutionCount, notebook.Bundle(e.Data), e.Metadata, "")
	}
}

// status notes when the cell began and ended. The times are those at which the
// events arrived: the kernel's own are not handed on.
func (c *notebookCall) status(e messages.Status) {
	now := time.Now()
	switch e.Status {
	case messages.CellRunning:
		c.timing.Busy, c.timing.Input = now, now
	case messages.CellComplete, messages.CellError:
		c.timing.Reply, c.timing.Idle = now, now
	case messages.CellPending:
	}
}
