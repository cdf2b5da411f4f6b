package fleetapi

import "github.com/prometheus/client_golang/prometheus"

// counts is what a node counts.
type counts struct {
	epochs, lives, lost, forwarded prometheus.Counter
	refused                        *prometheus.CounterVec
}

// Counter is one of a server of a fleet.
func Counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "coppice", Subsystem: "fleet", Name: name, Help: help})
}

// Refused counts requests that were refused.
func Refused() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "coppice", Subsystem: "fleet", Name: "refused_total", Help: "Requests that were refused, by the code of the answer.",
	}, []string{"code"})
}

func newCounts(n *Node) *counts {
	gauge := func(name, help string, f func() float64) prometheus.GaugeFunc {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "coppice", Subsystem: "fleet", Name: name, Help: help}, f)
	}
	c := &counts{
		epochs:    Counter("epochs_total", "Epochs of sessions that this node has begun as their owner."),
		lives:     Counter("lives_total", "Lives of this node: more than one when it was declared dead."),
		lost:      Counter("lost_total", "Executions whose result was not allowed to leave."),
		forwarded: Counter("forwarded_total", "Requests that were sent on to another node."),
		refused:   Refused(),
	}
	if n.o.Metrics != nil {
		n.o.Metrics.MustRegister(
			c.epochs, c.lives, c.lost, c.forwarded, c.refused,
			gauge("claims", "Sessions that this node owns.", func() float64 { return float64(n.owned()) }),
			gauge("nodes", "Other nodes that are up or draining.", func() float64 { return float64(len(n.others())) }),
			gauge("draining", "1 while the node begins nothing more, until its end.", func() float64 {
				if n.isDraining() {
					return 1
				}
				return 0
			}),
			gauge("suspended", "1 while the node has no valid lease.", func() float64 {
				if n.leased() {
					return 0
				}
				return 1
			}),
		)
	}
	return c
}
