package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/telemetry"
	"github.com/coppice-run/coppice/cmd/internal/version"
	"github.com/coppice-run/coppice/messages"
)

// scrape reads metrics as Prometheus does.
func scrape(t *testing.T, m *metrics, accept string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP(w, r)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	return w
}

const openMetrics = "application/openmetrics-text;version=1.0.0"

// However many sessions there are, a scrape stays small: none of them has a series.
func TestAScrapeOfManySessionsIsSmall(t *testing.T) {
	t.Parallel()
	const sessions = 5000
	m, now := newMetrics(version.Read()), time.Now()
	backend := messages.Node{Name: "runner", Kind: "supervisor", State: messages.ChildIdle}
	for i := range sessions {
		key := messages.SessionKey{Session: fmt.Sprintf("a session of %d", i), Cwd: fmt.Sprintf("/w/%d", i)}
		state := []messages.ChildState{messages.ChildIdle, messages.ChildBusy, messages.ChildFailed, messages.ChildRestarting}[i%4]
		backend.Children = append(backend.Children, messages.Node{Name: key.ID(), Kind: "kernel", State: state, Epoch: 1, Since: now, Owner: fmt.Sprint("owner", i), PID: i + 1, RSS: 1 << 24, Queue: i % 3})
		for _, c := range []messages.ChildChanged{
			{At: now, Key: key.ID(), Kind: "kernel", Epoch: 1, To: messages.ChildStarting},
			{At: now, Key: key.ID(), Kind: "kernel", Epoch: 1, From: messages.ChildStarting, To: messages.ChildIdle},
			{At: now, Key: key.ID(), Kind: "kernel", Epoch: 1, From: messages.ChildIdle, To: messages.ChildGone, Exit: &messages.Exit{Kind: messages.ExitEvicted, Reason: key.String()}},
		} {
			m.tree.Hear(c)
		}
		sink := m.calls.For(t.Context(), messages.Execute{ID: fmt.Sprint(i), Key: key})
		for _, e := range []messages.Event{messages.Status{Status: messages.CellRunning}, messages.Error{ErrorDetails: messages.ErrorDetails{Name: fmt.Sprint("Error", i)}}, messages.Status{Status: messages.CellError}} {
			require.NoError(t, sink.Consume(t.Context(), e))
		}
		require.NoError(t, sink.Close())
		m.requests.WithLabelValues("GET /api/sessions/{session}", "200").Observe(.01)
	}
	m.tree.Show(func(context.Context) (messages.Node, error) {
		return messages.Node{Name: "supervisor", Kind: "supervisor", State: messages.ChildIdle, Children: []messages.Node{backend}}, nil
	})
	for _, accept := range []string{"text/plain", openMetrics} {
		began := time.Now()
		w := scrape(t, m, accept)
		t.Logf("%s: %d bytes of %d sessions in %v", accept, w.Body.Len(), sessions, time.Since(began))
		require.Less(t, w.Body.Len(), 200<<10)
		require.Contains(t, w.Body.String(), fmt.Sprintf(`} %d`, sessions/4), "they are counted by state")
		require.NotContains(t, w.Body.String(), "a session of")
	}
}

// What a request and its cells took is noted with their trace, where one is sent.
func TestDurationsNameTheirTraces(t *testing.T) {
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	traces, err := telemetry.Start(t.Context(), telemetry.Options{Getenv: os.Getenv, Warn: func(text string) { t.Error(text) }})
	require.NoError(t, err)
	defer func() { require.NoError(t, traces.End(context.Background())) }()
	m := newMetrics(version.Read())
	serve := func(traces *telemetry.Traces, id string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		r.Header.Set("Traceparent", id)
		m.observe(traces)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			sink := m.calls.For(r.Context(), messages.Execute{ID: "x"})
			for _, s := range []messages.CellStatus{messages.CellRunning, messages.CellComplete} {
				if err := sink.Consume(r.Context(), messages.Status{Status: s}); err != nil {
					t.Error(err)
				}
			}
			if err := sink.Close(); err != nil {
				t.Error(err)
			}
		})).ServeHTTP(httptest.NewRecorder(), r)
	}
	const id = "0af7651916cd43dd8448eb211c80319c"
	serve(nil, "00-"+id+"-b7ad6b7169203331-01")    // traces are not on
	serve(traces, "00-"+id+"-b7ad6b7169203331-00") // this one is not sent
	require.NotContains(t, scrape(t, m, openMetrics).Body.String(), "trace_id")
	serve(traces, "00-"+id+"-b7ad6b7169203331-01")
	w := scrape(t, m, openMetrics)
	require.Contains(t, w.Header().Get("Content-Type"), "application/openmetrics-text")
	const exemplar = ` # {trace_id="` + id + `"} `
	require.Regexp(t, `coppice_cell_duration_seconds_bucket.*`+exemplar, w.Body.String())
	require.Regexp(t, `coppice_http_request_duration_seconds_bucket.*`+exemplar, w.Body.String())
	require.Regexp(t, `# EOF\n$`, w.Body.String())
	require.NotContains(t, scrape(t, m, "text/plain").Body.String(), "trace_id")
}
