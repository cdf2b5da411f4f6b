package escape_test

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/environment"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/proc"
	"github.com/coppice-run/coppice/workspace"
)

// BenchmarkRungs measures what each rung costs: a new session that was not forked ahead,
// with its first call, a call of an old one, a change of a file's mode, the first session of a
// new workspace, and the memory that a session adds to what all of the host's take. The fastest of each is told besides the mean, since that is
// what a busy machine changes least.
//
//	go test -run '^$' -bench Rungs -benchtime 200x ./test/escape
func BenchmarkRungs(b *testing.B) {
	interpreter := os.Getenv("COPPICE_ESCAPE_PYTHON") // one that all users can run
	if interpreter == "" {
		interpreter = "/usr/bin/python3"
	}
	costs(b, rungs, func(string) (string, []string) { return interpreter, nil }, coppice.Runner(coppice.RunnerOptions{Spares: -1}))
}

// BenchmarkRungsOfGateways measures the same of kernels.
//
//	go test -run '^$' -bench RungsOfGateways -benchtime 20x ./test/escape
func BenchmarkRungsOfGateways(b *testing.B) {
	costs(b, ofGateways, func(rung string) (string, []string) { return kernelsOn(b, rung) }, coppice.Gateway(coppice.GatewayOptions{WarmKernels: -1}))
}

func costs(b *testing.B, rungs []string, python func(rung string) (string, []string), backend coppice.Backend) {
	b.Helper()
	for _, rung := range rungs {
		if why := environment.LacksRung(rung); why != nil {
			b.Logf("RUNG %s: not here: %v", rung, why)
			continue
		}
		dir, err := os.MkdirTemp("", "coppice-escape-") //nolint:usetesting // the parents of b.TempDir are this user's alone
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, os.RemoveAll(dir)) })
		require.NoError(b, os.Chmod(dir, 0o755)) //nolint:gosec // other users pass
		interpreter, packages := python(rung)
		begin := func() *coppice.Host {
			h, err := coppice.Start(b.Context(), coppice.Options{
				Backend: backend, Home: b.TempDir(), Python: interpreter, MaxSessions: 8,
				Isolation: coppice.Isolation{Level: rung, Write: []string{dir}, Read: packages},
			})
			require.NoError(b, err)
			return h
		}
		h := begin()
		run := func(b *testing.B, s *coppice.Session, code string) messages.Result {
			b.Helper()
			r, err := s.Execute(b.Context(), coppice.Request{Cells: []messages.Cell{{Code: code}}})
			require.NoError(b, err)
			require.Equal(b, messages.OutcomeOK, r.Outcome, r.Text)
			return r
		}
		old := h.Session("old", coppice.In(dir))
		run(b, old, "1")
		n := 0
		for _, c := range []struct {
			what string
			do   func(*testing.B)
		}{
			{"session", func(b *testing.B) {
				b.Helper()
				n++
				run(b, h.Session(fmt.Sprint("new", n), coppice.In(dir)), "1+1")
			}},
			{"call", func(b *testing.B) { b.Helper(); run(b, old, "1+1") }},
			{"first", func(b *testing.B) {
				b.Helper()
				n++
				name := fmt.Sprint("w", n)
				w, err := h.Workspace(b.Context(), name, workspace.Options{Isolation: coppice.Isolation{Level: rung, Read: packages}})
				require.NoError(b, err)
				run(b, h.Session("s", coppice.InWorkspace(name)), "1+1")
				b.StopTimer()
				require.NoError(b, w.End(b.Context()))
				b.StartTimer()
			}},
			{"chmod", func(b *testing.B) {
				b.Helper()
				run(b, old, "import os\nopen('f', 'a').close()\nfor _ in range(100): os.chmod('f', 0o600)")
			}},
		} {
			b.Run(rung+"/"+c.what, func(b *testing.B) {
				run(b, old, "1") // new sessions may have taken its place
				least := time.Duration(math.MaxInt64)
				for b.Loop() {
					begin := b.Elapsed()
					c.do(b)
					least = min(least, b.Elapsed()-begin)
				}
				b.ReportMetric(float64(least.Microseconds()), "min-µs")
			})
		}
		require.True(b, h.Shutdown(b.Context()).Clean())
		h = begin()    // in which no session takes the place of another
		const more = 3 // the first may still share what it will not
		run(b, h.Session("memory", coppice.In(dir)), "1")
		before := taken()
		for n := range more {
			run(b, h.Session(fmt.Sprint("memory", n), coppice.In(dir)), "1")
		}
		b.Logf("RUNG %s: a new session takes %d KiB more", rung, (taken()-before)/more)
		require.True(b, h.Shutdown(b.Context()).Clean())
	}
}

// taken is the memory of all processes below this one in KiB, of which each has its part alone
// of what it shares.
func taken() int {
	sum := 0
	for _, p := range proc.Below(os.Getpid()) {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.PID))
		if err != nil {
			continue // it has ended
		}
		for line := range strings.Lines(string(data)) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "Pss:" {
				kib, _ := strconv.Atoi(f[1])
				sum += kib
			}
		}
	}
	return sum
}
