package jupyter_test

import (
	"slices"
	"testing"
	"time"

	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/test/fakegateway"
)

// report gives the median and the 99th percentile of the round trips.
func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	at := func(q float64) float64 {
		return float64(took[int(q*float64(len(took)-1))].Microseconds()) / 1000
	}
	b.ReportMetric(at(0.5), "p50-ms")
	b.ReportMetric(at(0.99), "p99-ms")
}

func backToBack(b *testing.B, k *jupyter.Kernel, code string) {
	var took []time.Duration
	for b.Loop() {
		started := time.Now()
		r, err := k.Execute(b.Context(), jupyter.ExecuteRequest{Code: code}, nil)
		if err != nil || r.Status != jupyter.ReplyOK {
			b.Fatal(r, err)
		}
		took = append(took, time.Since(started))
	}
	report(b, took)
}

// BenchmarkRealBackToBack is 1+1 in one kernel of a real gateway, each sent at
// once after the one before.
func BenchmarkRealBackToBack(b *testing.B) { backToBack(b, realKernel(b), "1+1") }

// BenchmarkFakeBackToBack is what the client and a server without Python cost.
func BenchmarkFakeBackToBack(b *testing.B) {
	k, _ := fakeKernel(b, fakegateway.Options{})
	backToBack(b, k, "result 2")
}
