package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/sinks/result"
)

// concluded gives the events of an execution an end when the server does not: a script that
// reads --json or --events has an outcome then, as it has of a kernel that is lost here.
type concluded struct {
	exec messages.Execute
	// reads says that a program reads the events: it also learns of code that never began.
	reads bool
	// err is why the server did not say how the execution ended; nil: it did.
	err error
}

// of passes events on, with a [messages.Final] in place of an error. That of a request which is
// wrong is passed on: it is about the command line.
func (c *concluded) of(ctx context.Context, events iter.Seq2[messages.Event, error]) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		shown := result.New(result.Options{}, len(c.exec.Cells))
		defer func() { _ = shown.Close() }() // it keeps nothing in a file
		cells := messages.Pending(c.exec.Cells)
		last := uint64(0)
		for e, err := range events {
			if err == nil {
				last = e.Pos().Seq
				shown.Add(e)
				noted(cells, e)
				if !yield(e, nil) {
					return
				}
				continue
			}
			if console.WrongRequest(err) {
				yield(nil, err)
				return
			}
			told, isTold := errors.AsType[*client.Error](err)
			r := messages.NotStarted(c.exec, "", refusal(told), err.Error())
			r.Text = sinks.BuildText(r)
			if begun := last > 0 || !isTold || told.Code == "lost"; begun {
				// Whether the variables are still there is not known either: State says nothing.
				r = lost(ctx, r, cells, shown.Output(), err)
			}
			c.err = errors.New(r.Reason)
			if c.reads || r.Outcome != messages.OutcomeNotStarted {
				yield(messages.Final{Position: messages.Position{Seq: last + 1, Cell: -1}, Result: r}, nil)
			}
			return
		}
	}
}

// lost is the result of code of which nobody knows what became of it, with what it has shown.
func lost(ctx context.Context, r messages.Result, cells []messages.CellResult, shown messages.Output, err error) messages.Result {
	r.Outcome, r.Refusal, r.Remedy, r.RetryAfterMS = messages.OutcomeLost, "", "", 0
	r.Progress = messages.Progress{Cells: len(cells), Stop: messages.StopDied}
	if _, told := errors.AsType[*client.Error](err); !told {
		r.Reason = fmt.Sprintf("the coppice serve that had the code does not answer any more (%v): what became of the code is not known; "+
			"look at what it was to do before you run it again, with coppice serve started anew: with --keep-sessions it has what became of it (coppice sessions logs %s)", err, r.Session)
	}
	if ctx.Err() != nil { // the code was to stop, which nobody has confirmed
		r.Outcome, r.Progress.Stop = messages.OutcomeCancelled, messages.StopCancel
	}
	r.Cells, r.JSON, r.Images, r.Truncation, r.NotKept = cells, shown.JSON, shown.Images, shown.Truncation, shown.NotKept
	for _, c := range shown.Cells {
		if c.Index >= 0 && c.Index < len(cells) {
			cell := &cells[c.Index]
			cell.Output, cell.Events, cell.HasMarkdown = strings.Trim(c.Text, "\n"), c.Events, c.HasMarkdown
		}
	}
	for i := range cells {
		if cells[i].Status == messages.CellRunning {
			cells[i].Outcome = r.Outcome
		}
	}
	output := r
	output.Outcome, output.Reason = messages.OutcomeOK, "" // BuildText would say that the kernel has died
	why := r.Reason
	if first, size := utf8.DecodeRuneInString(why); size > 0 { // a server may give no reason
		why = string(unicode.ToUpper(first)) + why[size:] + "."
	}
	r.Text = strings.TrimSpace(sinks.BuildText(output) + "\n\n" + why)
	return r
}

// noted keeps in cells what an event says of how one of them does.
func noted(cells []messages.CellResult, e messages.Event) {
	i := e.Pos().Cell
	if i < 0 || i >= len(cells) {
		return
	}
	cell := &cells[i]
	switch e := e.(type) {
	case messages.Status:
		switch e.Status {
		case messages.CellComplete:
			cell.Status, cell.Outcome = e.Status, messages.OutcomeOK
		case messages.CellError:
			cell.Status, cell.Outcome = e.Status, messages.OutcomeError
		case messages.CellRunning:
			cell.Status = e.Status
		case messages.CellPending:
		}
	case messages.Error:
		cell.Error = &e.ErrorDetails
	default:
	}
}

// refusal is why a server has not begun code, in the words of a result. nil: it did not say.
func refusal(told *client.Error) messages.Refusal {
	switch {
	case told == nil:
		return ""
	case told.Code == "overloaded":
		return messages.RefusedOverloaded
	case told.Code == "draining", told.Code == "unavailable":
		return messages.RefusedDraining
	default:
		return messages.RefusedRequest
	}
}
