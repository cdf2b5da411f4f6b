package httpapi_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
	"github.com/coppice-run/coppice/messages"
)

// TestTheEndOfAServerIsToldAsSuch: who waits for code that is stopped by it has cancelled nothing.
func TestTheEndOfAServerIsToldAsSuch(t *testing.T) {
	t.Parallel()
	s := serve(t, coppice.Options{}, httpapi.Options{Forgets: true})
	code := client.Execute{Session: "a", Cells: []messages.Cell{{Code: "import time\nprint('runs', flush=True)\ntime.sleep(600)"}}}
	var result messages.Result
	stops := func(stop func()) messages.Stop {
		for e, err := range s.Run(t.Context(), code) {
			require.NoError(t, err)
			switch e := e.(type) {
			case messages.Stream:
				stop()
			case messages.Final:
				require.Equal(t, messages.OutcomeCancelled, e.Result.Outcome)
				result = e.Result
				return e.Result.Progress.Stop
			}
		}
		return ""
	}
	require.Equal(t, messages.StopCancel, stops(func() {
		runs, err := s.Executions(t.Context(), messages.SessionKey{})
		require.NoError(t, err)
		require.NoError(t, s.Cancel(t.Context(), runs[0].ID))
	}))
	require.NotEqual(t, messages.StateLost, result.State)
	require.Equal(t, messages.StopShutdown, stops(func() {
		go s.api.End(t.Context()) // it returns when that has ended
	}))
	require.Equal(t, messages.StateLost, result.State)
	require.Equal(t, "the host was shut down", result.Reason)
	require.Contains(t, result.Text, "All variables are gone: the host was shut down.")
}

// TestHowLongAServerHasServed is since it was made, however long its process has lived before, and
// of a part since when the whole has.
func TestHowLongAServerHasServed(t *testing.T) {
	t.Parallel()
	before := time.Now()
	for since, least := range map[time.Time]time.Duration{{}: 0, before.Add(-time.Hour): time.Hour} {
		s := serve(t, coppice.Options{}, httpapi.Options{Since: since})
		h, err := s.Health(t.Context())
		require.NoError(t, err)
		require.GreaterOrEqual(t, h.Uptime, least.Seconds())
		require.LessOrEqual(t, h.Uptime, (least + time.Since(before)).Seconds())
	}
}
