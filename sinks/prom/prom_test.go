package prom_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/sinks/prom"
	"github.com/coppice-run/coppice/sinks/sinktest"
)

func TestItIsASink(t *testing.T) {
	t.Parallel()
	c := prom.New(prom.Options{})
	sinktest.Run(t, func(*testing.T) sinks.Sink { return c.For(t.Context(), messages.Execute{}) })
}

func TestWhatIsCounted(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	c := prom.New(prom.Options{Now: func() time.Time { now = now.Add(time.Second); return now }, Buckets: []float64{0.5, 2}})
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(c))
	s := c.For(t.Context(), messages.Execute{Key: messages.SessionKey{Session: "secret-name"}})
	for _, e := range []messages.Event{
		messages.Status{Status: messages.CellRunning},
		messages.Stream{Name: messages.StdoutStream, Text: "12345"},
		messages.Stream{Name: messages.StderrStream, Text: "123"},
		messages.Status{Status: messages.CellComplete},
		messages.Status{Status: messages.CellRunning},
		messages.Error{ErrorDetails: messages.ErrorDetails{Name: "ValueError"}},
		messages.Error{ErrorDetails: messages.ErrorDetails{Name: "MadeUpByTheCode"}},
		messages.Status{Status: messages.CellError},
	} {
		require.NoError(t, s.Consume(t.Context(), e))
	}
	require.NoError(t, s.Close())
	families, err := registry.Gather()
	require.NoError(t, err)
	got := map[string]float64{}
	for _, f := range families {
		require.NotContains(t, f.String(), "secret-name")
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetName() + "=" + l.GetValue()
			}
			switch {
			case m.GetCounter() != nil:
				got[name] = m.GetCounter().GetValue()
			case m.GetGauge() != nil:
				got[name] = m.GetGauge().GetValue()
			case m.GetHistogram() != nil:
				got[name+" count"], got[name+" sum"] = float64(m.GetHistogram().GetSampleCount()), m.GetHistogram().GetSampleSum()
			}
		}
	}
	for name, want := range map[string]float64{
		"coppice_cells_total status=complete": 1, "coppice_cells_total status=error": 1,
		"coppice_cell_duration_seconds count": 2, "coppice_cell_duration_seconds sum": 2,
		"coppice_output_bytes_total stream=stdout": 5, "coppice_output_bytes_total stream=stderr": 3,
		"coppice_cell_errors_total class=ValueError": 1, "coppice_cell_errors_total class=other": 1,
		"coppice_calls_total": 0, "coppice_calls_open": 0, "coppice_events_total type=stdout": 0, "coppice_events_lost_total": 0,
	} {
		value, found := got[name]
		require.True(t, found, name)
		require.InDelta(t, want, value, 0, name)
	}
}
