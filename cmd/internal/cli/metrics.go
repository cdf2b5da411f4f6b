package cli

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/cmd/internal/telemetry"
	"github.com/coppice-run/coppice/cmd/internal/version"
	"github.com/coppice-run/coppice/sinks/prom"
)

// metrics is what a server shows at /metrics.
type metrics struct {
	registry *prometheus.Registry
	calls    *prom.Collector
	tree     *prom.Tree
	requests *prometheus.HistogramVec
}

func newMetrics(v version.Info) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(), calls: prom.New(prom.Options{Exemplar: traced}), tree: prom.NewTree(prom.TreeOptions{}),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "coppice", Name: "http_request_duration_seconds",
			Help:    "HTTP requests that were served, by the API's route and the class of the answer; a stream counts when it ends.",
			Buckets: []float64{0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60, 600},
		}, []string{"route", "code"}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: "coppice", Name: "build_info", Help: "1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"version": v.Version, "commit": v.Commit, "goversion": v.Go, "os": v.OS, "arch": v.Arch},
	})
	build.Set(1)
	m.registry.MustRegister(m.calls, m.tree, m.requests, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// hibernated shows how many sessions are kept on disk. It is called once.
func (m *metrics) hibernated(n func(context.Context) int) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "coppice", Name: "hibernated_sessions", Help: "Sessions that have no kernel and are kept on disk.",
	}, func() float64 { return float64(n(context.Background())) }))
}

// instrument measures the requests that a server serves.
func (m *metrics) instrument(next http.Handler) http.Handler {
	return promhttp.InstrumentHandlerDuration(m.requests, next, promhttp.WithLabelFromCtx("route", httpserver.Route), promhttp.WithExemplarFromContext(traced))
}

// traced names the trace that ctx belongs to, for an exemplar: nil where none is sent.
func traced(ctx context.Context) prometheus.Labels {
	if id := telemetry.TraceID(ctx); id != "" {
		return prometheus.Labels{"trace_id": id}
	}
	return nil
}

// observe measures the requests that a server serves, each within its span, so that what is
// measured belongs to a trace.
func (m *metrics) observe(t *telemetry.Traces) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler { return t.Handler(m.instrument(next), httpserver.Route) }
}
