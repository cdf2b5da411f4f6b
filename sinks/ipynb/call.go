package ipynb

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
)

// saveTimeout bounds the wait for the lock of a notebook.
const saveTimeout = 10 * time.Second

// call is the sink of one call. Its methods are called one at a time.
type call struct {
	recorder *Recorder
	exec     messages.Execute
	cell     *cell // that runs, nil between cells
}

// cell is a cell that is being recorded. The recorder's mutex guards it.
type cell struct {
	file      *notebook.File
	recording *notebook.Recording
	prompt    int
	timing    notebook.Timing
	recorded  int64
	omitted   int64
	clears    bool
}

func titled(title string) (json.RawMessage, error) {
	data, err := json.Marshal(map[string]string{"title": title})
	if err != nil {
		return nil, fmt.Errorf("record a title: %w", err)
	}
	return data, nil
}

// Consume records one event.
func (c *call) Consume(ctx context.Context, e messages.Event) error {
	c.recorder.mu.Lock()
	defer c.recorder.mu.Unlock()
	if s, ok := e.(messages.Status); ok {
		switch s.Status {
		case messages.CellRunning:
			return c.begin(ctx, s.Cell)
		case messages.CellComplete, messages.CellError:
			return c.end(ctx)
		case messages.CellPending:
		}
		return nil
	}
	if c.cell != nil {
		c.recorder.size += c.cell.record(e, c.recorder.o.MaxOutput)
	}
	return nil
}

func (c *call) begin(ctx context.Context, index int) error {
	if err := c.end(ctx); err != nil {
		return err
	}
	if index < 0 || index >= len(c.exec.Cells) {
		return nil
	}
	cell, err := c.recorder.begin(c.exec.Cells[index].Code, c.exec.Cells[index].Title)
	if err != nil {
		return err
	}
	c.cell = cell
	return nil
}

// end finishes the cell that runs, if one does, and saves.
func (c *call) end(ctx context.Context) error {
	cell := c.cell
	if cell == nil {
		return nil
	}
	c.cell = nil
	cell.timing.Reply = time.Now()
	cell.timing.Idle = cell.timing.Reply
	if cell.omitted > 0 {
		cell.recording.Stream(string(messages.StderrStream), fmt.Sprintf("\n[coppice: %d bytes of output left out]\n", cell.omitted))
	}
	cell.recording.Finish(cell.prompt, cell.timing)
	return c.save(ctx, cell)
}

func (c *call) save(ctx context.Context, cell *cell) error {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	return c.recorder.save(ctx, cell.file)
}

// Flush saves what was recorded, also of a cell that runs.
func (c *call) Flush(ctx context.Context) error {
	c.recorder.mu.Lock()
	defer c.recorder.mu.Unlock()
	if c.cell == nil {
		return nil
	}
	c.cell.recording.Flush()
	return c.save(ctx, c.cell)
}

// Close finishes a cell that still runs, as when its kernel died.
func (c *call) Close() error {
	c.recorder.mu.Lock()
	defer c.recorder.mu.Unlock()
	return c.end(context.Background())
}

// record records an output and returns about how many bytes the notebook grew.
func (c *cell) record(e messages.Event, most int64) int64 {
	switch e := e.(type) {
	case messages.ClearOutput:
		c.recording.Clear(e.Wait)
		c.clears = true
		return 0
	case messages.Error:
		c.recording.Error(e.Name, e.Message, e.Traceback)
		return int64(e.Size())
	case messages.Display:
		if e.Update { // it takes the place of what was counted
			c.recording.Update(e.DisplayID, notebook.Bundle(e.Data), e.Metadata)
			return 0
		}
	case messages.Stream, messages.ExecuteResult:
	default:
		return 0
	}
	return c.output(e, most)
}

// output records what a cell showed, within its bound.
func (c *cell) output(e messages.Event, most int64) int64 {
	if c.clears {
		c.clears, c.recorded, c.omitted = false, 0, 0
	}
	size := int64(e.Size())
	if c.omitted > 0 || c.recorded+size > most {
		c.omitted += size
		return 0
	}
	c.recorded += size
	switch e := e.(type) {
	case messages.Stream:
		c.recording.Stream(string(e.Name), e.Text)
	case messages.Display:
		c.recording.Display(notebook.Bundle(e.Data), e.Metadata, e.DisplayID)
	case messages.ExecuteResult:
		c.recording.Result(c.prompt, notebook.Bundle(e.Data), e.Metadata, "")
	}
	return size
}
