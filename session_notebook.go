package coppice

import (
	"context"
	"iter"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
	"github.com/coppice-run/coppice/notebook/run"
)

// RunNotebook runs cells of a notebook in the session and records in the document
// what they show, as [run.Notebook] has it:
//
//	file, err := notebook.Open(ctx, "report.ipynb")
//	…
//	report, err := session.RunNotebook(ctx, file.Document, run.Options{Save: file.Save})
//
// The cells have no limit of time but that of the options; Options.Timeout of the
// host is not for them. The document belongs to RunNotebook until it returns. Any
// goroutine may call it.
//
// The error is about what is not the cells' doing: a *RequestError, one of those of
// [run.Notebook], or of [Session.Stream]. The report is complete up to it.
func (s *Session) RunNotebook(ctx context.Context, doc *notebook.Document, o run.Options) (run.Report, error) {
	refused := run.Report{Outcome: messages.OutcomeNotStarted, Next: -1}
	switch {
	case ctx == nil:
		return refused, errNoContext
	case doc == nil:
		return refused, &RequestError{"notebook", "there is no notebook; open one with notebook.Open, or make it with notebook.New"}
	}
	return run.Notebook(ctx, doc, o, func(ctx context.Context, c run.Call) iter.Seq2[messages.Event, error] {
		timeout := c.Timeout
		if timeout == 0 {
			timeout = NoTimeout // for a Request 0 is the host's
		}
		return s.Stream(ctx, Request{Cells: []messages.Cell{c.Cell}, Timeout: timeout, Owner: c.Owner, Env: c.Env, Input: c.Input, Count: true, Comms: true})
	})
}
