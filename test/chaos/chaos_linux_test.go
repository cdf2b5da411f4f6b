package chaos_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/test/chaos/judge"
	"github.com/coppice-run/coppice/test/testpython"
)

// planVariable makes this program a host.
const planVariable = "COPPICE_CHAOS_PLAN"

func TestMain(m *testing.M) {
	if text := os.Getenv(planVariable); text != "" {
		fmt.Fprintln(os.Stderr, beHost(text))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// margin is what a call may take above its limit and the grace, and gone how long a
// killed host's processes may take to end.
const (
	margin = 2 * time.Second
	gone   = 10 * time.Second
)

// scale is how much a run does.
type scale struct {
	sessions      int
	lasts, faults time.Duration
}

func scaleOf(backend string) scale {
	s := map[string]scale{
		backends.Runner:  {sessions: 12, lasts: 8 * time.Second, faults: 400 * time.Millisecond},
		backends.Gateway: {sessions: 2, lasts: 12 * time.Second, faults: 1500 * time.Millisecond},
	}[backend]
	if os.Getenv("COPPICE_TEST_FULL") != "" {
		s = map[string]scale{
			backends.Runner:  {sessions: 200, lasts: 5 * time.Minute, faults: time.Second},
			backends.Gateway: {sessions: 6, lasts: 5 * time.Minute, faults: 2 * time.Second},
		}[backend]
	}
	if d, err := time.ParseDuration(os.Getenv("COPPICE_CHAOS_TIME")); err == nil {
		s.lasts = d
	}
	return s
}

// TestChaos runs a host on each backend under random signals, kills it, and judges what
// its callers were told by what its cells did.
func TestChaos(t *testing.T) {
	for _, backend := range backends.All() {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			if text := os.Getenv("COPPICE_CHAOS_SEED"); text != "" {
				var err error
				seed, err = strconv.ParseUint(text, 10, 64)
				require.NoError(t, err)
			}
			chaos(t, backend, scaleOf(backend), seed)
		})
	}
}

func chaos(t *testing.T, backend string, s scale, seed uint64) {
	p := plan{
		Backend: backend, Python: testpython.Path(t), Dir: t.TempDir(), Sessions: s.sessions, Seed: seed,
		Mark: fmt.Sprintf("45.%09d", rand.IntN(1_000_000_000)), // what is left is there for longer than it may take
	}
	text, err := json.Marshal(p)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	tmp := shortDir(t)
	cmd.Env = append(os.Environ(), planVariable+"="+string(text), "TMPDIR="+tmp)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.True(t, bufio.NewScanner(out).Scan(), "the host has not begun")

	f := &faults{
		host: cmd.Process, mark: p.Mark, tmp: tmp, r: rand.New(rand.NewPCG(seed, 0)),
		sent: map[string]int{}, owners: map[int]bool{},
	}
	require.Eventually(t, func() bool {
		ran, _ := filepath.Glob(filepath.Join(p.Dir, "*.cells"))
		return len(ran) > 0
	}, 2*time.Minute, 20*time.Millisecond, "no cell has run")
	began := time.Now()
	ranBefore, waitedBefore := waited()
	for time.Since(began) < s.lasts {
		<-time.After(s.faults/2 + time.Duration(f.r.Int64N(int64(s.faults))))
		f.one()
	}
	f.halted.Wait()
	<-time.After(margin) // what was held up is told
	machine := look(f.mark)
	known := append(f.below(machine), f.strays(machine)...)
	ended := time.Now()
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed, as it should be
	var after time.Duration
	for left := f.left(known); len(left) > 0 && time.Since(ended) < gone; left = f.left(known) {
		<-time.After(50 * time.Millisecond)
		after = time.Since(ended)
	}
	left := f.left(known)
	still := stills(t, p.Dir, f.still)
	report, err := judge.Judge(p.Dir, judge.Bounds{Ended: ended.UnixMilli(), Grace: grace.Milliseconds(), Margin: margin.Milliseconds(), Still: still})
	require.NoError(t, err)
	t.Logf("%s\n", table(backend, seed, time.Since(began), f, report, len(known), left, after))
	for i, text := range append(slices.Clone(report.Untrue), report.Late...) {
		const most = 20
		if i < most {
			t.Log(text)
		}
	}
	require.Empty(t, left, "left behind")
	require.Empty(t, report.Untrue)
	require.Positive(t, report.Ran)
	ran, wait := waited()
	if ran, wait = ran-ranBefore, wait-waitedBefore; wait > ran/2 {
		t.Logf("the machine was busy: this process ran %v and waited %v for a processor; what came late is told and not judged", time.Duration(ran), time.Duration(wait))
		return
	}
	require.Empty(t, report.Late)
}

// shortDir is a folder for temporary files whose path is short enough for sockets.
func shortDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/tmp", "chaos")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// stills returns how long the host stood still between two times, which it has noted.
func stills(t *testing.T, dir string, stopped [][2]int64) func(from, to int64) int64 {
	data, err := os.ReadFile(filepath.Join(dir, "calls.jsonl"))
	require.NoError(t, err)
	var all []judge.Line
	for line := range strings.SplitSeq(string(data), "\n") {
		var l judge.Line
		if json.Unmarshal([]byte(line), &l) == nil && l.What == "still" {
			all = append(all, l)
		}
	}
	for _, s := range stopped {
		all = append(all, judge.Line{At: s[1], Limit: s[1] - s[0]})
	}
	slices.SortFunc(all, func(a, b judge.Line) int { return int(a.At - a.Limit - b.At + b.Limit) })
	return func(from, to int64) int64 {
		sum, past := int64(0), from
		for _, l := range all { // in the order of their beginnings
			if begin := max(l.At-l.Limit, past); begin < min(l.At, to) {
				sum += min(l.At, to) - begin
				past = min(l.At, to)
			}
		}
		return sum
	}
}

func table(backend string, seed uint64, took time.Duration, f *faults, r judge.Report, before int, left []string, after time.Duration) string {
	total := 0
	var sent []string
	for _, name := range slices.Sorted(maps.Keys(f.sent)) {
		total += f.sent[name]
		sent = append(sent, fmt.Sprintf("%s %d", name, f.sent[name]))
	}
	row := func(m map[string]int) string {
		var all []string
		for _, name := range slices.Sorted(maps.Keys(m)) {
			all = append(all, fmt.Sprintf("%s %d", name, m[name]))
		}
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf(`
| %s, seed %d, %v | |
|---|---|
| calls, results | %d, %d |
| cells that ran | %d |
| outcomes | %s |
| states | %s |
| faults | %d: %s |
| untrue | %d |
| later than context + grace + %v | %d, the latest by %v |
| processes before SIGKILL of the host, left after %v | %d, %d (the last ended after %v) |`,
		backend, seed, took.Round(time.Second), r.Calls, r.Results, r.Ran, row(r.Outcomes), row(r.States), total, strings.Join(sent, ", "),
		len(r.Untrue), margin, len(r.Late), r.Latest, gone, before, len(left), after.Round(10*time.Millisecond))
}
