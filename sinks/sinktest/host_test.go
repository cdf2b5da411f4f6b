package sinktest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/sinks/sinktest"
)

// lines is a sink as a host may write one: it counts the lines that code prints.
// The hub calls it from one goroutine at a time, so it needs no lock.
type lines struct {
	count  int
	closed bool
}

func (l *lines) Consume(ctx context.Context, e messages.Event) error {
	if err := context.Cause(ctx); err != nil {
		return err // not taken
	}
	if s, ok := e.(messages.Stream); ok {
		for _, r := range s.Text {
			if r == '\n' {
				l.count++
			}
		}
	}
	return nil
}

func (l *lines) Flush(context.Context) error { return nil }
func (l *lines) Close() error                { l.closed = true; return nil }

// A host runs the suite over a sink of its own like this.
func TestSinkOfAHost(t *testing.T) {
	t.Parallel()
	sinktest.Run(t, func(*testing.T) sinks.Sink { return &lines{} })
}

// wrong is lines with one thing that is wrong about it.
type wrong struct {
	lines
	what    string
	flushes int
}

func (w *wrong) Consume(ctx context.Context, e messages.Event) error {
	switch e := e.(type) {
	case messages.Display:
		switch {
		case w.what == "changes an event" && e.Data != nil:
			e.Data["x-more"] = messages.RawJSON(`1`)
		case w.what == "wants every display whole" && e.Data == nil:
			return errors.New("no data")
		}
	case messages.Final:
		if w.what == "refuses a type" {
			return errors.New("what is this?")
		}
	}
	switch {
	case w.what == "hangs" && e.Type() == "final":
		<-ctx.Done()
	case w.what == "hangs when the context has ended" && ctx.Err() != nil:
		select {}
	case w.what == "hides why it gave up" && ctx.Err() != nil:
		return errors.New("given up")
	}
	return w.lines.Consume(ctx, e)
}

func (w *wrong) Flush(ctx context.Context) error {
	if w.flushes++; w.what == "flushes once" && w.flushes > 1 {
		return errors.New("flushed already")
	}
	return w.lines.Flush(ctx)
}

func (w *wrong) Close() error {
	if w.what == "cannot close unused" && w.count == 0 {
		return errors.New("nothing to close")
	}
	return w.lines.Close()
}

// wrongVariable names to a process of this test what its sink does wrong.
const wrongVariable = "COPPICE_TEST_WRONG_SINK"

// TestWrongSink is run by TestTheSuiteFindsWhatIsWrong in a process of its own.
func TestWrongSink(t *testing.T) {
	if what := os.Getenv(wrongVariable); what != "" {
		sinktest.Run(t, func(*testing.T) sinks.Sink { return &wrong{what: what} })
	}
}

// TestTheSuiteFindsWhatIsWrong: a suite that no sink fails is worth nothing. The
// sinks that hang take the suite's whole patience, so they are left to the full
// run.
func TestTheSuiteFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	found := map[string]string{
		"changes an event":          "leaves_events_as_they_are",
		"wants every display whole": "takes_every_event",
		"refuses a type":            "takes_every_event",
		"hides why it gave up":      "returns_when_its_context_ends",
		"flushes once":              "flushes_more_than_once",
		"cannot close unused":       "closes_unused",
	}
	if os.Getenv("COPPICE_TEST_FULL") != "" {
		found["hangs"] = "takes_every_event"
		found["hangs when the context has ended"] = "returns_when_its_context_ends"
	}
	for what, by := range found {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWrongSink$/^"+by+"$", "-test.v", "-test.timeout=2m")
			cmd.Env = append(os.Environ(), wrongVariable+"="+what)
			out, err := cmd.CombinedOutput()
			require.Error(t, err, "the suite holds a sink for good that %s", what)
			require.Regexp(t, fmt.Sprintf(`(?m)^ +--- FAIL: TestWrongSink/%s `, by), string(out))
		})
	}
}
