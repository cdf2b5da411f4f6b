package top

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/messages"
)

// shownProblems is how many problems stand above the sessions.
const shownProblems = 4

// words of the levels, as they stand in a table.
var levels = map[client.Level]string{client.LevelBad: "down", client.LevelAsks: "asks", client.LevelShaky: "look"}

// level paints a text in the colour of a level.
func level(s render.Style, l client.Level, text string) string {
	switch l {
	case client.LevelBad:
		return s.Bad(text)
	case client.LevelAsks:
		return s.Accent(text)
	case client.LevelShaky:
		return s.Warn(text)
	}
	return text
}

// problems are the worst of them, with what can be done: beside them or below, where there is room.
func (m *model) problems(s render.Style) []string {
	o := m.seen.overview
	list := o.Problems[:min(len(o.Problems), shownProblems, max(1, m.height/6))]
	lines := make([]string, 0, len(list)+1)
	for _, p := range list {
		whose, left := "server", ""
		if p.Key != (messages.SessionKey{}) {
			whose = p.Key.Session
		}
		if !p.Until.IsZero() {
			left = fmt.Sprintf(" %v left.", max(0, p.Until.Sub(m.seen.at)).Round(time.Second))
		}
		what, do := level(s, p.Level, fmt.Sprintf("%-4s", levels[p.Level]))+" "+s.Strong(line(whose))+" "+line(p.What)+left, s.Quiet(line(p.Do))
		if m.height >= tall && len(list) <= m.height/12 && ansi.StringWidth(what+" "+do) > s.Width {
			lines = append(lines, s.Fit(what), s.Fit("     "+do))
		} else {
			lines = append(lines, s.Fit(what+" "+do))
		}
	}
	if more := len(o.Problems) - len(list) + o.MoreProblems; more > 0 {
		lines = append(lines, s.Fit(s.Quiet(fmt.Sprintf("     and %s; n goes from session to session", render.Number(more, "more problem")))))
	}
	return lines
}

// pulse is how the server goes: calls, their time, what became of kernels.
func (m *model) pulse() string {
	if len(m.samples) == 0 {
		return ""
	}
	last := m.samples[len(m.samples)-1]
	calls, bad := 0, 0
	for outcome, n := range last.Calls {
		calls += n
		if outcome != messages.OutcomeOK {
			bad += n
		}
	}
	step := max(m.seen.overview.StepSeconds, 1)
	var starts, restarts, deaths, evictions int
	var rates []float64
	for _, one := range m.samples {
		starts, restarts, deaths, evictions = starts+one.Starts, restarts+one.Restarts, deaths+one.Deaths, evictions+one.Evictions
		n := 0
		for _, c := range one.Calls {
			n += c
		}
		rates = append(rates, float64(n))
	}
	text := fmt.Sprintf("%.1f calls/s %s", float64(calls)/step, spark(rates))
	if bad > 0 {
		text += fmt.Sprintf(" (%.1f not ok)", float64(bad)/step)
	}
	if last.P99 > 0 {
		text += fmt.Sprintf(", p50 %s p99 %s", millis(last.P50), millis(last.P99))
	}
	text += fmt.Sprintf("; %s, cpu %.0f %%; last hour: %d started, %d restarted, %d died, %d evicted", render.Bytes(last.RSS), last.CPU, starts, restarts, deaths, evictions)
	return text
}

// millis is a time for people.
func millis(ms float64) string {
	d := time.Duration(ms * float64(time.Millisecond))
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// spark draws the newest values in a dozen letters.
func spark(values []float64) string {
	const bars, room = "▁▂▃▄▅▆▇█", 12
	values = values[max(0, len(values)-room):]
	most := 0.
	for _, v := range values {
		most = max(most, v)
	}
	var b strings.Builder
	for _, v := range values {
		at := 0
		if most > 0 {
			at = int(v / most * 7)
		}
		b.WriteRune([]rune(bars)[at])
	}
	return b.String()
}

// details are the facts of the selected session and what became of it.
func (m *model) details(s render.Style) []string {
	i := m.index()
	if i < 0 {
		return nil
	}
	r := m.rows[i]
	lines := []string{s.Fit(s.Strong(line(r.Session.Session)) + " in " + line(r.Cwd))}
	add := func(format string, args ...any) { lines = append(lines, s.Fit(line(fmt.Sprintf(format, args...)))) }
	add("  %s for %v, pid %d, %s answered, %d waiting", r.State, m.seen.at.Sub(r.Since).Round(time.Second), r.PID, render.Number(int(r.Done), "call"), r.Queue)
	if r.Owner != "" {
		add("  owner %s", r.Owner)
	}
	if r.mark.Parent != "" {
		add("  a copy of %s", r.mark.Parent)
	}
	if r.Detail != "" {
		add("  %s", r.Detail)
	}
	if r.mark.Level != "" {
		lines = append(lines, s.Fit("  "+level(s, r.mark.Level, levels[r.mark.Level])+" "+line(r.mark.Why)))
	}
	if m.story.Key != m.selected {
		return lines
	}
	for _, moment := range slices.Backward(m.story.Moments) {
		lines = append(lines, s.Fit("  "+s.Quiet(moment.At.Local().Format(time.TimeOnly))+" "+moment.What+" "+line(moment.Why)))
	}
	return lines
}
