// Package prom shows what a host does to Prometheus.
//
// A [Collector] is both a sink of all calls and a prometheus.Collector:
//
//	c := prom.New(prom.Options{})
//	host, err := coppice.Start(ctx, coppice.Options{Sinks: []sinks.Attachment{c.Attachment()}, Metrics: c.Hub()})
//	registry := prometheus.NewRegistry()
//	registry.MustRegister(c)
//
// A [Tree] shows the supervision tree itself: sessions by state, what waits, starts and
// their time, restarts, ends by reason.
//
// # Guarantees
//
//   - No label holds a session, a path or anything else that a caller chooses,
//     so the number of series is fixed.
//   - It never holds a call back: the sink counts and never fails. It is
//     lossless all the same, since a counter that misses events is wrong.
//   - Nothing is registered anywhere but where the host does it.
//
// It is the only package of the project that links Prometheus' client, so a host
// that does not import it does not have it.
package prom
