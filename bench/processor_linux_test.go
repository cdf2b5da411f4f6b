//go:build linux

package bench_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
)

// meter reads the processor time of this process and of a session's.
type meter struct {
	b       *testing.B
	session int
}

func newMeter(b *testing.B, s *coppice.Session) meter {
	b.Helper()
	r, err := s.Execute(b.Context(), coppice.Request{Cells: []messages.Cell{{Code: "__import__('os').getpid()"}}})
	require.NoError(b, err)
	pid, err := strconv.Atoi(r.Text)
	require.NoError(b, err)
	return meter{b, pid}
}

func (m meter) read() (host, session time.Duration) {
	var u syscall.Rusage
	require.NoError(m.b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", m.session))
	require.NoError(m.b, err)
	for _, name := range threads {
		text, err := os.ReadFile(name)
		require.NoError(m.b, err)
		var ns int64
		_, err = fmt.Sscan(string(text), &ns)
		require.NoError(m.b, err)
		session += time.Duration(ns)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), session
}

// BenchmarkProcessor is the processor time of calls, back to back, by who uses it.
func BenchmarkProcessor(b *testing.B) {
	host := start(b, backends.Runner, 1)
	s := host.Session("one")
	for range 200 {
		execute(b, s)
	}
	m := newMeter(b, s)
	var times []time.Duration
	h, p := m.read()
	for b.Loop() {
		times = append(times, execute(b, s))
	}
	h2, p2 := m.read()
	calls := float64(len(times))
	b.ReportMetric(float64((h2-h).Nanoseconds())/calls/1e3, "host-us/call")
	b.ReportMetric(float64((p2-p).Nanoseconds())/calls/1e3, "session-us/call")
	report(b, times)
}
