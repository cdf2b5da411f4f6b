package sinks_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/supervisor"
)

// A hub is a child of the tree; each call has an outlet of its own.
func ExampleHub() {
	ctx := context.Background()
	hub, err := sinks.NewHub(sinks.HubOptions{})
	if err != nil {
		log.Fatal(err)
	}
	system, err := supervisor.Start(ctx, supervisor.SystemOptions{Children: []supervisor.Spec{hub.Spec()}})
	if err != nil {
		log.Fatal(err)
	}
	defer system.Shutdown(ctx)

	exec := messages.Execute{ID: messages.NewID(), Cells: []messages.Cell{{Code: "…"}}}
	out, err := hub.Open(ctx, exec, sinks.NewEvents(os.Stdout))
	if err != nil {
		log.Fatal(err)
	}
	defer out.Close()

	// What a kernel does while the cell runs.
	for _, text := range []string{" 50 %\r", "100 %\n"} {
		if err := out.Emit(ctx, messages.Stream{Name: messages.StdoutStream, Text: text}); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Printf("%q\n", out.Flush(ctx).Cells[0].Text)
	// Output:
	// {"seq":1,"cell":0,"type":"stdout","text":" 50 %\r"}
	// {"seq":2,"cell":0,"type":"stdout","text":"100 %\n"}
	// "100 %\n"
}

// loud is a sink of a host: it counts what code prints, for the call that it was
// made for.
type loud struct{ bytes int }

func (l *loud) Consume(_ context.Context, e messages.Event) error {
	if s, ok := e.(messages.Stream); ok {
		l.bytes += len(s.Text)
	}
	return nil
}

func (l *loud) Flush(context.Context) error { fmt.Println(l.bytes, "bytes were printed"); return nil }
func (l *loud) Close() error                { return nil }

// A host brings sinks of its own. The suite in package sinktest holds whether
// they keep the contract:
//
//	func TestLoud(t *testing.T) {
//		sinktest.Run(t, func(*testing.T) sinks.Sink { return &loud{} })
//	}
func ExampleSink() {
	ctx := context.Background()
	hub, err := sinks.NewHub(sinks.HubOptions{})
	if err != nil {
		log.Fatal(err)
	}
	system, err := supervisor.Start(ctx, supervisor.SystemOptions{Children: []supervisor.Spec{hub.Spec()}})
	if err != nil {
		log.Fatal(err)
	}
	defer system.Shutdown(ctx)

	out, err := hub.Open(ctx, messages.Execute{ID: messages.NewID(), Cells: make([]messages.Cell, 1)}, &loud{})
	if err != nil {
		log.Fatal(err)
	}
	defer out.Close()
	if err := out.Emit(ctx, messages.Stream{Name: messages.StdoutStream, Text: "hello\n"}); err != nil {
		log.Fatal(err)
	}
	out.Flush(ctx)
	// Output: 6 bytes were printed
}

// The text of a result is what a model reads.
func ExampleBuildText() {
	one := 1
	fmt.Println(sinks.BuildText(messages.Result{
		Outcome: messages.OutcomeError, State: messages.StateKept,
		Cells: []messages.CellResult{
			{Title: "load", Status: messages.CellComplete, Outcome: messages.OutcomeOK},
			{Index: 1, Title: "plot", Status: messages.CellError, Outcome: messages.OutcomeError, ExitCode: &one, Output: "NameError: name 'df' is not defined\n"},
		},
	}))
	// Output:
	// [1/2] load (ok)
	//
	// [2/2] plot
	// NameError: name 'df' is not defined
	//
	// Cell 2 failed (exit code 1). Earlier cells succeeded—their state persists. Fix only cell 2.
}
