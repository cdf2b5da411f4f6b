//go:build linux

package bench_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/test/testpython"
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

// BenchmarkPrints is the processor time of COPPICE_PRINTS (200,000) small prints, by who
// uses it, and how often it is that of the same Python that writes each of them to a
// file at once. They are measured in turns; the ratio is the median.
func BenchmarkPrints(b *testing.B) {
	n := 200_000
	if text := os.Getenv("COPPICE_PRINTS"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		require.NoError(b, err)
	}
	code := fmt.Sprintf("for i in range(%d): print(i)", n)
	host := floodHost(b, backends.Runner)
	s := host.Session("prints")
	execute(b, s)
	m := newMeter(b, s)
	per := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / float64(n) / 1e3 }
	var hosts, sessions, plain, ratios []float64
	for b.Loop() {
		h, p := m.read()
		r, err := s.Execute(b.Context(), coppice.Request{Cells: []messages.Cell{{Code: code}}, Timeout: 10 * time.Minute})
		h2, p2 := m.read()
		require.NoError(b, err)
		require.Equal(b, messages.OutcomeOK, r.Outcome)
		require.NotNil(b, r.Artifact)
		require.Contains(b, r.Text, "\n"+strconv.Itoa(n-1), "the last line is there")
		f, err := os.Create(filepath.Join(b.TempDir(), "out"))
		require.NoError(b, err)
		cmd := exec.CommandContext(b.Context(), testpython.Path(b), "-u", "-c", code)
		cmd.Stdout = f
		require.NoError(b, cmd.Run())
		require.NoError(b, f.Close())
		used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		hosts, sessions, plain = append(hosts, per(h2-h)), append(sessions, per(p2-p)), append(plain, per(used))
		ratios = append(ratios, float64(h2-h+p2-p)/float64(used))
	}
	median := func(v []float64) float64 { slices.Sort(v); return v[len(v)/2] }
	b.ReportMetric(median(hosts), "host-us/line")
	b.ReportMetric(median(sessions), "session-us/line")
	b.ReportMetric(median(plain), "python-u-us/line")
	b.ReportMetric(median(ratios), "times-python-u")
}
