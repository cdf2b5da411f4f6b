package report

import (
	"fmt"
	"strings"

	"github.com/coppice-run/coppice/bench/record"
)

// missing says first what a run that was interrupted has not measured.
func (t *text) missing(f record.File) {
	if len(f.Missing) == 0 {
		return
	}
	t.add("**This run was interrupted.** %d steps were not measured: %s.\n", len(f.Missing), strings.Join(f.Missing, "; "))
}

// says is what a reader in a hurry takes away, in sentences that are left out when
// their figures were not measured.
func (t *text) says(f record.File) {
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, "* "+fmt.Sprintf(format, args...)) }
	us := func(v float64) string { return Quantity(v, "us") }
	if v, ok := get(f, "create/runner/p50", "create/runner/p99"); ok {
		line := fmt.Sprintf("A new session answers in **%s** on the runner (p99 %s)", us(v[0]), us(v[1]))
		if k, ok := get(f, "create/gateway/p50"); ok {
			line += fmt.Sprintf(", and a cold kernel behind the gateway in %s", us(k[0]))
		}
		if k, ok := get(f, "peer/jupyter_client/create-p50"); ok {
			line += fmt.Sprintf("; jupyter_client takes %s to start an ipykernel", us(k[0]))
		}
		say("%s.", line)
	}
	if v, ok := get(f, "exec/runner/back-to-back-p50"); ok {
		line := fmt.Sprintf("A round trip of `1+1` takes **%s** through the whole runtime", us(v[0]))
		if b, ok := get(f, "peer/bare-pipe/exec-p50"); ok {
			line += fmt.Sprintf(", %s over a bare pipe to the same process", us(b[0]))
		}
		if k, ok := get(f, "exec/gateway/back-to-back-p50", "peer/bare-websocket/exec-p50"); ok {
			line += fmt.Sprintf("; behind the gateway %s, where a client with a stock socket takes %s", us(k[0]), us(k[1]))
		}
		say("%s.", line)
	}
	if n, v, ok := largest(f, "idle", "runner", "process-memory", "host-memory"); ok {
		line := fmt.Sprintf("**%s sessions live at once** on this machine and all answer; each takes %s, process and host together", grouped(float64(n)), Quantity((v[0]+v[1])/1024, "MiB"))
		if k, _, ok := largest(f, "exec", "runner", "p50", "p99"); ok {
			w, _ := value(f, "exec", "runner", k, "p50")
			line += fmt.Sprintf(". With %s live, a call takes %s (p50)", grouped(float64(k)), us(w))
		}
		say("%s.", line)
	}
	if n, v, ok := largest(f, "idle", "gateway", "process-memory"); ok {
		say("%s ipykernels live at once behind one gateway; each takes %s.", grouped(float64(n)), Quantity(v[0]/1024, "MiB"))
	}
	if v, ok := get(f, "crashy/fake/calls", "evict/fake/calls"); ok {
		say("10,000 supervised sessions went through a crash storm (%s calls in a round) and an eviction storm (%s) with nothing lost, repeated or out of order.", grouped(v[0]), grouped(v[1]))
	}
	if line := soaked(f); line != "" {
		say("%s", line)
	}
	reached, missed, unknown := 0, 0, 0
	for _, g := range targets {
		switch got, ok := g.measure(f); {
		case !ok:
			unknown++
		case g.met(got):
			reached++
		default:
			missed++
		}
	}
	if reached+missed > 0 {
		line := fmt.Sprintf("Of the targets below, %d are reached and %d missed", reached, missed)
		if unknown > 0 {
			line += fmt.Sprintf("; %d were not measured in this run", unknown)
		}
		say("%s.", line)
	}
	if len(lines) > 0 {
		t.add("## What this says\n\n%s\n", strings.Join(lines, "\n"))
	}
}

// soaked says whether the longest soak shows growth.
func soaked(f record.File) string {
	for _, g := range group(pick(f, func(r record.Result) bool { return r.Scenario == "soak" })) {
		grow, ok := g.values["host-heap-growth"]
		if !ok {
			continue
		}
		slope, within := median(grow), median(g.values["host-heap-growth-within"])
		verdict := "no growth can be told from noise"
		switch {
		case slope-within > 0:
			verdict = "**it grows**"
		case slope+within < 0:
			verdict = "it shrinks"
		}
		return fmt.Sprintf("After %s of a compressed day of agents the host's heap changes by %s ± %s MiB an hour (95 %%): %s.", g.took.Round(1e9), number(slope), number(within), verdict)
	}
	return ""
}

// get returns medians of "scenario/backend/metric" at the fewest sessions.
func get(f record.File, names ...string) ([]float64, bool) {
	out := make([]float64, len(names))
	for i, n := range names {
		part := strings.SplitN(n, "/", 3)
		v, ok := value(f, part[0], part[1], 0, part[2])
		if !ok {
			return nil, false
		}
		out[i] = v
	}
	return out, true
}

// largest returns medians of metrics with the most sessions that have the first.
func largest(f record.File, scenario, backend string, metrics ...string) (sessions int, values []float64, ok bool) {
	for _, g := range group(pick(f, func(r record.Result) bool { return r.Scenario == scenario && r.Backend == backend })) {
		if len(g.values[metrics[0]]) == 0 || g.sessions <= sessions {
			continue
		}
		sessions, ok = g.sessions, true
		values = values[:0]
		for _, m := range metrics {
			values = append(values, median(g.values[m]))
		}
	}
	return sessions, values, ok
}
