package sinktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
)

// Patience is how long one call of a sink may take before the suite calls it a
// hang.
const Patience = 10 * time.Second

// Open makes a sink that has not been used. What the sink writes to should take
// everything, since it is not read.
type Open func(t *testing.T) sinks.Sink

// Run runs the suite.
func Run(t *testing.T, open Open) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Open){
		"takes every event":               everyEvent,
		"takes events in any order":       anyOrder,
		"takes large events":              large,
		"leaves events as they are":       unchanged,
		"flushes more than once":          flushes,
		"closes unused":                   unused,
		"returns when its context ends":   ended,
		"shares nothing with another one": alone,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open)
		})
	}
}

// Events returns one event, or more, of every type, with the odd values that
// kernels do send. The caller may change the slice.
func Events() []messages.Event {
	at := func(seq uint64, cell int) messages.Position { return messages.Position{Seq: seq, Cell: cell} }
	raw := func(s string) messages.RawJSON { return messages.RawJSON(s) }
	return []messages.Event{
		messages.Status{Position: at(1, 0), Status: messages.CellRunning},
		messages.Status{Position: at(2, 0), Data: raw(`{"op":"read","path":"a"}`)},
		messages.Status{Position: at(3, 0), Data: raw(`[]`)},
		messages.Stream{Position: at(4, 0), Name: messages.StdoutStream, Text: "out\x1b[31m red \x1b]0;t\x07\r\b\xff\x00\n"},
		messages.Stream{Position: at(5, 0), Name: messages.StderrStream, Text: ""},
		messages.Display{Position: at(6, 0), Data: messages.Bundle{
			messages.MIMEPlain: raw(`"plain"`), messages.MIMEHTML: raw(`["<b>","html"]`), messages.MIMEPNG: raw(`"AAAA\n"`), messages.MIMEJSON: raw(`{"a":[1]}`),
		}, Metadata: raw(`{}`), DisplayID: "d"},
		messages.Display{Position: at(7, 0), Data: messages.Bundle{messages.MIMEMarkdown: raw(`"*new*"`)}, DisplayID: "d", Update: true},
		messages.Display{Position: at(8, 0), DisplayID: "unknown", Update: true},
		messages.Display{Position: at(9, 0), Data: messages.Bundle{messages.MIMEPlain: raw(`42`), "": raw(`null`)}},
		messages.ExecuteResult{Position: at(10, 0), Data: messages.Bundle{messages.MIMEPlain: raw(`"2"`)}, ExecutionCount: 1},
		messages.ClearOutput{Position: at(11, 0), Wait: true},
		messages.ClearOutput{Position: at(12, 0)},
		messages.Error{Position: at(13, 0), ErrorDetails: messages.ErrorDetails{Name: "ValueError", Message: "x", Traceback: []string{"\x1b[31mValueError\x1b[0m: x"}}},
		messages.Error{Position: at(14, 0)},
		messages.InputRequest{Position: at(15, 0), ID: "1", Prompt: "name? ", Password: true},
		messages.Notice{Position: at(16, -1), Code: "code", Text: "a notice"},
		messages.Status{Position: at(17, 0), Status: messages.CellError},
		messages.Final{Position: at(18, -1), Result: messages.Result{Outcome: messages.OutcomeError}},
	}
}

// within fails the test when f does not return in time.
func within(t *testing.T, what string, f func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		t.Fatalf("%s did not return within %v", what, Patience)
		return nil
	}
}

// feed gives events to s, and ends it.
func feed(t *testing.T, s sinks.Sink, events []messages.Event) {
	t.Helper()
	for _, e := range events {
		require.NoError(t, within(t, "Consume", func() error { return s.Consume(t.Context(), e) }), "an event of type %s", e.Type())
	}
	require.NoError(t, within(t, "Flush", func() error { return s.Flush(t.Context()) }))
	require.NoError(t, within(t, "Close", s.Close))
}

func everyEvent(t *testing.T, open Open) { feed(t, open(t), Events()) }

// anyOrder holds for threads that print late and for updates of what was
// cleared.
func anyOrder(t *testing.T, open Open) {
	var events []messages.Event
	for cell := range 3 {
		all := Events()
		for i := range all {
			e := all[len(all)-1-i]
			p := e.Pos()
			if p.Cell == 0 {
				p.Cell = (cell + i) % 3
			}
			events = append(events, e.At(p))
		}
	}
	feed(t, open(t), events)
}

func large(t *testing.T, open Open) {
	text := strings.Repeat("a line of output\n", 1<<16)
	quoted, err := json.Marshal(text)
	require.NoError(t, err)
	feed(t, open(t), []messages.Event{
		messages.Stream{Name: messages.StdoutStream, Text: text},
		messages.Stream{Name: messages.StderrStream, Text: strings.Repeat("no newline ", 1<<16)},
		messages.Display{Data: messages.Bundle{messages.MIMEPlain: quoted}},
		messages.Display{Data: messages.Bundle{messages.MIMEPNG: messages.RawJSON(`"` + strings.Repeat("AAAA", 1<<18) + `"`)}},
	})
}

func unchanged(t *testing.T, open Open) {
	events := Events()
	feed(t, open(t), events)
	require.Empty(t, cmp.Diff(Events(), events), "the sink changed an event that others see too")
}

func flushes(t *testing.T, open Open) {
	s := open(t)
	flush := func() {
		require.NoError(t, within(t, "Flush", func() error { return s.Flush(t.Context()) }))
	}
	flush()
	for _, e := range Events() {
		require.NoError(t, within(t, "Consume", func() error { return s.Consume(t.Context(), e) }))
		flush()
	}
	flush()
	require.NoError(t, within(t, "Close", s.Close))
}

func unused(t *testing.T, open Open) { require.NoError(t, within(t, "Close", open(t).Close)) }

// ended calls a sink with a context that has ended: it may do its work or refuse
// it, with the context's error or cause, but it returns.
func ended(t *testing.T, open Open) {
	s := open(t)
	cause := errors.New("the call was given up")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	allowed := func(what string, err error) {
		if err != nil && !errors.Is(err, cause) && !errors.Is(err, context.Canceled) {
			t.Errorf("%s with an ended context returned %v", what, err)
		}
	}
	for _, e := range Events() {
		allowed("Consume", within(t, "Consume", func() error { return s.Consume(ctx, e) }))
	}
	allowed("Flush", within(t, "Flush", func() error { return s.Flush(ctx) }))
	require.NoError(t, within(t, "Close", s.Close))
}

// alone runs several sinks at once, as the calls of several sessions do.
func alone(t *testing.T, open Open) {
	all := make([]sinks.Sink, 4)
	for i := range all {
		all[i] = open(t)
	}
	errs := make([]error, len(all)) // read when all have ended: a test that gave up takes no word any more
	var wg sync.WaitGroup
	for i, s := range all {
		wg.Go(func() {
			for _, e := range Events() {
				if err := s.Consume(t.Context(), e); err != nil {
					errs[i] = fmt.Errorf("consume an event of type %s: %w", e.Type(), err)
					return
				}
			}
			errs[i] = errors.Join(s.Flush(t.Context()), s.Close())
		})
	}
	require.NoError(t, within(t, "A sink beside other sinks", func() error {
		wg.Wait()
		return errors.Join(errs...)
	}))
}
