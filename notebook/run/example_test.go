package run_test

import (
	"context"
	"fmt"
	"iter"
	"log"
	"strings"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
	"github.com/coppice-run/coppice/notebook/run"
)

// A session is whatever makes calls: this one shouts what it is given.
func ExampleNotebook() {
	execute := func(_ context.Context, c run.Call) iter.Seq2[messages.Event, error] {
		return func(yield func(messages.Event, error) bool) {
			done := messages.CellResult{Outcome: messages.OutcomeOK, ExecutionCount: 1}
			_ = yield(messages.Status{Status: messages.CellRunning}, nil) &&
				yield(messages.Stream{Name: messages.StdoutStream, Text: strings.ToUpper(c.Cell.Code)}, nil) &&
				yield(messages.Status{Status: messages.CellComplete}, nil) &&
				yield(messages.Final{Result: messages.Result{Outcome: messages.OutcomeOK, Cells: []messages.CellResult{done}}}, nil)
		}
	}
	doc := notebook.New()
	if _, err := doc.Append(notebook.NewCell{Source: "hello"}); err != nil {
		log.Fatal(err)
	}
	report, err := run.Notebook(context.Background(), doc, run.Options{}, execute)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Outcome, doc.Cell(0).Outputs()[0].Text)
	// Output: ok HELLO
}
