// Package spans makes OpenTelemetry spans of what a host runs: one for each
// call, and one below it for each cell.
//
//	s := spans.New(spans.Options{Tracer: provider.Tracer("coppice")})
//	host, err := coppice.Start(ctx, coppice.Options{Sinks: []sinks.Attachment{s.Attachment()}})
//
// # Guarantees
//
//   - A span is built from events alone; nothing in the runtime knows of it.
//   - A span begins when the first event of its call or cell is handled and ends
//     when the last one is; a call whose last cell never ended ends with Close.
//   - Code, output and values are never in a span: attributes hold the call's
//     id, the session's name, the number of a cell, sizes, and the class of an
//     exception with the place that it came from.
//
// It is the only package of the project that links OpenTelemetry's API, so a
// host that does not import it does not have it. No exporter comes with it.
package spans

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
)

// Options make [Spans].
type Options struct {
	// Tracer makes the spans. Required.
	Tracer trace.Tracer
}

// Spans makes spans of all calls. Any goroutine may use it.
type Spans struct{ o Options }

// New returns a maker of spans.
func New(o Options) *Spans { return &Spans{o: o} }

// Attachment connects it to all calls of a host. It is lossy: a span is not
// worth that a call waits.
func (s *Spans) Attachment() sinks.Attachment {
	return sinks.Attachment{Name: "spans", For: s.For, Lossy: true}
}

// For returns the sink of one call. The span in ctx, if there is one, is the parent of
// the call's.
func (s *Spans) For(ctx context.Context, exec messages.Execute) sinks.Sink {
	return &call{o: s.o, exec: exec, parent: context.WithoutCancel(ctx)}
}

// call is the sink of one call. All of it belongs to the actor that calls it.
type call struct {
	o      Options
	exec   messages.Execute
	parent context.Context //nolint:containedctx // it carries the parent span, and nothing else is asked of it

	ctx    context.Context //nolint:containedctx // of the call's span
	span   trace.Span      // nil before the first event
	cell   trace.Span      // nil between cells
	bytes  int64
	failed bool
}

// Consume turns e into what a span knows.
func (s *call) Consume(_ context.Context, e messages.Event) error {
	if s.span == nil {
		s.ctx, s.span = s.o.Tracer.Start(s.parent, "coppice.call", trace.WithAttributes(
			attribute.String("coppice.exec", s.exec.ID), attribute.String("coppice.session", s.exec.Key.Session),
			attribute.Int("coppice.cells", len(s.exec.Cells)),
		))
	}
	switch e := e.(type) {
	case messages.Status:
		s.step(e)
	case messages.Stream:
		s.bytes += int64(len(e.Text))
	case messages.Error:
		s.raised(e)
	case messages.Notice:
		s.at().AddEvent("coppice.notice", trace.WithAttributes(attribute.String("coppice.code", e.Code)))
	}
	return nil
}

// at returns the innermost span that is open.
func (s *call) at() trace.Span {
	if s.cell != nil {
		return s.cell
	}
	return s.span
}

func (s *call) step(e messages.Status) {
	switch e.Status {
	case messages.CellRunning:
		s.endCell()
		_, s.cell = s.o.Tracer.Start(s.ctx, "coppice.cell", trace.WithAttributes(attribute.Int("coppice.cell", e.Cell)))
	case messages.CellError:
		if s.cell != nil && !s.failed {
			s.cell.SetStatus(codes.Error, "the cell did not complete")
		}
		s.span.SetStatus(codes.Error, "a cell did not complete")
		s.endCell()
	case messages.CellComplete:
		s.endCell()
	case messages.CellPending:
	}
}

func (s *call) raised(e messages.Error) {
	s.failed = true
	attrs := []attribute.KeyValue{attribute.String("exception.type", e.Name)}
	if e.Line > 0 {
		attrs = append(attrs, attribute.String("code.filepath", e.Filename), attribute.Int("code.lineno", e.Line))
	}
	s.at().AddEvent("exception", trace.WithAttributes(attrs...))
	s.at().SetStatus(codes.Error, e.Name)
}

func (s *call) endCell() {
	if s.cell == nil {
		return
	}
	s.cell.SetAttributes(attribute.Int64("coppice.output_bytes", s.bytes))
	s.cell.End()
	s.cell, s.bytes, s.failed = nil, 0, false
}

// Flush does nothing: spans go where the tracer sends them, when they end.
func (s *call) Flush(context.Context) error { return nil }

// Close ends what is still open.
func (s *call) Close() error {
	s.endCell()
	if s.span != nil {
		s.span.End()
	}
	return nil
}

var _ sinks.Sink = (*call)(nil)
