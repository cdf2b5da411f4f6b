package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-run/coppice/messages"
)

// busy are the metrics of a machine that has too much to do.
type busy struct{ pressure, stalled, waited, postponed *prometheus.Desc }

func newBusy(desc func(name, help string, labels ...string) *prometheus.Desc) busy {
	return busy{
		pressure:  desc("processor_pressure", "The part of the last ten seconds in which some process waited for a processor, from 0 to 1."),
		stalled:   desc("stalled_seconds_total", "How long this process stood still or ran too late."),
		waited:    desc("waited_seconds_total", "How long actors that were silent waited for a processor."),
		postponed: desc("ends_postponed_total", "Ends that were put off because whoever was late had no processor."),
	}
}

func (b busy) describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{b.pressure, b.stalled, b.waited, b.postponed} {
		to <- d
	}
}

// collect sends what the root of a tree tells; nil is a machine that was never busy.
func (b busy) collect(to chan<- prometheus.Metric, told *messages.Busy) {
	if told == nil {
		told = &messages.Busy{}
	}
	to <- prometheus.MustNewConstMetric(b.pressure, prometheus.GaugeValue, told.Pressure)
	to <- prometheus.MustNewConstMetric(b.stalled, prometheus.CounterValue, told.Stalled.Seconds())
	to <- prometheus.MustNewConstMetric(b.waited, prometheus.CounterValue, told.Waited.Seconds())
	to <- prometheus.MustNewConstMetric(b.postponed, prometheus.CounterValue, float64(told.Postponed))
}
