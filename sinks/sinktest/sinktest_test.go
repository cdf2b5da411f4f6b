package sinktest_test

import (
	"io"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/sinks/sinktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOurSinks(t *testing.T) {
	t.Parallel()
	exec := messages.Execute{ID: "id", Key: messages.SessionKey{Session: "s"}, Cells: make([]messages.Cell, 1)}
	journals := func(t *testing.T) sinks.Sink {
		j, err := sinks.OpenJournal(sinks.JournalOptions{Path: filepath.Join(t.TempDir(), "journal.jsonl"), MaxBytes: 2000})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, j.Close()) })
		return j.For(t.Context(), exec)
	}
	for name, open := range map[string]sinktest.Open{
		"events":  func(*testing.T) sinks.Sink { return sinks.NewEvents(io.Discard) },
		"journal": journals,
		"channel": func(t *testing.T) sinks.Sink {
			c := sinks.NewChannel(1000)
			var wg sync.WaitGroup
			wg.Go(func() {
				for range c.Events() {
				}
			})
			t.Cleanup(func() { c.Finish(); wg.Wait() })
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sinktest.Run(t, open)
		})
	}
}

// TestEventsAreComplete: the suite has an event of every type.
func TestEventsAreComplete(t *testing.T) {
	t.Parallel()
	types := make(map[string]bool)
	for _, e := range sinktest.Events() {
		types[e.Type()] = true
	}
	for _, want := range []string{"status", "stdout", "stderr", "display", "result", "clear", "error", "input_request", "notice", "final"} {
		require.True(t, types[want], want)
	}
}
