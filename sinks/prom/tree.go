package prom

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-run/coppice/messages"
)

// TreeOptions make a [Tree]. The zero value of each field is its default.
type TreeOptions struct {
	// Namespace begins the names of all metrics. "": coppice.
	Namespace string
	// Buckets are the bounds of the histogram of starts, in seconds. nil: from 1 ms to
	// 2 min.
	Buckets []float64
}

// Tree shows the supervision tree of a host. It counts what [Tree.Hear] is told and asks
// for a snapshot when it is collected. Any goroutine may use it.
//
//	t := prom.NewTree(prom.TreeOptions{})
//	host, err := coppice.Start(ctx, coppice.Options{OnEvent: t.Hear})
//	t.Show(host.Snapshot)
type Tree struct {
	children, queue, abandoned, memory *prometheus.Desc

	starts   *prometheus.CounterVec
	duration *prometheus.HistogramVec
	restarts *prometheus.CounterVec
	ends     *prometheus.CounterVec

	mu       sync.Mutex
	snapshot func(context.Context) (messages.Node, error)
	lives    map[string]*life // by path, of those that are there
}

// life is one incarnation of an actor.
type life struct {
	epoch uint64
	began time.Time      // of a start that is not over; else zero
	exit  *messages.Exit // why it ends; nil: it does not
	ended bool           // its end was counted
}

// NewTree returns a collector that has heard of nothing yet.
func NewTree(o TreeOptions) *Tree {
	if o.Namespace == "" {
		o.Namespace = "coppice"
	}
	if o.Buckets == nil {
		o.Buckets = []float64{0.001, 0.002, 0.005, 0.01, 0.05, 0.2, 1, 5, 30, 120}
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: o.Namespace, Name: name, Help: help}, labels)
	}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(o.Namespace, "", name), help, labels, nil)
	}
	return &Tree{
		children:  desc("children", "Actors of the tree, by kind and state: those of kind kernel are sessions.", "kind", "state"),
		queue:     desc("queued", "Work that waits for actors of a kind, without what they have in hand.", "kind"),
		abandoned: desc("abandoned", "Actors that did not end in time and whose end is not confirmed."),
		memory:    desc("children_memory_bytes", "Resident memory of the processes of a kind of actors, as far as it is known.", "kind"),
		starts:    counter("starts_total", "Starts of actors that are over, by how they ended.", "kind", "outcome"),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: o.Namespace, Name: "start_duration_seconds", Help: "How long starts took that succeeded.", Buckets: o.Buckets,
		}, []string{"kind"}),
		restarts: counter("restarts_total", "Restarts of actors that failed, or were reset.", "kind"),
		ends:     counter("ends_total", "Ends of actors, by reason: hung ones did not answer, evicted ones made room.", "kind", "reason"),
		lives:    map[string]*life{},
	}
}

// Show takes the snapshots of a host from now on: give it Host.Snapshot.
func (t *Tree) Show(snapshot func(context.Context) (messages.Node, error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.snapshot = snapshot
}

// Hear counts what happens in the tree, for Options.OnEvent of a host.
func (t *Tree) Hear(e messages.Lifecycle) {
	c, ok := e.(messages.ChildChanged)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lives[c.Path]
	if l == nil {
		l = &life{}
		t.lives[c.Path] = l
	}
	if c.Epoch != l.epoch {
		*l = life{epoch: c.Epoch, began: l.began}
	}
	if c.Exit != nil {
		l.exit = c.Exit
	}
	t.started(l, c)
	switch c.To {
	case messages.ChildStarting:
		l.began = c.At
	case messages.ChildRestarting:
		if c.From != messages.ChildRestarting {
			t.restarts.WithLabelValues(c.Kind).Inc()
		}
		t.ended(l, c.Kind)
	case messages.ChildStopping, messages.ChildFailed, messages.ChildWaiting:
		t.ended(l, c.Kind)
	case messages.ChildGone:
		t.ended(l, c.Kind)
		delete(t.lives, c.Path)
	case messages.ChildIdle, messages.ChildBusy:
		if c.From == messages.ChildSuspended {
			l.exit = nil // it may go on
		}
	case messages.ChildSuspended: // its strategy has not decided
	}
}

// timed are the kinds of actors that have a process, which takes time to start.
var timed = map[string]bool{"kernel": true, "server": true, "tool": true}

// started counts a start that is over.
func (t *Tree) started(l *life, c messages.ChildChanged) {
	if l.began.IsZero() || c.To == messages.ChildStarting {
		return
	}
	if c.To == messages.ChildIdle || c.To == messages.ChildBusy {
		t.starts.WithLabelValues(c.Kind, "ok").Inc()
		if timed[c.Kind] {
			t.duration.WithLabelValues(c.Kind).Observe(c.At.Sub(l.began).Seconds())
		}
	} else {
		t.starts.WithLabelValues(c.Kind, "failed").Inc()
	}
	l.began = time.Time{}
}

// ended counts the end of an incarnation, once.
func (t *Tree) ended(l *life, kind string) {
	if l.exit != nil && !l.ended {
		l.ended = true
		t.ends.WithLabelValues(kind, string(l.exit.Kind)).Inc()
	}
}

// collectPatience bounds the wait for a snapshot, which itself does not wait for actors
// that are slow.
const collectPatience = 5 * time.Second

// sums is what a snapshot adds up to.
type sums struct {
	children  map[[2]string]float64
	queue     map[string]float64
	memory    map[string]float64
	abandoned float64
}

func (s *sums) add(n messages.Node) {
	s.children[[2]string{n.Kind, string(n.State)}]++
	s.queue[n.Kind] += float64(n.Queue)
	s.memory[n.Kind] += float64(n.RSS)
	s.abandoned += float64(len(n.Abandoned))
	for _, c := range n.Children {
		s.add(c)
	}
}

// Describe sends the descriptions of all metrics.
func (t *Tree) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{t.children, t.queue, t.abandoned, t.memory} {
		to <- d
	}
	for _, c := range []prometheus.Collector{t.starts, t.duration, t.restarts, t.ends} {
		c.Describe(to)
	}
}

// Collect sends the values of all metrics. Those of a snapshot are left out when there is
// none to be had.
func (t *Tree) Collect(to chan<- prometheus.Metric) {
	for _, c := range []prometheus.Collector{t.starts, t.duration, t.restarts, t.ends} {
		c.Collect(to)
	}
	t.mu.Lock()
	snapshot := t.snapshot
	t.mu.Unlock()
	if snapshot == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), collectPatience)
	defer cancel()
	root, err := snapshot(ctx)
	if err != nil {
		return // the host has ended; what was counted stays
	}
	s := sums{children: map[[2]string]float64{}, queue: map[string]float64{}, memory: map[string]float64{}}
	for _, kind := range []string{"kernel"} { // the states that are asked for most are there from the beginning
		for _, state := range []messages.ChildState{messages.ChildWaiting, messages.ChildStarting, messages.ChildIdle, messages.ChildBusy, messages.ChildFailed} {
			s.children[[2]string{kind, string(state)}] = 0
		}
		s.queue[kind], s.memory[kind] = 0, 0
	}
	s.add(root)
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for at, n := range s.children {
		gauge(t.children, n, at[:]...)
	}
	for kind, n := range s.queue {
		gauge(t.queue, n, kind)
	}
	for kind, n := range s.memory {
		if n > 0 || kind == "kernel" {
			gauge(t.memory, n, kind)
		}
	}
	gauge(t.abandoned, s.abandoned)
}

var _ prometheus.Collector = (*Tree)(nil)
