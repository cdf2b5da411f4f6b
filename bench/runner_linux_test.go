package bench_test

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
)

// load notes how busy the machine was, so that figures can be judged.
func load(b *testing.B) {
	b.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	require.NoError(b, err)
	one, _, _ := strings.Cut(string(text), " ")
	value, err := strconv.ParseFloat(one, 64)
	require.NoError(b, err)
	b.ReportMetric(value, "load")
	b.ReportMetric(float64(runtime.NumCPU()), "cpus")
}

// pss returns the memory of a process in KiB, with its part of what it shares.
func pss(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	require.NoError(b, err)
	for line := range bytes.Lines(text) {
		if f := bytes.Fields(line); len(f) == 3 && string(f[0]) == "Pss:" {
			kib, err := strconv.ParseFloat(string(f[1]), 64)
			require.NoError(b, err)
			return kib
		}
	}
	require.Fail(b, "no Pss")
	return 0
}

// kernelPIDs returns the processes of a host's sessions.
func kernelPIDs(b *testing.B, host *coppice.Host) []int {
	b.Helper()
	tree, err := host.Snapshot(b.Context())
	require.NoError(b, err)
	var pids []int
	var walk func(messages.Node)
	walk = func(n messages.Node) {
		if n.Kind == "kernel" && n.PID != 0 {
			pids = append(pids, n.PID)
		}
		for _, c := range n.Children {
			walk(c)
		}
	}
	walk(tree)
	return pids
}

// atOnce calls f for each session, a few at a time.
func atOnce(sessions []*coppice.Session, f func(*coppice.Session)) {
	const few = 16
	slots := make(chan struct{}, few)
	var wg sync.WaitGroup
	for _, s := range sessions {
		slots <- struct{}{}
		wg.Go(func() {
			f(s)
			<-slots
		})
	}
	wg.Wait()
}

// BenchmarkIdle is the memory of live sessions that have answered once and then
// answer again, all of them: of a session's process, and of the host for each.
// COPPICE_TEST_FULL=1 adds 5,000.
func BenchmarkIdle(b *testing.B) {
	counts := []int{10, 100, 1000, 2000}
	if os.Getenv("COPPICE_TEST_FULL") != "" {
		counts = append(counts, 5000)
	}
	for _, n := range counts {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				before := pss(b, os.Getpid())
				host := start(b, backends.Runner, n)
				sessions := make([]*coppice.Session, n)
				for i := range sessions {
					sessions[i] = host.Session(fmt.Sprint(i))
				}
				begin := time.Now()
				atOnce(sessions, func(s *coppice.Session) { execute(b, s) })
				created := time.Since(begin)
				runtime.GC()
				hostSide := (pss(b, os.Getpid()) - before) / float64(n)
				pids := kernelPIDs(b, host)
				require.Len(b, pids, n)
				var sum float64
				for _, pid := range pids {
					sum += pss(b, pid)
				}
				begin = time.Now()
				atOnce(sessions, func(s *coppice.Session) { execute(b, s) })
				b.ReportMetric(sum/float64(n), "pss-KiB")
				b.ReportMetric(hostSide, "host-KiB")
				b.ReportMetric(float64(created.Microseconds())/float64(n), "create-us")
				b.ReportMetric(float64(time.Since(begin).Microseconds())/float64(n), "answer-us")
				load(b)
			}
		})
	}
}

// BenchmarkFork is a copy of a session that holds so many MiB, to the copy's first
// result.
func BenchmarkFork(b *testing.B) {
	for _, mib := range []int{0, 300} {
		b.Run(fmt.Sprintf("%dMiB", mib), func(b *testing.B) {
			host := start(b, backends.Runner, 4)
			s := host.Session("big")
			r, err := s.Execute(b.Context(), coppice.Request{Cells: []messages.Cell{{Code: fmt.Sprintf("big = bytearray(%d << 20)\nfor i in range(0, len(big), 4096): big[i] = 1", mib)}}})
			require.NoError(b, err)
			require.Equal(b, messages.OutcomeOK, r.Outcome, r.Text)
			var forked, answered []time.Duration
			for b.Loop() {
				begin := time.Now()
				copies, err := s.Fork(b.Context(), coppice.ForkOptions{Copies: 1})
				forked = append(forked, time.Since(begin))
				require.NoError(b, err)
				execute(b, copies[0])
				answered = append(answered, time.Since(begin))
				b.StopTimer()
				require.NoError(b, copies[0].Close(b.Context()))
				b.StartTimer()
			}
			report(b, forked)
			b.ReportMetric(float64(answered[len(answered)/2].Microseconds()), "answer-us")
			load(b)
		})
	}
}

// BenchmarkChurn creates sessions, has each answer once, and closes them, a few
// at a time. Nothing may be left but the spares.
func BenchmarkChurn(b *testing.B) {
	n := 1000
	if os.Getenv("COPPICE_TEST_FULL") != "" {
		n = 10_000
	}
	b.Run(strconv.Itoa(n), func(b *testing.B) {
		for b.Loop() {
			host := start(b, backends.Runner, 64)
			execute(b, host.Session("warm"))
			before := pss(b, os.Getpid())
			sessions := make([]*coppice.Session, n)
			for i := range sessions {
				sessions[i] = host.Session("churn-" + strconv.Itoa(i))
			}
			var mu sync.Mutex
			times := make([]time.Duration, 0, n)
			begin := time.Now()
			atOnce(sessions, func(s *coppice.Session) {
				took := execute(b, s)
				mu.Lock()
				times = append(times, took)
				mu.Unlock()
				if err := s.Close(b.Context()); err != nil {
					b.Errorf("%v", err)
				}
			})
			b.ReportMetric(float64(n)/time.Since(begin).Seconds(), "sessions/s")
			runtime.GC()
			b.ReportMetric(pss(b, os.Getpid())-before, "host-growth-KiB")
			require.Eventually(b, func() bool { return len(kernelPIDs(b, host)) == 1 }, time.Minute, 10*time.Millisecond, "only the warm one is left")
			report(b, times)
			load(b)
		}
	})
}
