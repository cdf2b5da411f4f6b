package bench_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/test/testpython"
)

// callsCode makes 1,000 calls of the host and prints how long each took, as the
// code sees it.
const callsCode = `import time
took = []
for i in range(1000):
    begin = time.perf_counter()
    assert tool.add(X=i, Y=1) == i + 1
    took.append(time.perf_counter() - begin)
print(' '.join(str(int(t * 1e6)) for t in took))`

// BenchmarkHostCalls is 1,000 calls of a host function in each of many sessions,
// at once. All are answered, or it fails.
func BenchmarkHostCalls(b *testing.B) {
	for _, tc := range []struct {
		backend  string
		sessions int
	}{{backends.Runner, 1}, {backends.Runner, 100}, {backends.Gateway, 1}, {backends.Gateway, 10}} {
		b.Run(fmt.Sprintf("%s-%d", tc.backend, tc.sessions), func(b *testing.B) {
			add := coppice.Function("add", "", func(_ context.Context, p struct{ X, Y int }) (int, error) { return p.X + p.Y, nil })
			host, err := coppice.Start(b.Context(), coppice.Options{
				Backend: backends.Named(tc.backend), Python: testpython.Path(b), Home: b.TempDir(), MaxSessions: tc.sessions, IdleTTL: -1,
				StartTimeout: 5 * time.Minute, HostCalls: coppice.HostCallOptions{Functions: []coppice.HostFunction{add}},
			})
			require.NoError(b, err)
			b.Cleanup(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				require.True(b, host.Shutdown(ctx).Clean())
			})
			sessions := make([]*coppice.Session, tc.sessions)
			var warm sync.WaitGroup
			for i := range sessions {
				sessions[i] = host.Session(fmt.Sprint(i))
				warm.Go(func() { execute(b, sessions[i]) })
			}
			warm.Wait()
			var mu sync.Mutex
			var times []time.Duration
			for b.Loop() {
				var wg sync.WaitGroup
				for _, s := range sessions {
					wg.Go(func() {
						took := calls(b, s)
						mu.Lock()
						times = append(times, took...)
						mu.Unlock()
					})
				}
				wg.Wait()
			}
			report(b, times)
			b.ReportMetric(float64(len(times))/b.Elapsed().Seconds(), "calls/s")
		})
	}
}

// calls runs callsCode and returns the times that it measured.
func calls(b *testing.B, s *coppice.Session) []time.Duration {
	r, err := s.Execute(b.Context(), coppice.Request{Cells: []messages.Cell{{Code: callsCode}}})
	if err != nil || r.Outcome != messages.OutcomeOK {
		b.Errorf("%v %s", err, r.Text)
		return nil
	}
	var took []time.Duration
	for word := range strings.FieldsSeq(r.Cells[0].Output) {
		n, err := strconv.Atoi(word)
		if err != nil {
			b.Error(err) // not Fatal: it runs in a goroutine of its own
			return nil
		}
		took = append(took, time.Duration(n)*time.Microsecond)
	}
	if len(took) != 1000 {
		b.Errorf("%d calls were answered, not 1000", len(took))
	}
	return took
}
