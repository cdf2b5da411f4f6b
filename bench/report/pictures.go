package report

import (
	"github.com/coppice-run/coppice/bench/record"
)

// pictures draws what the file has figures for, by file name.
func pictures(f record.File) map[string]string {
	out := map[string]string{}
	if rows := bySessions(f, "exec", map[string]string{"p50": "p50", "p99": "p99"}, 1000); len(rows) > 0 {
		out["round-trip-by-sessions.svg"] = lines("Round trip of 1+1 while so many sessions live", "live sessions", "ms", true, rows)
	}
	if rows := bySessions(f, "idle", map[string]string{"process-memory": "process", "host-memory": "host"}, 1024); len(rows) > 0 {
		out["memory-by-sessions.svg"] = lines("Memory of an idle session", "live sessions", "MiB", true, rows)
	}
	if rows := firstResults(f, "create-p50", "create", "p50"); len(rows) > 1 {
		out["new-session.svg"] = bars("From nothing to the first result, p50", "milliseconds", rows)
	}
	if rows := firstResults(f, "exec-p50", "exec", "back-to-back-p50"); len(rows) > 1 {
		out["round-trip.svg"] = bars("Round trip of 1+1, one caller, p50", "milliseconds", rows)
	}
	if rows := soakRows(f); len(rows) > 0 {
		out["soak.svg"] = linesOver("Memory during the soak", "minutes", "MiB", rows)
	}
	return out
}

// soakRows are the memory series of the longest soak.
func soakRows(f record.File) []line {
	var out []line
	var longest record.Result
	for _, r := range pick(f, func(r record.Result) bool { return r.Scenario == "soak" }) {
		if r.Took > longest.Took {
			longest = r
		}
	}
	for _, s := range longest.Series {
		if s.Unit != "MiB" || len(s.At) != len(s.Value) {
			continue
		}
		l := line{name: s.Name}
		for i := range s.At {
			l.points = append(l.points, point{s.At[i] / 60, s.Value[i]})
		}
		if len(l.points) > 0 {
			out = append(out, l)
		}
	}
	return out
}

// bySessions is a line for each backend and metric over the number of sessions.
func bySessions(f record.File, scenario string, metrics map[string]string, unit float64) []line {
	var out []line
	at := map[string]int{}
	for _, g := range group(pick(f, func(r record.Result) bool { return r.Scenario == scenario })) {
		for _, m := range g.metrics {
			short, wanted := metrics[m.Name]
			v := median(g.values[m.Name])
			if !wanted || v <= 0 {
				continue
			}
			name := g.backend + ", " + short
			i, known := at[name]
			if !known {
				i = len(out)
				at[name] = i
				out = append(out, line{name: name})
			}
			out[i].points = append(out[i].points, point{float64(g.sessions), v / unit})
		}
	}
	return out
}

// firstResults is a bar for each peer, and those of Coppice.
func firstResults(f record.File, peer, scenario, ours string) []bar {
	var out []bar
	for _, backend := range []string{"runner", "gateway"} {
		if v, ok := value(f, scenario, backend, 0, ours); ok {
			out = append(out, bar{"Coppice, " + backend, v / 1000, true})
		}
	}
	for _, g := range group(pick(f, func(r record.Result) bool { return r.Scenario == "peer" })) {
		if v := g.values[peer]; len(v) > 0 {
			out = append(out, bar{g.backend, median(v) / 1000, false})
		}
	}
	return out
}
