package cli

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
)

// call makes one call and writes what comes of it, in the form that the flags
// ask for. Nothing is written when the request is wrong.
func (a *app) call(ctx context.Context, session *coppice.Session, r coppice.Request, f runFlags, starting *console.Progress) (messages.Result, error) {
	if f.json {
		result, err := session.Execute(ctx, r)
		if _, refused := errors.AsType[*messages.NotStartedError](err); err != nil && !refused {
			return result, err
		}
		starting.Done()
		return result, a.WriteJSON(result)
	}
	return a.writeEvents(ctx, session.Stream(ctx, r), r, f, starting)
}

// writeEvents writes the events of a call, in the form that the flags ask for.
func (a *app) writeEvents(ctx context.Context, events iter.Seq2[messages.Event, error], r coppice.Request, f runFlags, starting *console.Progress) (messages.Result, error) {
	lines := sinks.NewEvents(a.Out)
	write := func(e messages.Event) error { return lines.Consume(ctx, e) }
	switch {
	case f.json:
		write = func(e messages.Event) error {
			if final, ok := e.(messages.Final); ok {
				return a.WriteJSON(final.Result)
			}
			return nil
		}
	case f.blocks:
		write = a.blocks(r, f)
	case f.quiet:
		write = quiet(a.Console, r, f)
	case !f.events:
		drawing := render.NewRun(render.RunOptions{Style: a.Style(a.Out), Expand: f.expand, Cells: r.Cells, Timeout: r.Timeout, Now: time.Now})
		write = func(e messages.Event) error {
			if _, asks := e.(messages.InputRequest); asks && a.Err.Terminal && r.Input != nil {
				return nil // who answers has shown it
			}
			a.Out.Draw(drawing.Event(e))
			return nil
		}
	}
	var result messages.Result
	for e, err := range events {
		if err != nil {
			return result, err
		}
		starting.Done()
		if err := write(e); err != nil {
			return result, err
		}
		if final, ok := e.(messages.Final); ok {
			result = final.Result
		}
	}
	return result, nil
}

// blocks writes a call that has ended, each cell with what it showed.
func (a *app) blocks(r coppice.Request, f runFlags) func(messages.Event) error {
	shown := map[int][]messages.Bundle{}
	return func(e messages.Event) error {
		switch e := e.(type) {
		case messages.Display:
			shown[e.Cell] = append(shown[e.Cell], e.Data)
		case messages.ExecuteResult:
			shown[e.Cell] = append(shown[e.Cell], e.Data)
		case messages.Final:
			o := render.RunOptions{Style: a.Style(a.Out), Expand: f.expand, Cells: r.Cells, Timeout: r.Timeout, Shown: shown}
			a.Out.Lines(render.CellView(o, e.Result)...)
		}
		return nil
	}
}
