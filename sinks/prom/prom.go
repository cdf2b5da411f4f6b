package prom

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
)

// Options make a [Collector]. The zero value of each field is its default.
type Options struct {
	// Namespace begins the names of all metrics. "": coppice.
	Namespace string
	// Buckets are the bounds of the histogram of cells' durations, in seconds.
	// nil: from 1 ms to 10 min.
	Buckets []float64
	// Now is the clock. nil: time.Now.
	Now func() time.Time
	// Exemplar returns what a cell's duration is noted with, from the context of its call:
	// the id of its trace. They are shown as OpenMetrics alone. Any goroutine calls it. It
	// may return nil, for none. nil: none.
	Exemplar func(context.Context) prometheus.Labels
}

// Collector counts the events of all calls. Any goroutine may use it.
type Collector struct {
	hub sinks.Metrics
	now func() time.Time
	ex  func(context.Context) prometheus.Labels

	cells    *prometheus.CounterVec
	duration prometheus.Histogram
	output   *prometheus.CounterVec
	errors   *prometheus.CounterVec

	calls, open, results, events, bytes, dropped, lost *prometheus.Desc
}

// New returns a collector.
func New(o Options) *Collector {
	if o.Namespace == "" {
		o.Namespace = "coppice"
	}
	if o.Buckets == nil {
		o.Buckets = []float64{0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60, 600}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Exemplar == nil {
		o.Exemplar = func(context.Context) prometheus.Labels { return nil }
	}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(o.Namespace, "", name), help, labels, nil)
	}
	return &Collector{
		now: o.Now, ex: o.Exemplar,
		cells: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: o.Namespace, Name: "cells_total", Help: "Cells that ended, by how.",
		}, []string{"status"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: o.Namespace, Name: "cell_duration_seconds", Help: "How long cells ran.", Buckets: o.Buckets,
		}),
		output: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: o.Namespace, Name: "output_bytes_total", Help: "Text that cells printed.",
		}, []string{"stream"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: o.Namespace, Name: "cell_errors_total", Help: "Exceptions that ended cells, by a few classes.",
		}, []string{"class"}),
		calls:   desc("calls_total", "Calls that run code, completions among them; forks, checkpoints and restores are none."),
		open:    desc("calls_open", "Calls that have not ended."),
		results: desc("results_total", "Results of calls that run code, by how the call ended and what became of the session's variables.", "outcome", "state"),
		events:  desc("events_total", "Events of all calls; final counts the results.", "type"),
		bytes:   desc("event_bytes_total", "Size of the events of all calls."),
		dropped: desc("events_dropped_total", "Events that lossy sinks had no room for."),
		lost:    desc("events_lost_total", "Events that failing sinks did not handle."),
	}
}

// Hub returns the counters that the hub itself keeps, for Options.Metrics of a
// host. Without that the metrics of calls and events stay 0.
func (c *Collector) Hub() *sinks.Metrics { return &c.hub }

// Attachment connects the collector to all calls of a host.
func (c *Collector) Attachment() sinks.Attachment {
	return sinks.Attachment{Name: "prometheus", For: c.For}
}

// For returns the sink of one call.
func (c *Collector) For(ctx context.Context, _ messages.Execute) sinks.Sink {
	return &call{c: c, exemplar: c.ex(ctx)}
}

// Describe sends the descriptions of all metrics.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	c.cells.Describe(to)
	c.duration.Describe(to)
	c.output.Describe(to)
	c.errors.Describe(to)
	for _, d := range []*prometheus.Desc{c.calls, c.open, c.results, c.events, c.bytes, c.dropped, c.lost} {
		to <- d
	}
}

// Collect sends the values of all metrics.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	c.cells.Collect(to)
	c.duration.Collect(to)
	c.output.Collect(to)
	c.errors.Collect(to)
	s := c.hub.Snapshot()
	count := func(d *prometheus.Desc, v uint64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	count(c.calls, s.Calls)
	to <- prometheus.MustNewConstMetric(c.open, prometheus.GaugeValue, float64(s.Open))
	for _, r := range s.Results {
		count(c.results, r.Count, string(r.Outcome), string(r.State))
	}
	for kind, n := range s.Events {
		count(c.events, n, kind)
	}
	count(c.bytes, s.Bytes)
	count(c.dropped, s.Dropped)
	count(c.lost, s.Lost)
}

// classes are the exceptions with a label of their own: a class's name is
// whatever the code makes it.
var classes = map[string]bool{
	"SyntaxError": true, "NameError": true, "TypeError": true, "ValueError": true, "KeyError": true, "IndexError": true,
	"AttributeError": true, "ImportError": true, "ModuleNotFoundError": true, "ZeroDivisionError": true,
	"FileNotFoundError": true, "OSError": true, "RuntimeError": true, "AssertionError": true, "MemoryError": true,
	"KeyboardInterrupt": true, "SystemExit": true, "ResourceLimitExceeded": true,
}

// call is the sink of one call; its begun belongs to the actor that calls it.
type call struct {
	c        *Collector
	begun    time.Time
	exemplar prometheus.Labels // of its cells, nil for none; not changed
}

// Consume counts e.
func (s *call) Consume(_ context.Context, e messages.Event) error {
	switch e := e.(type) {
	case messages.Stream:
		s.c.output.WithLabelValues(e.Type()).Add(float64(len(e.Text)))
	case messages.Error:
		class := e.Name
		if !classes[class] {
			class = "other"
		}
		s.c.errors.WithLabelValues(class).Inc()
	case messages.Status:
		switch e.Status {
		case messages.CellRunning:
			s.begun = s.c.now()
		case messages.CellComplete, messages.CellError:
			s.c.cells.WithLabelValues(string(e.Status)).Inc()
			if !s.begun.IsZero() {
				s.took(s.c.now().Sub(s.begun).Seconds())
				s.begun = time.Time{}
			}
		case messages.CellPending:
		}
	}
	return nil
}

// took notes how long a cell ran.
func (s *call) took(seconds float64) {
	if o, can := s.c.duration.(prometheus.ExemplarObserver); can && s.exemplar != nil {
		o.ObserveWithExemplar(seconds, s.exemplar)
		return
	}
	s.c.duration.Observe(seconds)
}

// Flush does nothing: counters are visible at once.
func (s *call) Flush(context.Context) error { return nil }

// Close does nothing.
func (s *call) Close() error { return nil }

var (
	_ prometheus.Collector = (*Collector)(nil)
	_ sinks.Sink           = (*call)(nil)
)
