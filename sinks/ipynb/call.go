package ipynb

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/internal/recording"
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
	*recording.Cell

	file *notebook.File
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
	return c.recorder.note(c.consume(ctx, e))
}

func (c *call) consume(ctx context.Context, e messages.Event) error {
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
		c.recorder.size += c.cell.Record(e)
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
	cell.Began()
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
	cell.Ended()
	cell.Finish(0)
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
	c.cell.Flush()
	return c.recorder.note(c.save(ctx, c.cell))
}

// Close finishes a cell that still runs, as when its kernel died.
func (c *call) Close() error {
	c.recorder.mu.Lock()
	defer c.recorder.mu.Unlock()
	return c.recorder.note(c.end(context.Background()))
}
