//go:build linux

package bench_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/test/testpython"
)

// floodBlock is what the flood prints again and again: 64 KiB of lines, some of
// them not ASCII.
var floodBlock = strings.Repeat("0123456789 abcdefghijklmnopqrstuvwxyz é 木 0123456789\n", 1100)

const floodCode = "import sys\nblock = '0123456789 abcdefghijklmnopqrstuvwxyz é 木 0123456789\\n' * 1100\nwritten = 0\nfor _ in range(%d):\n    sys.stdout.write(block)\n    written += 1\n"

// floodBlocks is how many blocks are printed: COPPICE_FLOOD_MIB MiB, or 64.
func floodBlocks(b *testing.B) int {
	b.Helper()
	size := 64
	if text := os.Getenv("COPPICE_FLOOD_MIB"); text != "" {
		var err error
		size, err = strconv.Atoi(text)
		require.NoError(b, err)
	}
	return size << 20 / len(floodBlock)
}

// watchMemory returns a function that ends the watch and says by how many MiB
// the memory of this process has grown at most.
func watchMemory(b *testing.B) func() float64 {
	b.Helper()
	debug.FreeOSMemory()
	before := resident(b)
	most := before
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				most = max(most, resident(b))
			}
		}
	})
	return func() float64 {
		close(stop)
		done.Wait()
		return float64(most-before) / (1 << 20)
	}
}

func resident(b *testing.B) int64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Error(err)
		return 0
	}
	fields := strings.Fields(string(data))
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		b.Error(err)
	}
	return pages * int64(os.Getpagesize())
}

func floodHash(blocks int) string {
	h := sha256.New()
	for range blocks {
		_, _ = io.WriteString(h, floodBlock)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// flooded are the backends whose floods are measured here.
var flooded = []string{backends.Runner, backends.Gateway}

// floodHost starts a host whose artifacts are in a folder of the benchmark.
func floodHost(b *testing.B, backend string, more ...sinks.Attachment) *coppice.Host {
	b.Helper()
	host, err := coppice.Start(b.Context(), coppice.Options{
		Backend: backends.Named(backend), Python: testpython.Path(b), Home: b.TempDir(), Output: coppice.OutputOptions{Artifacts: b.TempDir()}, Sinks: more, StartTimeout: 5 * time.Minute,
	})
	require.NoError(b, err)
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.True(b, host.Shutdown(ctx).Clean())
	})
	return host
}

// BenchmarkFlood prints COPPICE_FLOOD_MIB MiB (64) into the result sink, with
// its budget and its artifact, and proves that the artifact is what was printed.
func BenchmarkFlood(b *testing.B) {
	for _, backend := range flooded {
		b.Run(backend, func(b *testing.B) {
			host, blocks := floodHost(b, backend), floodBlocks(b)
			want := floodHash(blocks)
			s := host.Session("flood", coppice.In(b.TempDir()))
			execute(b, s)
			grown := watchMemory(b)
			b.SetBytes(int64(blocks * len(floodBlock)))
			b.ResetTimer()
			for b.Loop() {
				r, err := s.Execute(b.Context(), coppice.Request{Cells: []messages.Cell{{Code: fmt.Sprintf(floodCode, blocks)}}, Timeout: 10 * time.Minute})
				require.NoError(b, err)
				require.Equal(b, messages.OutcomeOK, r.Outcome, r.Text[max(0, len(r.Text)-2000):])
				require.NotNil(b, r.Artifact)
				require.Equal(b, int64(blocks*len(floodBlock)), r.Truncation.TotalBytes)
				b.StopTimer()
				f, err := host.Artifacts().Open(*r.Artifact)
				require.NoError(b, err)
				h := sha256.New()
				_, err = io.Copy(h, f)
				require.NoError(b, err)
				require.NoError(b, f.Close())
				require.Equal(b, want, fmt.Sprintf("%x", h.Sum(nil)), "the artifact is what was printed")
				require.NoError(b, os.Remove(f.Name()))
				b.StartTimer()
			}
			b.StopTimer()
			b.ReportMetric(grown(), "MiB-grown")
		})
	}
	b.Run("python to a file", func(b *testing.B) {
		blocks := floodBlocks(b)
		b.SetBytes(int64(blocks * len(floodBlock)))
		for b.Loop() {
			f, err := os.Create(filepath.Join(b.TempDir(), "out"))
			require.NoError(b, err)
			cmd := exec.CommandContext(b.Context(), testpython.Path(b), "-c", fmt.Sprintf(floodCode, blocks))
			cmd.Stdout, cmd.Env = f, append(os.Environ(), "PYTHONIOENCODING=utf-8")
			require.NoError(b, cmd.Run())
			require.NoError(b, f.Close())
			require.NoError(b, os.Remove(f.Name()))
		}
	})
}

// BenchmarkFloodInterrupt is the time from an interrupt in the middle of a flood
// to the result.
func BenchmarkFloodInterrupt(b *testing.B) {
	for _, backend := range flooded {
		b.Run(backend, func(b *testing.B) {
			host := floodHost(b, backend)
			s := host.Session("flood", coppice.In(b.TempDir()))
			var times []time.Duration
			for b.Loop() {
				var at time.Time
				size := 0
				for e, err := range s.Stream(b.Context(), coppice.Request{Cells: []messages.Cell{{Code: fmt.Sprintf(floodCode, 1<<30)}}}) {
					require.NoError(b, err)
					if size += e.Size(); size > 32<<20 && at.IsZero() {
						at = time.Now()
						require.NoError(b, s.Interrupt())
					}
					if final, ok := e.(messages.Final); ok {
						require.Equal(b, messages.OutcomeCancelled, final.Result.Outcome)
						require.NotEqual(b, messages.StateLost, final.Result.State)
					}
				}
				times = append(times, time.Since(at))
			}
			report(b, times)
		})
	}
}

// slowSink takes a megabyte a second.
type slowSink struct{}

func (slowSink) Consume(ctx context.Context, e messages.Event) error {
	t := time.NewTimer(time.Duration(e.Size()) * time.Microsecond)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
func (slowSink) Flush(context.Context) error { return nil }
func (slowSink) Close() error                { return nil }

// BenchmarkFloodSlow prints for COPPICE_FLOOD_SECONDS (3) into a sink that takes a
// megabyte a second, and says how much Python has printed and how the host has
// grown. The runner's Python is held back; that of a gateway prints on, and what
// the sink has not taken waits on disk.
func BenchmarkFloodSlow(b *testing.B) {
	for _, backend := range flooded {
		b.Run(backend, func(b *testing.B) {
			host := floodHost(b, backend, sinks.Attachment{Name: "slow", For: func(context.Context, messages.Execute) sinks.Sink { return slowSink{} }})
			s := host.Session("flood", coppice.In(b.TempDir()))
			execute(b, s)
			limit := 3 * time.Second
			if text := os.Getenv("COPPICE_FLOOD_SECONDS"); text != "" {
				n, err := strconv.Atoi(text)
				require.NoError(b, err)
				limit = time.Duration(n) * time.Second
			}
			for b.Loop() {
				grown := watchMemory(b)
				begin := time.Now()
				r, err := s.Execute(b.Context(), coppice.Request{Cells: []messages.Cell{{Code: fmt.Sprintf(floodCode, floodBlocks(b))}}, Timeout: limit})
				took := time.Since(begin)
				require.NoError(b, err)
				b.ReportMetric(grown(), "MiB-grown")
				b.ReportMetric((took - limit).Seconds(), "s-after-timeout")
				if r.State == messages.StateLost {
					continue
				}
				r, err = s.Execute(b.Context(), coppice.Request{Cells: []messages.Cell{{Code: "written"}}})
				require.NoError(b, err)
				n, err := strconv.Atoi(r.Text)
				require.NoError(b, err, r.Text)
				b.ReportMetric(float64(n*len(floodBlock))/(1<<20), "MiB-printed")
			}
		})
	}
}
