package bench_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/test/testpython"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(b *testing.B, backend string, sessions int) *coppice.Host {
	b.Helper()
	return startWith(b, coppice.Options{Backend: backends.With(backend, coppice.GatewayOptions{WarmKernels: -1}, coppice.RunnerOptions{}), MaxSessions: sessions})
}

func startWith(b *testing.B, o coppice.Options) *coppice.Host {
	b.Helper()
	o.Python, o.Home, o.IdleTTL, o.StartTimeout = testpython.Path(b), b.TempDir(), -1, 5*time.Minute
	host, err := coppice.Start(b.Context(), o)
	require.NoError(b, err)
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.True(b, host.Shutdown(ctx).Clean())
	})
	return host
}

func execute(b *testing.B, s *coppice.Session) time.Duration {
	b.Helper()
	begin := time.Now()
	r, err := s.Execute(b.Context(), coppice.Request{Cells: []messages.Cell{{Code: "1+1"}}})
	took := time.Since(begin)
	if err != nil || r.Outcome != messages.OutcomeOK || r.Text != "2" {
		b.Errorf("%v %+v", err, r) // not Fatal: many call it from goroutines of their own
	}
	return took
}

// report adds percentiles to a benchmark, in microseconds.
func report(b *testing.B, times []time.Duration) {
	slices.Sort(times)
	at := func(p float64) float64 {
		return float64(times[min(len(times)-1, int(p*float64(len(times))))].Microseconds())
	}
	b.ReportMetric(at(.5), "p50-us")
	b.ReportMetric(at(.99), "p99-us")
}

// BenchmarkCreate is a new session to its first result, one after the other,
// with the shared process warm. Each session is closed again.
func BenchmarkCreate(b *testing.B) {
	for _, backend := range backends.All() {
		b.Run(backend, func(b *testing.B) {
			host := start(b, backend, 8)
			execute(b, host.Session("warm"))
			var times []time.Duration
			for i := 0; b.Loop(); i++ {
				s := host.Session(fmt.Sprint(i))
				times = append(times, execute(b, s))
				require.NoError(b, s.Close(b.Context()))
			}
			report(b, times)
		})
	}
}

// BenchmarkNewSession is a new session to its first result on the gateway backend:
// without and with a kernel that waits for it. "first" is the first session of a
// host, the start of the gateway included.
func BenchmarkNewSession(b *testing.B) {
	for _, warm := range []int{-1, 1} { // -1: none
		b.Run(fmt.Sprintf("first/warm=%d", max(warm, 0)), func(b *testing.B) {
			var times []time.Duration
			for b.Loop() {
				begin := time.Now()
				host := startWith(b, coppice.Options{Backend: coppice.Gateway(coppice.GatewayOptions{WarmKernels: warm})})
				execute(b, host.Session("a"))
				times = append(times, time.Since(begin))
				host.Shutdown(b.Context())
			}
			report(b, times)
		})
		b.Run(fmt.Sprintf("next/warm=%d", max(warm, 0)), func(b *testing.B) {
			host := startWith(b, coppice.Options{Backend: coppice.Gateway(coppice.GatewayOptions{WarmKernels: warm}), MaxSessions: 8})
			execute(b, host.Session("first"))
			var times []time.Duration
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				<-time.After(3 * time.Second) // a kernel that was taken is replaced by now
				b.StartTimer()
				s := host.Session(fmt.Sprint(i))
				times = append(times, execute(b, s))
				require.NoError(b, s.Close(b.Context()))
			}
			report(b, times)
		})
	}
}

// BenchmarkExecute is `1+1` through the whole runtime, back to back.
func BenchmarkExecute(b *testing.B) {
	for _, backend := range backends.All() {
		b.Run(backend, func(b *testing.B) {
			host := start(b, backend, 1)
			s := host.Session("one")
			execute(b, s)
			var times []time.Duration
			for b.Loop() {
				times = append(times, execute(b, s))
			}
			report(b, times)
		})
	}
}

// BenchmarkMany is one call in each of many live sessions, at once.
func BenchmarkMany(b *testing.B) {
	for _, tc := range []struct {
		backend  string
		sessions int
	}{{backends.Runner, 100}, {backends.Runner, 500}, {backends.Gateway, 10}} {
		b.Run(fmt.Sprintf("%s-%d", tc.backend, tc.sessions), func(b *testing.B) {
			host := start(b, tc.backend, tc.sessions)
			sessions := make([]*coppice.Session, tc.sessions)
			for i := range sessions {
				sessions[i] = host.Session(fmt.Sprint(i))
			}
			var mu sync.Mutex
			var times []time.Duration
			all := func() {
				var wg sync.WaitGroup
				for _, s := range sessions {
					wg.Go(func() {
						took := execute(b, s)
						mu.Lock()
						times = append(times, took)
						mu.Unlock()
					})
				}
				wg.Wait()
			}
			all() // starts them
			times = times[:0]
			for b.Loop() {
				all()
			}
			report(b, times)
		})
	}
}
