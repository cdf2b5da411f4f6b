package report

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coppice-run/coppice/bench/record"
)

// Write writes the report of a file into dir: README.md and its pictures.
func Write(dir string, f record.File) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder of the report: %w", err)
	}
	files := pictures(f)
	files["README.md"] = Markdown(f)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
	}
	return nil
}

// text is Markdown under construction.
type text struct{ strings.Builder }

func (t *text) add(format string, args ...any) { _, _ = fmt.Fprintf(t, format+"\n", args...) } // a Builder does not fail

// Markdown writes the report; it refers to the pictures that Write makes.
func Markdown(f record.File) string {
	t := &text{}
	t.add("# Benchmarks\n")
	t.add("Made %s by `%s`%s. Figures of such machines are noisy: compare within one table, not with figures from elsewhere.\n", f.Made.UTC().Format("2 January 2006"), cmp.Or(f.Command, "go run ./bench/suite"), commit(f))
	t.missing(f)
	t.says(f)
	t.machine(f)
	t.targets(f)
	t.pictures(f)
	t.peers(f)
	t.scenarios(f)
	t.model(f)
	t.notes(f)
	return t.String()
}

func commit(f record.File) string {
	if f.Commit == "" {
		return ""
	}
	return " at " + f.Commit
}

func (t *text) machine(f record.File) {
	m := f.Machine
	where := cmp.Or(m.CPU, m.Arch)
	if m.Virtual {
		where += ", virtual"
	}
	low, high := 1e9, 0.0
	for _, r := range f.Results {
		low, high = min(low, r.LoadBefore), max(high, r.LoadBefore)
	}
	t.add("| machine | |\n| --- | --- |")
	t.add("| processors | %d (%s) |", m.CPUs, where)
	t.add("| memory | %.0f GiB |", float64(m.Memory)/(1<<30))
	t.add("| system | %s %s, %s, Python %s |", m.OS, m.Kernel, m.Go, cmp.Or(m.Python, "unknown"))
	if len(f.Results) > 0 {
		t.add("| load average before the rounds | %.1f to %.1f |", low, high)
	}
	t.add("")
}

func (t *text) targets(f record.File) {
	t.add("## What it must reach\n")
	t.add("| what | target | measured | |\n| --- | --- | --- | --- |")
	for _, g := range targets {
		got, ok := g.measure(f)
		switch {
		case !ok:
			t.add("| %s | %s | not measured in this run | |", g.what, g.target)
		case g.met(got):
			t.add("| %s | %s | %s | reached |", g.what, g.target, g.show(got))
		default:
			t.add("| %s | %s | %s | **missed** %s |", g.what, g.target, g.show(got), g.reason)
		}
	}
	t.add("")
}

func (t *text) pictures(f record.File) {
	names := make([]string, 0, 4)
	for name := range pictures(f) {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, n := range names {
		t.add("![%s](%s)\n", strings.TrimSuffix(strings.ReplaceAll(n, "-", " "), ".svg"), n)
	}
}

func (t *text) notes(f record.File) {
	var lines []string
	for _, l := range f.LeftOut {
		lines = append(lines, "* "+l)
	}
	for _, r := range f.Results {
		if r.Error != "" {
			lines = append(lines, "* **"+r.Name()+" failed**: "+r.Error)
		}
		if r.Scenario == "peer" {
			continue
		}
		for _, n := range r.Notes {
			if l := "* " + r.Name() + ": " + n; !slices.Contains(lines, l) {
				lines = append(lines, l)
			}
		}
	}
	if len(lines) > 0 {
		t.add("## Notes\n\n%s", strings.Join(lines, "\n"))
	}
}

// rounds are the results of one scenario with one backend and number of sessions.
type rounds struct {
	scenario, backend string
	sessions, rounds  int
	took              time.Duration
	metrics           []record.Metric
	values            map[string][]float64
	notes             []string
}

// cell is a metric's median, with its range when it was measured more than once.
func (g rounds) cell(metric string) string {
	v := g.values[metric]
	if len(v) == 0 {
		return ""
	}
	unit := ""
	for _, m := range g.metrics {
		if m.Name == metric {
			unit = m.Unit
		}
	}
	text := Quantity(median(v), unit)
	low, high := Quantity(slices.Min(v), unit), Quantity(slices.Max(v), unit)
	if len(v) > 1 && low != high {
		text += " <sub>" + low + " – " + high + "</sub>"
	}
	return text
}

func pick(f record.File, which func(record.Result) bool) []record.Result {
	var out []record.Result
	for _, r := range f.Results {
		if r.Error == "" && which(r) {
			out = append(out, r)
		}
	}
	return out
}

// group collects rounds, in the order in which the suite names them.
func group(results []record.Result) []rounds {
	var out []rounds
	for _, r := range results {
		i := slices.IndexFunc(out, func(g rounds) bool {
			return g.scenario == r.Scenario && g.backend == r.Backend && g.sessions == r.Sessions
		})
		if i < 0 {
			i = len(out)
			out = append(out, rounds{scenario: r.Scenario, backend: r.Backend, sessions: r.Sessions, values: map[string][]float64{}, notes: r.Notes})
		}
		g := &out[i]
		g.rounds++
		g.took = max(g.took, r.Took)
		for _, m := range r.Metrics {
			if _, known := g.values[m.Name]; !known {
				g.metrics = append(g.metrics, m)
			}
			g.values[m.Name] = append(g.values[m.Name], m.Value)
		}
	}
	slices.SortStableFunc(out, func(a, b rounds) int {
		return cmp.Or(cmp.Compare(place(a.scenario), place(b.scenario)), cmp.Compare(a.backend, b.backend)*boolInt(a.scenario != "peer"), cmp.Compare(a.sessions, b.sessions))
	})
	return out
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// order is that of the sections of a report.
var order = []string{"create", "exec", "idle", "churn", "burst", "chatty", "flood", "prints", "crashy", "evict", "interrupt", "fork", "hostcalls", "rungs", "mixed", "soak", "cold", "beside", "peer"}

func place(scenario string) int {
	if i := slices.Index(order, scenario); i >= 0 {
		return i
	}
	return len(order)
}

// summary is the median of a time with the fewest sessions, as text.
func summary(f record.File, scenario, backend, metric string) string {
	v, ok := value(f, scenario, backend, 0, metric)
	if !ok {
		return ""
	}
	return Quantity(v, "us")
}

// value is the median of a metric. sessions 0: of the fewest that were measured.
func value(f record.File, scenario, backend string, sessions int, metric string) (float64, bool) {
	for _, g := range group(pick(f, func(r record.Result) bool { return r.Scenario == scenario && r.Backend == backend })) {
		if v := g.values[metric]; len(v) > 0 && (sessions == 0 || g.sessions == sessions) {
			return median(v), true
		}
	}
	return 0, false
}
