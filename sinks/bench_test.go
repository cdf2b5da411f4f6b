package sinks_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
)

func BenchmarkEmit(b *testing.B) {
	hub := start(b, sinks.HubOptions{Metrics: &sinks.Metrics{}})
	c, err := hub.Open(b.Context(), messages.Execute{ID: "e", Cells: make([]messages.Cell, 1)})
	require.NoError(b, err)
	defer c.Close()
	var e messages.Event = messages.Stream{Name: messages.StdoutStream, Text: "a line of output that is about as long as they are\n"}
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Emit(ctx, e); err != nil {
			b.Fatal(err)
		}
	}
	c.Flush(ctx)
}

// BenchmarkCall is one small call: open, three events, flush, close.
func BenchmarkCall(b *testing.B) {
	hub := start(b, sinks.HubOptions{})
	exec := messages.Execute{ID: "e", Key: messages.SessionKey{Session: "s"}, Cells: make([]messages.Cell, 1)}
	events := []messages.Event{
		messages.Status{Status: messages.CellRunning},
		messages.ExecuteResult{Data: messages.Bundle{messages.MIMEPlain: messages.RawJSON(`"2"`)}},
		messages.Status{Status: messages.CellComplete},
	}
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		c, err := hub.Open(ctx, exec)
		if err != nil {
			b.Fatal(err)
		}
		for _, e := range events {
			_ = c.Emit(ctx, e)
		}
		c.Flush(ctx)
		c.Close()
	}
}

// What an event and a call cost is paid for all output. The numbers are what they
// take now; whoever lowers one lowers it here too.
func TestAllocations(t *testing.T) {
	hub := start(t, sinks.HubOptions{Metrics: &sinks.Metrics{}})
	exec := messages.Execute{ID: "e", Key: messages.SessionKey{Session: "s"}, Cells: make([]messages.Cell, 1)}
	c, err := hub.Open(t.Context(), exec)
	require.NoError(t, err)
	var line messages.Event = messages.Stream{Name: messages.StdoutStream, Text: "a line of output\n"}
	require.LessOrEqual(t, testing.AllocsPerRun(500, func() { _ = c.Emit(t.Context(), line) }), 1.0, "an event")
	c.Flush(t.Context())
	c.Close()
	require.LessOrEqual(t, testing.AllocsPerRun(200, func() {
		c, err := hub.Open(t.Context(), exec)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Emit(t.Context(), line)
		c.Flush(t.Context())
		c.Close()
	}), 28.0, "a call with one event")
}
