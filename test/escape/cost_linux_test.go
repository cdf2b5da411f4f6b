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
)

// BenchmarkRungs measures what each rung costs: a new session that was not forked ahead,
// with its first call, a call of an old one, a change of a file's mode, and the memory of
// a session that is its own. The fastest of each is told besides the mean, since that is
// what a busy machine changes least.
//
//	go test -run '^$' -bench Rungs -benchtime 200x ./test/escape
func BenchmarkRungs(b *testing.B) {
	interpreter := os.Getenv("COPPICE_ESCAPE_PYTHON") // one that all users can run
	if interpreter == "" {
		interpreter = "/usr/bin/python3"
	}
	for _, rung := range rungs {
		if why := environment.LacksRung(rung); why != nil {
			b.Logf("RUNG %s: not here: %v", rung, why)
			continue
		}
		dir, err := os.MkdirTemp("", "coppice-escape-") //nolint:usetesting // the parents of b.TempDir are this user's alone
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, os.RemoveAll(dir)) })
		require.NoError(b, os.Chmod(dir, 0o755)) //nolint:gosec // other users pass
		h, err := coppice.Start(b.Context(), coppice.Options{
			Backend: coppice.Runner(coppice.RunnerOptions{Spares: -1}), Home: b.TempDir(), Python: interpreter, MaxSessions: 4,
			Isolation: coppice.Isolation{Level: rung, Write: []string{dir}},
		})
		require.NoError(b, err)
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
			{"chmod", func(b *testing.B) {
				b.Helper()
				run(b, old, "import os\nopen('f', 'a').close()\nfor _ in range(100): os.chmod('f', 0o600)")
			}},
		} {
			b.Run(rung+"/"+c.what, func(b *testing.B) {
				least := time.Duration(math.MaxInt64)
				for b.Loop() {
					begin := time.Now()
					c.do(b)
					least = min(least, time.Since(begin))
				}
				b.ReportMetric(float64(least.Microseconds()), "min-µs")
			})
		}
		r := run(b, h.Session("memory", coppice.In(dir)), "print(sum(int(l.split()[1]) for l in open('/proc/self/smaps_rollup') if l.startswith('Private_')))")
		kib, err := strconv.Atoi(strings.TrimSpace(r.Text))
		if err == nil {
			b.Logf("RUNG %s: a new session has %d KiB of its own", rung, kib)
		}
		require.True(b, h.Shutdown(b.Context()).Clean())
	}
}
