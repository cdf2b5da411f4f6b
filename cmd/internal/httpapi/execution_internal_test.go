package httpapi

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/internal/eventlog"
	"github.com/coppice-run/coppice/messages"
)

// Who has read the end of an execution, and asks for it then, finds it ended, with its
// result and its report.
func TestWhoReadTheEndFindsItEnded(t *testing.T) {
	t.Parallel()
	for range 500 {
		x := &execution{log: eventlog.New(eventlog.Options{Dir: t.TempDir(), Memory: 1 << 20, Max: 1 << 20}), ended: make(chan struct{}), most: 1 << 20}
		x.info.State = client.Running
		found := make(chan client.Execution, 1)
		reading := make(chan struct{})
		go func() { // ends with the log's end; joined by the receive
			close(reading)
			for ended := false; !ended; {
				_, ended, _ = x.events().Read(0, 1)
			}
			found <- x.describe(true)
		}()
		<-reading
		x.finish(messages.Result{Outcome: messages.OutcomeOK}, messages.RawJSON(`{}`), slog.New(slog.DiscardHandler))
		info := <-found
		require.Equal(t, client.Ended, info.State)
		require.NotNil(t, info.Result)
		require.NotNil(t, info.Notebook)
		x.close(slog.New(slog.DiscardHandler))
	}
}
