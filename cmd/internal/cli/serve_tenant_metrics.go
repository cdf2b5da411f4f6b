package cli

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/cmd/internal/version"
)

// registry has the metrics of all tenants. What one tenant is shown is its own alone: those
// of the process say what the others do.
type registry struct{ all *prometheus.Registry }

func newRegistry() *registry {
	r := &registry{prometheus.NewRegistry()}
	r.all.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// labelled is where the metrics of one tenant are among those of all.
func (r *registry) labelled(tenant string) prometheus.Registerer {
	return prometheus.WrapRegistererWith(prometheus.Labels{"tenant": tenant}, r.all)
}

// of makes the metrics of a tenant.
func (r *registry) of(tenant string) *metrics {
	m := newMetrics(version.Read())
	m.registry = prometheus.NewRegistry()
	m.registry.MustRegister(m.calls, m.tree, m.requests)
	r.labelled(tenant).MustRegister(m.calls, m.tree, m.requests)
	return m
}

// forget takes the metrics of a tenant out again.
func (r *registry) forget(tenant string, m *metrics) {
	at := r.labelled(tenant)
	at.Unregister(m.calls)
	at.Unregister(m.tree)
	at.Unregister(m.requests)
}

// allMetrics are the metrics of all tenants, for admins.
func (t *tenants) allMetrics() httpserver.Mount {
	return httpserver.Mount{Pattern: "GET /api/tenants/metrics", Scope: httpserver.Admin, Handler: promhttp.HandlerFor(t.metrics.all, promhttp.HandlerOpts{EnableOpenMetrics: true})}
}
