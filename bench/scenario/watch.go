package scenario

import (
	"context"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/coppice-run/coppice/bench/record"
)

// watch samples what of the host should not grow. Its goroutine, from begin to
// end, owns the series.
type watch struct {
	every time.Duration
	stop  chan struct{}
	run   sync.WaitGroup

	memory, heap, files, goroutines, servers record.Series
}

// begin starts sampling. h lives until after end.
func (w *watch) begin(ctx context.Context, h host) {
	w.memory = record.Series{Name: "host, in memory", Unit: "MiB"}
	w.heap = record.Series{Name: "host, in use after a collection", Unit: "MiB"}
	w.servers = record.Series{Name: "fork server or gateway", Unit: "MiB"}
	w.files, w.goroutines = record.Series{Name: "descriptors"}, record.Series{Name: "goroutines"}
	begin := time.Now()
	w.run.Go(func() {
		tick := time.NewTicker(w.every)
		defer tick.Stop()
		for {
			select {
			case <-w.stop:
				return
			case <-tick.C:
				w.sample(ctx, h, time.Since(begin).Seconds())
			}
		}
	})
}

func (w *watch) sample(ctx context.Context, h host, at float64) {
	add := func(s *record.Series, v float64) { s.At, s.Value = append(s.At, at), append(s.Value, v) }
	if b := residentNow(); b > 0 {
		add(&w.memory, float64(b)/(1<<20))
	}
	var m runtime.MemStats
	runtime.GC() // without it the series is a saw
	runtime.ReadMemStats(&m)
	add(&w.heap, float64(m.HeapAlloc)/(1<<20))
	add(&w.goroutines, float64(runtime.NumGoroutine()))
	if u, ok := useOf(0); ok {
		add(&w.files, float64(u.files))
	}
	p, err := processes(ctx, h)
	if err != nil {
		return // the host is about to end
	}
	var all int64
	for _, pid := range p.servers {
		all += proportional(pid)
	}
	if all > 0 {
		add(&w.servers, float64(all)/(1<<20))
	}
}

// end ends the sampling. It may be called when there was no begin.
func (w *watch) end() {
	close(w.stop)
	w.run.Wait()
}

// tell adds the series and their growth after the first third, in which pools and
// caches fill, to the result.
func (w *watch) tell(r *round) {
	for _, s := range []struct {
		name string
		of   record.Series
	}{{"host-memory", w.memory}, {"host-heap", w.heap}, {"servers-memory", w.servers}, {"descriptors", w.files}, {"goroutines", w.goroutines}} {
		warm := len(s.of.At) / 3
		if warm < 3 {
			continue // too short to say anything
		}
		r.result.Series = append(r.result.Series, s.of)
		per, wide := trend(s.of.At[warm:], s.of.Value[warm:])
		r.metric(s.name, s.of.Unit, s.of.Value[len(s.of.Value)-1], record.None)
		r.metric(s.name+"-growth", s.of.Unit+"/h", per*3600, record.None)
		r.metric(s.name+"-growth-within", s.of.Unit+"/h", wide*3600, record.None)
	}
}

// trend is the least-squares slope of y over x, and half the width of its 95 %
// confidence interval. Neighbours resemble each other, so that n samples tell less
// than n independent ones would: their correlation widens the interval.
func trend(x, y []float64) (slope, within float64) {
	n := float64(len(x))
	var mx, my float64
	for i := range x {
		mx, my = mx+x[i]/n, my+y[i]/n
	}
	var sxx, sxy float64
	for i := range x {
		sxx, sxy = sxx+(x[i]-mx)*(x[i]-mx), sxy+(x[i]-mx)*(y[i]-my)
	}
	if sxx == 0 || n < 4 {
		return 0, 0
	}
	slope = sxy / sxx
	var squares, lagged, last float64
	for i := range x {
		rest := y[i] - my - slope*(x[i]-mx)
		squares += rest * rest
		if i > 0 {
			lagged += rest * last
		}
		last = rest
	}
	if squares == 0 {
		return slope, 0
	}
	alike := min(max(lagged/squares, 0), .95)
	// As Santer and others (2000) do for temperatures; the quantile is Student's,
	// about.
	free := max(3, n*(1-alike)/(1+alike)-2)
	quantile := 1.96 + 2.4/free + 3/(free*free)
	return slope, quantile * math.Sqrt(squares/free/sxx)
}
