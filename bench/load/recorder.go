package load

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The range of a Recorder. What is outside counts as its nearest end.
const (
	shortest = time.Microsecond
	longest  = time.Hour
	digits   = 3
)

// Recorder collects durations.
type Recorder struct {
	mu   sync.Mutex
	hist *hdrhistogram.Histogram // guarded by mu: microseconds
}

// NewRecorder returns an empty one.
func NewRecorder() *Recorder {
	return &Recorder{hist: hdrhistogram.New(shortest.Microseconds(), longest.Microseconds(), digits)}
}

// Record adds a duration.
func (r *Recorder) Record(d time.Duration) {
	us := min(max(d, shortest), longest).Microseconds()
	r.mu.Lock()
	defer r.mu.Unlock()
	// The value is inside the range, which is the only way in which this fails.
	_ = r.hist.RecordValue(us)
}

// Summary is what a Recorder has collected.
type Summary struct {
	Count int64         `json:"count"`
	Min   time.Duration `json:"min_ns"`
	Mean  time.Duration `json:"mean_ns"`
	P50   time.Duration `json:"p50_ns"`
	P90   time.Duration `json:"p90_ns"`
	P99   time.Duration `json:"p99_ns"`
	P999  time.Duration `json:"p999_ns"`
	Max   time.Duration `json:"max_ns"`
	// Curve is the distribution: how many of the calls took at most so long.
	Curve []Point `json:"curve,omitempty"`
}

// Point is one point of a distribution.
type Point struct {
	Quantile float64       `json:"q"`
	At       time.Duration `json:"at_ns"`
}

// Summary returns what was collected so far.
func (r *Recorder) Summary() Summary {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := func(q float64) time.Duration { return time.Duration(r.hist.ValueAtQuantile(q)) * time.Microsecond }
	s := Summary{
		Count: r.hist.TotalCount(), Min: time.Duration(r.hist.Min()) * time.Microsecond, Mean: time.Duration(r.hist.Mean() * float64(time.Microsecond)),
		P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: time.Duration(r.hist.Max()) * time.Microsecond,
	}
	if s.Count == 0 {
		return Summary{}
	}
	for _, q := range []float64{0, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.99, 100} {
		s.Curve = append(s.Curve, Point{Quantile: q, At: at(q)})
	}
	return s
}
