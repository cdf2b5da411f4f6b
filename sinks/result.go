package sinks

import (
	"context"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/result"
)

// resultSink keeps what a call's result shows.
type resultSink struct{ fold *result.Fold }

// Consume folds the event in. It never fails and never blocks for long: what it
// waits for is the file system.
func (s *resultSink) Consume(_ context.Context, e messages.Event) error {
	s.fold.Add(e)
	return nil
}

// Flush does nothing: what it would make visible is the Output.
func (s *resultSink) Flush(context.Context) error { return nil }

// Close closes the artifact. That it is not whole was said in the output.
func (s *resultSink) Close() error {
	_ = s.fold.Close()
	return nil
}

// BuildText returns the text of a result; see [result.BuildText].
func BuildText(r messages.Result) string { return result.BuildText(r) }
