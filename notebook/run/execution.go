package run

import (
	"context"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/internal/recording"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
)

// slowSave is how many times as long as a save takes must pass before the next
// one, so that saving a large notebook does not hold up its cells.
const slowSave = 10

// mostUnsaved is how much output may wait for that, in bytes.
const mostUnsaved = 16 << 20

// execution is that of one cell. It belongs to the goroutine of its run.
type execution struct {
	run         *run
	place, cell int
	recording   *recording.Cell  // nil until the cell runs: one that does not keeps what it showed
	final       *messages.Result // nil until the call has ended
	dirty       bool             // the recording holds what is not saved
}

// arrival is what the session's stream yields.
type arrival struct {
	event messages.Event
	err   error
}

// make makes the call and returns when it has ended, and with it the goroutine
// that reads the stream.
func (x *execution) make(ctx context.Context, request Call) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	arrivals := make(chan arrival)
	go func() { // ends with the stream; this function reads until it has ended
		defer close(arrivals)
		for e, err := range x.run.execute(ctx, request) {
			arrivals <- arrival{e, err}
		}
	}()
	tick := time.NewTicker(x.run.o.SaveEvery)
	defer tick.Stop()
	// What cells before this one showed may still wait for its save.
	due := time.NewTimer(time.Until(x.run.due()))
	defer due.Stop()
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
				err = x.event(ctx, a.event)
			}
		case <-tick.C:
			if first == nil && x.dirty && !time.Now().Before(x.run.due()) {
				err = x.saveMeanwhile(ctx)
			}
		case <-due.C:
			if first == nil && x.run.unsaved {
				err = x.saveMeanwhile(ctx)
			}
		}
		if err != nil && first == nil {
			first = err
			cancel()
		}
	}
}

// saveMeanwhile saves what the cells before showed, and this one so far.
func (x *execution) saveMeanwhile(ctx context.Context) error {
	if x.dirty {
		x.recording.Flush()
		x.dirty = false
	}
	return x.run.save(ctx)
}

// event records one event.
func (x *execution) event(ctx context.Context, e messages.Event) error {
	if c, ok := e.(messages.Comm); ok {
		x.run.widgets.comm(c)
		return nil
	}
	x.run.o.Progress(Step{Kind: CellEvent, Place: x.place, Cell: x.cell, Event: e})
	switch e := e.(type) {
	case messages.InputRequest, messages.Notice:
		return nil // for whoever watches the run, and no output of the cell
	case messages.Final:
		x.final = &e.Result
		return nil
	}
	if x.recording == nil {
		began, err := recording.Begin(x.run.recorder, notebook.At(x.cell), 0, x.run.o.MaxOutput)
		if err != nil {
			return fmt.Errorf("record cell %d: %w", x.cell, err)
		}
		x.recording = began
	}
	if x.run.widgets.takes(e) {
		return nil
	}
	x.dirty = true
	if x.run.waiting += x.recording.Record(e); x.run.waiting >= mostUnsaved {
		return x.saveMeanwhile(ctx)
	}
	return nil
}
