package spans_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/sinks/sinktest"
	"github.com/coppice-run/coppice/sinks/spans"
)

func tracer(t *testing.T) (*sdk.TracerProvider, *tracetest.InMemoryExporter) {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(exporter))
	t.Cleanup(func() { require.NoError(t, provider.Shutdown(context.Background())) })
	return provider, exporter
}

func TestItIsASink(t *testing.T) {
	t.Parallel()
	provider, _ := tracer(t)
	s := spans.New(spans.Options{Tracer: provider.Tracer("t")})
	sinktest.Run(t, func(*testing.T) sinks.Sink { return s.For(t.Context(), messages.Execute{}) })
}

func TestSpansOfACall(t *testing.T) {
	t.Parallel()
	provider, exporter := tracer(t)
	parent, root := provider.Tracer("t").Start(context.Background(), "host")
	s := spans.New(spans.Options{Tracer: provider.Tracer("t")}).
		For(parent, messages.Execute{ID: "x1", Key: messages.SessionKey{Session: "s"}, Cells: make([]messages.Cell, 3)})
	at := func(cell int) messages.Position { return messages.Position{Cell: cell} }
	for _, e := range []messages.Event{
		messages.Status{Position: at(0), Status: messages.CellRunning},
		messages.Stream{Position: at(0), Name: messages.StdoutStream, Text: "secret"},
		messages.Status{Position: at(0), Status: messages.CellComplete},
		messages.Status{Position: at(1), Status: messages.CellRunning},
		messages.Error{Position: at(1), ErrorDetails: messages.ErrorDetails{Name: "ValueError", Message: "secret", ErrorPlace: messages.ErrorPlace{Filename: "<cell 2>", Line: 4}}},
		messages.Status{Position: at(1), Status: messages.CellError},
	} {
		require.NoError(t, s.Consume(t.Context(), e))
	}
	require.NoError(t, s.Close())
	root.End()

	got := exporter.GetSpans()
	require.Len(t, got, 4)
	first, second, call, host := got[0], got[1], got[2], got[3]
	require.Equal(t, []string{"coppice.cell", "coppice.cell", "coppice.call", "host"}, []string{first.Name, second.Name, call.Name, host.Name})
	require.Equal(t, call.SpanContext.SpanID(), first.Parent.SpanID())
	require.Equal(t, call.SpanContext.SpanID(), second.Parent.SpanID())
	require.Equal(t, host.SpanContext.SpanID(), call.Parent.SpanID())
	require.Equal(t, codes.Unset, first.Status.Code)
	require.Equal(t, sdk.Status{Code: codes.Error, Description: "ValueError"}, second.Status)
	require.Equal(t, codes.Error, call.Status.Code)
	require.Equal(t, "exception", second.Events[0].Name)
	texts := ""
	for _, span := range got {
		for _, a := range span.Attributes {
			texts += string(a.Key) + "=" + a.Value.String() + ";"
		}
	}
	require.Contains(t, texts, "coppice.exec=x1;")
	require.Contains(t, texts, "coppice.output_bytes=6;")
	require.NotContains(t, texts, "secret")
}

// TestWhatNeverEndedEnds: a call that was cut off leaves no span open.
func TestWhatNeverEndedEnds(t *testing.T) {
	t.Parallel()
	provider, exporter := tracer(t)
	s := spans.New(spans.Options{Tracer: provider.Tracer("t")}).For(t.Context(), messages.Execute{})
	require.NoError(t, s.Consume(t.Context(), messages.Status{Status: messages.CellRunning}))
	require.NoError(t, s.Close())
	require.Len(t, exporter.GetSpans(), 2)
	require.False(t, exporter.GetSpans()[1].Parent.IsValid())
}
