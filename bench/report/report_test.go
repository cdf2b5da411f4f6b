package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/bench/record"
	"github.com/coppice-run/coppice/bench/report"
)

// file makes results of rounds whose true value is base, on a machine whose speed
// wanders by half between rounds; floors feel the same machine.
func file(seed uint64, rounds int, speed, slower float64) record.File {
	r := rand.New(rand.NewPCG(seed, 1))
	var f record.File
	for round := range rounds {
		machine := speed * (1 + .5*r.Float64())
		noise := func() float64 { return 1 + .02*r.NormFloat64() }
		f.Results = append(f.Results,
			record.Result{Scenario: "exec", Backend: "runner", Sessions: 1, Round: round + 1, Floor: 30 * machine * noise(), Metrics: []record.Metric{
				{Name: "back-to-back-p50", Unit: "us", Value: 100 * machine * slower * noise(), Better: record.Less},
				{Name: "p99", Unit: "us", Value: 5000 * machine * r.Float64(), Better: record.Less},
				{Name: "calls", Value: 100, Better: record.None},
			}},
			record.Result{Scenario: "churn", Backend: "runner", Sessions: 300, Round: round + 1, Floor: 30 * machine * noise(), Metrics: []record.Metric{
				{Name: "throughput", Unit: "1/s", Value: 400 / machine / slower * noise(), Better: record.More},
			}},
			record.Result{Scenario: "idle", Backend: "runner", Sessions: 100, Round: round + 1, Floor: 30 * machine * noise(), Metrics: []record.Metric{
				{Name: "process-memory", Unit: "KiB/session", Value: 2000, Better: record.Less},
			}})
	}
	return f
}

func verdicts(all []report.Difference) map[string]report.Verdict {
	out := map[string]report.Verdict{}
	for _, d := range all {
		out[d.Name+" "+d.Metric] = d.Verdict
	}
	return out
}

// The same program on a machine that is half as fast the second time is no change,
// and a fifth slower is found on the same machine.
func TestCompareSeesTheProgramAndNotTheMachine(t *testing.T) {
	for seed := range uint64(20) {
		same := report.Compare(file(seed, 7, 1, 1), file(seed+100, 7, 1.5, 1))
		require.Equal(t, report.Same, report.Worst(same), "%+v", same)
		slow := report.Compare(file(seed, 7, 1, 1), file(seed+100, 7, 1.5, 1.2))
		require.Equal(t, map[string]report.Verdict{
			"exec/runner/1 back-to-back-p50": report.Worse,
			"exec/runner/1 p99":              report.Unjudged,
			"churn/runner/300 throughput":    report.Worse,
			"idle/runner/100 process-memory": report.Same,
		}, verdicts(slow), "seed %d: %+v", seed, slow)
		fast := verdicts(report.Compare(file(seed, 7, 1, 1.2), file(seed+100, 7, 1, 1)))
		require.Equal(t, report.Better, fast["churn/runner/300 throughput"])
	}
}

// A machine that changes its speed from minute to minute hides a tenth from files that were
// measured one after the other, and not from those that were measured in turns.
func TestCompareInTurns(t *testing.T) {
	for seed := range uint64(20) {
		turns := func(slower float64, of uint64) record.File {
			machine, r := rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(of, 1))
			f := record.File{Plan: record.Plan{Turns: true}}
			for round := range 12 {
				took := (1 + machine.Float64()) * slower * (1 + .02*r.NormFloat64())
				f.Results = append(f.Results, record.Result{Scenario: "exec", Backend: "runner", Sessions: 1, Round: round + 1, Metrics: []record.Metric{
					{Name: "back-to-back-p50", Unit: "us", Value: 100 * took, Better: record.Less},
					{Name: "throughput", Unit: "1/s", Value: 400 / took, Better: record.More},
				}})
			}
			return f
		}
		same := report.Compare(turns(1, seed), turns(1, seed+100))
		require.Equal(t, report.Same, report.Worst(same), "%+v", same)
		slow := verdicts(report.Compare(turns(1, seed), turns(1.1, seed+100)))
		require.Equal(t, report.Worse, slow["exec/runner/1 back-to-back-p50"], "seed %d", seed)
		require.Equal(t, report.Worse, slow["exec/runner/1 throughput"], "seed %d", seed)
		inRow := turns(1, seed)
		inRow.Plan.Turns = false
		require.Equal(t, report.Same, report.Worst(report.Compare(inRow, turns(1.1, seed+100))))
	}
}

// What Wilcoxon's tables say.
func TestSignedRank(t *testing.T) {
	for _, tc := range []struct {
		p float64
		d []float64
	}{
		{2. / 64, []float64{1, 2, 3, 4, 5, 6}},
		{2. / 64, []float64{-1, -2, -3, -4, -5, -6}},
		{4. / 64, []float64{-1, 2, 3, 4, 5, 6}},
		{1, []float64{0, 0, 0}},
		{1, []float64{1, -1}},
		{.5, []float64{1, 1}},
	} {
		require.InDelta(t, tc.p, report.SignedRank(tc.d), 1e-9, "%v", tc.d)
	}
}

func TestTooFewRoundsAreNotJudged(t *testing.T) {
	for _, d := range report.Compare(file(1, 5, 1, 1), file(2, 5, 1, 3)) {
		require.Equal(t, report.Unjudged, d.Verdict)
	}
}

// Rounds that failed do not count, and what only one file has is left out.
func TestCompareSkipsWhatCannotBeCompared(t *testing.T) {
	a, b := file(1, 7, 1, 1), file(2, 7, 1, 1)
	for i := range b.Results {
		if b.Results[i].Scenario == "churn" {
			b.Results[i].Error = "it failed"
		}
	}
	require.NotContains(t, verdicts(report.Compare(a, b)), "churn/runner/300 throughput")
	require.Empty(t, report.Compare(a, record.File{}))
	var out bytes.Buffer
	require.NoError(t, report.WriteComparison(&out, report.Compare(a, b)))
	require.Regexp(t, `(?m)^exec/runner/1 +back-to-back-p50 .* no significant change$`, out.String())
}

// whole is a file with something of everything.
func whole() record.File {
	f := file(1, 7, 1, 1)
	f.Made = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	f.Machine = record.Machine{OS: "linux", Arch: "amd64", CPUs: 2, Memory: 24 << 30, Go: "go1.26"}
	us := func(name string, v float64) record.Metric {
		return record.Metric{Name: name, Unit: "us", Value: v, Better: record.Less}
	}
	memory := func(n int, process, host float64) record.Result {
		return record.Result{Scenario: "idle", Backend: "runner", Sessions: n, Metrics: []record.Metric{
			{Name: "process-memory", Unit: "KiB/session", Value: process, Better: record.Less}, {Name: "host-memory", Unit: "KiB/session", Value: host, Better: record.Less},
		}}
	}
	f.Results = append(f.Results,
		record.Result{Scenario: "create", Backend: "runner", Sessions: 200, Metrics: []record.Metric{us("p50", 1500), us("p99", 50_000)}},
		record.Result{Scenario: "exec", Backend: "runner", Sessions: 1000, Metrics: []record.Metric{us("p50", 300), us("p99", 900)}},
		memory(10, 2500, 300), memory(1000, 1900, 30), memory(2000, 1900, 30),
		record.Result{Scenario: "peer", Backend: "bare-pipe", Sessions: 1, Notes: []string{"does the least"}, Metrics: []record.Metric{us("create-p50", 30_000), us("exec-p50", 31), us("exec-p99", 90)}},
		record.Result{Scenario: "beside", Backend: "runner", Sessions: 1, Metrics: []record.Metric{us("exec-p50", 150), us("floor-exec-p50", 131)}},
		record.Result{Scenario: "beside", Backend: "gateway", Sessions: 1, Metrics: []record.Metric{us("exec-p50", 4400), us("floor-exec-p50", 4000)}},
		record.Result{Scenario: "crashy", Backend: "fake", Sessions: 10_000},
		record.Result{Scenario: "evict", Backend: "fake", Sessions: 10_000, Error: "2 calls went wrong <here>"},
		record.Result{Scenario: "flood", Backend: "runner", Sessions: 1, Error: "it broke"},
		record.Result{Scenario: "exec", Backend: "runner", Sessions: 100, Metrics: []record.Metric{us("cpu-per-call", 200), {Name: "full-speed", Unit: "1/s", Value: 9900}}},
		record.Result{Scenario: "exec", Backend: "runner", Sessions: 1000, Metrics: []record.Metric{{Name: "full-speed", Unit: "1/s", Value: 9000}}},
		record.Result{Scenario: "soak", Backend: "runner", Sessions: 100, Took: 10 * time.Minute, Metrics: []record.Metric{
			{Name: "host-heap-growth", Unit: "MiB/h", Value: 12}, {Name: "host-heap-growth-within", Unit: "MiB/h", Value: 3},
		}, Series: []record.Series{{Name: "host, in memory", Unit: "MiB", At: []float64{1, 2, 3}, Value: []float64{40, 41, 42}}}},
	)
	f.LeftOut = []string{"execnet is left out: not installed"}
	return f
}

func TestTheReportNamesWhatWasReachedMissedAndNotMeasured(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "latest")
	require.NoError(t, report.Write(dir, whole()))
	data, err := os.ReadFile(filepath.Join(dir, "README.md"))
	require.NoError(t, err)
	text := string(data)
	for _, want := range []string{
		`| runner: new session to first result, p50 / p99 | 1 ms / 4 ms | 1.50 / 50 ms | **missed** `,
		`| runner: memory of an idle session, process and host, 2,000 live | 2 MiB | 1.88 MiB | reached |`,
		`| runner: that beside a bare pipe, in turns, p50 | at most 25 us more | +19 us | reached |`,
		`| gateway: that beside a bare client with the same socket options, in turns, p50 | within 5 % | 1.10 times | **missed** `,
		`| gateway: 30 kernels paced, p99 | 20 ms | not measured in this run | |`,
		`crashes: calls lost, repeated or out of order | 0 | 0 | reached |`,
		`evictions: calls lost, repeated or out of order | 0 | 1 | **missed** `,
		`| bare-pipe | 30 ms | 31 us | 90 us | does the least |`,
		`* **flood/runner/1 failed**: it broke`,
		"**2,000 sessions live at once**",
		"3 are reached and 5 missed; ",
		"After 10m0s of a compressed day of agents the host's heap changes by 12 ± 3 MiB an hour (95 %): **it grows**.",
		`| runner, 1 live (7 rounds) |`,
		`## On larger machines`,
		`| runner: memory | 1,921 KiB | 8,788 KiB | 10, 1,000 | 2,000 | 3,761 MiB | 3,770 MiB | -0 % |`,
		`| runner: calls in a second | 200 us of a processor for a call | | few sessions | 1,000 | 10,000 | 9,000 | +11 % |`,
		"* execnet is left out: not installed",
		`| 64 processors, 512 GiB | runner | `,
	} {
		require.Contains(t, text, want)
	}
	for _, m := range regexp.MustCompile(`\]\(([^)]+\.svg)\)`).FindAllStringSubmatch(text, -1) {
		picture, err := os.ReadFile(filepath.Join(dir, m[1]))
		require.NoError(t, err)
		wellFormed(t, picture)
	}
	require.NotContains(t, text, "%!", "a format that does not fit")
	require.NotContains(t, text, "NaN")
}

func TestAnEmptyFileHasAReport(t *testing.T) {
	require.NoError(t, report.Write(t.TempDir(), record.File{}))
}

func wellFormed(t *testing.T, picture []byte) {
	t.Helper()
	require.NotContains(t, string(picture), "NaN")
	require.NotContains(t, string(picture), "Inf")
	d := xml.NewDecoder(bytes.NewReader(picture))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}

// Whatever the figures are, the report can be written and its pictures are XML.
func TestAnyFigures(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		names := []string{"create", "exec", "idle", "peer", "beside", "other"}
		metrics := []string{"p50", "p99", "back-to-back-p50", "create-p50", "exec-p50", "floor-exec-p50", "process-memory", "host-memory"}
		f := record.File{}
		for range rapid.IntRange(0, 12).Draw(rt, "results") {
			r := record.Result{
				Scenario: rapid.SampledFrom(names).Draw(rt, "scenario"), Backend: rapid.SampledFrom([]string{"runner", "gateway", "<&>"}).Draw(rt, "backend"),
				Sessions: rapid.IntRange(1, 10_000).Draw(rt, "sessions"), Floor: rapid.Float64Range(0, 100).Draw(rt, "floor"),
			}
			for _, m := range metrics {
				if rapid.Bool().Draw(rt, m) {
					r.Metrics = append(r.Metrics, record.Metric{Name: m, Unit: "us", Value: rapid.Float64Range(0, 1e9).Draw(rt, "value"), Better: record.Less})
				}
			}
			f.Results = append(f.Results, r)
		}
		dir := t.TempDir()
		require.NoError(rt, report.Write(dir, f))
		files, err := filepath.Glob(filepath.Join(dir, "*.svg"))
		require.NoError(rt, err)
		for _, name := range files {
			data, err := os.ReadFile(name)
			require.NoError(rt, err)
			wellFormed(t, data)
		}
		_ = report.Compare(f, f)
		require.NotContains(rt, report.Markdown(f), "NaN")
	})
}
