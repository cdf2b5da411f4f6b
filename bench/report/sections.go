package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/coppice-run/coppice/bench/record"
)

// peers is the table of floors and peers, and of Coppice beside them.
func (t *text) peers(f record.File) {
	all := group(pick(f, func(r record.Result) bool { return r.Scenario == "peer" }))
	if len(all) == 0 {
		return
	}
	t.add("## Floors and peers\n")
	t.add("The same cell, `1+1`, one caller, back to back: from nothing to the first result, and a round trip.\n")
	t.add("| | new session p50 | round trip p50 | round trip p99 | what it is, and is not |\n| --- | ---: | ---: | ---: | --- |")
	for _, o := range []struct{ name, backend string }{{"Coppice, runner", "runner"}, {"Coppice, gateway", "gateway"}} {
		create := summary(f, "create", o.backend, "p50")
		p50, p99 := summary(f, "exec", o.backend, "back-to-back-p50"), summary(f, "exec", o.backend, "back-to-back-p99")
		t.add("| **%s** | %s | %s | %s | the whole runtime: supervision, sinks, result text, every answer accounted for |", o.name, create, p50, p99)
	}
	cell := func(g rounds, metric string) string {
		if v := g.values[metric]; len(v) > 0 {
			return Quantity(median(v), "us")
		}
		return ""
	}
	for _, g := range all {
		t.add("| %s | %s | %s | %s | %s |", g.backend, cell(g, "create-p50"), cell(g, "exec-p50"), cell(g, "exec-p99"), strings.Join(g.notes, "; "))
	}
	t.add("")
}

// abouts says what each scenario measures and what its names mean.
var abouts = map[string]string{
	"create":         "A new session to its first result; sessions arrive like independent callers, after two that have the fork server warm.",
	"ready":          "A new session that something waits for, a spare of the runner or a warm kernel of the gateway, to its first result; one after the other, with time to make the next one.",
	"exec":           "`1+1` while so many sessions live: back to back in one of them, then of all from independent callers (p50, p99), then as fast as it goes (full-speed, and the processor time of one call).",
	"idle":           "What sessions take that wait: memory, processor time, descriptors, threads; then all of them answer again.",
	"churn":          "Sessions that come, answer once and go, sixteen at a time.",
	"burst":          "So many new sessions at the same instant, each to its first result.",
	"chatty":         "Sessions that print a line ten times a second: from print to the consumer.",
	"prints":         "A number on each line, with nothing between them; Python alone writes each to a file at once (`-u`). Then an error whose traceback is 100,000 frames deep.",
	"flood":          "Printed as fast as Python can; the artifact is compared with what was printed.",
	"crashy":         "One call in twenty ends its kernel.",
	"default-server": "The scenario crashy on a Kernel Gateway as it comes, which restarts dead kernels itself.",
	"evict":          "Ten times more sessions than may live.",
	"interrupt":      "From the interrupt of a loop, of `time.sleep`, of `await`, and of a flood of output that nobody reads meanwhile, to the result.",
	"fork":           "A copy of a session that holds 300 MiB.",
	"rungs":          "What each rung of isolation costs: a new session that was not forked ahead, to its first result, a call of an old one, and the memory of a session.",
	"hostcalls":      "A thousand calls of a function of the host from each session, all at once: a call waits for those of all others.",
	"cold":           "Whole commands, each from nothing to its end, in turns: `coppice run -c 1+1` with what an earlier start has left (first: without), `coppice version` (nothing), and the bare interpreter (python).",
	"mixed":          "A host's day, compressed: agents come, think between calls, define, print 2,000 lines, compute, fail, crash, and go or leave their session behind. Each kind of call by itself.",
	"soak":           "The same for long. Growth is the slope over the last two thirds, with the half width of its 95 % interval (within): a growth smaller than that is none that can be told from noise.",
}

func (t *text) scenarios(f record.File) {
	all := group(pick(f, func(r record.Result) bool { return r.Scenario != "peer" }))
	if len(all) == 0 {
		return
	}
	t.add("## Scenarios\n")
	t.add("The median of the rounds, and their range. p50 and p99 are from the instant at which a call was due (open loop); late-p99 is how late the generator itself was.\n")
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].scenario == all[0].scenario {
			n++
		}
		t.scenario(all[:n])
		all = all[n:]
	}
}

// scenario writes one table: a row for each configuration, or one for each metric
// where there are more of these.
func (t *text) scenario(all []rounds) {
	t.add("### %s\n", all[0].scenario)
	if about := abouts[all[0].scenario]; about != "" {
		t.add("%s\n", about)
	}
	var metrics []string
	for _, g := range all {
		for _, m := range g.metrics {
			if !slices.Contains(metrics, m.Name) {
				metrics = append(metrics, m.Name)
			}
		}
	}
	head := func(g rounds) string {
		s := fmt.Sprintf("%s, %s live", g.backend, grouped(float64(g.sessions)))
		if g.rounds > 1 {
			s += fmt.Sprintf(" (%d rounds)", g.rounds)
		}
		return s
	}
	if len(metrics) <= 9 || len(metrics) <= len(all) {
		t.add("| | %s |\n| --- |%s", strings.Join(metrics, " | "), strings.Repeat(" ---: |", len(metrics)))
		for _, g := range all {
			row := "| " + head(g) + " |"
			for _, m := range metrics {
				row += " " + g.cell(m) + " |"
			}
			t.add("%s", row)
		}
		t.add("")
		return
	}
	row := "| |"
	for _, g := range all {
		row += " " + head(g) + " |"
	}
	t.add("%s\n| --- |%s", row, strings.Repeat(" ---: |", len(all)))
	for _, m := range metrics {
		row := "| " + m + " |"
		for _, g := range all {
			row += " " + g.cell(m) + " |"
		}
		t.add("%s", row)
	}
	t.add("")
}

// model writes what the figures say of larger machines, and how well the model
// predicts the points that it was not made from.
func (t *text) model(f record.File) {
	var models []*model
	for _, backend := range []string{"runner", "gateway"} {
		if m := modelOf(f, backend); m != nil {
			models = append(models, m)
		}
	}
	if len(models) == 0 {
		return
	}
	t.add("## On larger machines\n")
	t.add("A model, not a measurement: each figure is a line through measured points, a fixed part and one for each session.\n")
	t.checks(f, models)
	t.add("Where sessions may take %.0f %% of the memory and, while they wait, half of the processors:\n", 100*usable)
	t.add("| host | backend | live sessions, by memory | by idle processor time | by descriptors | by processes and threads | binds first | moved by | calls of 1+1 in a second |\n| --- | --- | ---: | ---: | ---: | ---: | --- | --- | ---: |")
	for _, h := range machines {
		for _, m := range models {
			t.prediction(h, m)
		}
	}
	t.add("")
	t.add("One Kernel Gateway holds at most %d kernels (each takes 6 of the 1,023 sockets of its ZeroMQ context). With `GatewayOptions.Shared` sessions go to a further gateway when one is full, so the row of the gateway is what the machine holds, and the number of gateways that takes; a Host without it has one gateway.\n", perGateway)
	t.add("A fleet multiplies hosts: sessions share nothing between them, and a host is chosen once, by the session's key.%s `Options.MaxSessions` is what to set to the figure of one host; the session least recently used makes room beyond it.\n", fleet(models[0]))
}

// fleet says how many hosts a million sessions take.
func fleet(m *model) string {
	const sessions = 1e6
	h := machines[len(machines)-1]
	most := first(m.bounds(h)).most
	if most < 1 || math.IsInf(most, 1) {
		return ""
	}
	return fmt.Sprintf(" A million live sessions on the %s backend take %.0f hosts of %s.", m.backend, math.Ceil(sessions/most), h.name)
}

func (t *text) prediction(h machine, m *model) {
	all := m.bounds(h)
	least := first(all)
	name, most := least.name, least.most
	if m.backend == "gateway" && most > perGateway && !math.IsInf(most, 1) {
		name = fmt.Sprintf("%d kernels of one gateway, then %s", perGateway, least.name)
		least.move = fmt.Sprintf("`GatewayOptions.Shared`, which starts %.0f of them, then %s", math.Ceil(most/perGateway), least.move)
	}
	row := fmt.Sprintf("| %s | %s |", h.name, m.backend)
	for _, b := range all {
		if math.IsInf(b.most, 1) {
			row += " |"
			continue
		}
		row += " " + grouped(b.most) + " |"
	}
	calls := ""
	if v := m.calls(h, 0); v > 0 {
		calls = fmt.Sprintf("%s, %s with all of them live", grouped(math.Round(v)), grouped(math.Round(m.calls(h, most))))
	}
	t.add("%s %s | %s | %s |", row, name, least.move, calls)
}

// checks is the table of what the model says of points that were measured.
func (t *text) checks(f record.File, models []*model) {
	t.add("| what | for each session | fixed | from | checked at | predicted | measured | error |\n| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: |")
	for _, m := range models {
		for _, c := range []struct {
			name string
			of   *fitted
			show func(v float64) string
		}{
			{"memory", m.memory, func(v float64) string { return Quantity(v/1024, "KiB") }},
			{"processor time while they wait, in a second", m.idle, func(v float64) string { return Quantity(v*1e6, "us") }},
			{"descriptors of the host", m.hostFiles, func(v float64) string { return grouped(math.Round(10*v) / 10) }},
			{"descriptors of the fork server or gateway", m.serverFiles, func(v float64) string { return grouped(math.Round(10*v) / 10) }},
			{"threads of its process", m.threads, func(v float64) string { return grouped(math.Round(10*v) / 10) }},
		} {
			if c.of == nil {
				continue
			}
			from := make([]string, len(c.of.from))
			for i, p := range c.of.from {
				from[i] = grouped(p.x)
			}
			row := fmt.Sprintf("| %s: %s | %s | %s | %s |", m.backend, c.name, c.show(c.of.each), c.show(c.of.base), strings.Join(from, ", "))
			if c.of.kept.x == 0 {
				t.add("%s | | | |", row) // no point to check it with
				continue
			}
			predicted := c.of.at(c.of.kept.x)
			t.add("%s %s | %s | %s | %+.0f %% |", row, grouped(c.of.kept.x), c.show(predicted), c.show(c.of.kept.y), off(predicted, c.of.kept.y))
		}
		n, v, ok := largest(f, "exec", m.backend, "full-speed")
		if here := m.calls(machine{cpus: float64(f.Machine.CPUs)}, float64(n)); ok && here > 0 && f.Machine.CPUs > 0 {
			t.add("| %s: calls in a second | %s of a processor for a call | | few sessions | %s | %s | %s | %+.0f %% |", m.backend, Quantity(m.call*1e6, "us"), grouped(float64(n)), grouped(math.Round(here)), grouped(math.Round(v[0])), off(here, v[0]))
		}
	}
	t.add("")
}

// off is an error in percent.
func off(predicted, measured float64) float64 {
	if measured == 0 {
		return 0
	}
	return 100 * (predicted/measured - 1)
}
