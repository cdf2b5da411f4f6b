package render

import (
	"slices"
	"strings"
	"time"

	"github.com/coppice-run/coppice/messages"
)

// Interactive draws what a call of one cell showed so far, without head and
// foot. Unlike [Run] it draws everything again, so that what was cleared is gone
// and a display that was updated stands where it was.
func Interactive(o RunOptions, events []messages.Event) []string {
	r := NewRun(o)
	var b strings.Builder
	for _, e := range Settled(events) {
		switch e := e.(type) {
		case messages.Status:
			if len(e.Data) > 0 {
				r.ops = append(r.ops, e.Data)
			}
		case messages.Final:
		default:
			b.WriteString(r.Event(e))
		}
	}
	r.text.finish()
	for _, line := range StatusLines(o.Style, r.ops, o.Expand) {
		r.text.line(line)
	}
	for _, data := range r.json {
		for _, line := range JSONTree(o.Style, data, o.Expand) {
			r.text.line(line)
		}
	}
	b.WriteString(r.text.take())
	text := strings.TrimRight(b.String(), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// Settled returns the events without those that a later one took back: output
// before a clear, a display before its update.
func Settled(events []messages.Event) []messages.Event {
	var kept []messages.Event
	displays := map[string]int{}
	clearing := false
	for _, e := range events {
		switch e := e.(type) {
		case messages.ClearOutput:
			if clearing = e.Wait; !e.Wait {
				kept, displays = nil, map[string]int{}
			}
			continue
		case messages.Status, messages.Final:
		default:
			if clearing {
				kept, displays, clearing = nil, map[string]int{}, false
			}
		}
		if id, update := named(e); id != "" {
			if at, shown := displays[id]; shown && update {
				kept[at] = e
				continue
			}
			displays[id] = len(kept)
		}
		kept = append(kept, e)
	}
	return slices.Clip(kept)
}

// named returns the name of what is shown, empty when it has none, and whether it takes
// the place of what has that name.
func named(e messages.Event) (id string, update bool) {
	switch e := e.(type) {
	case messages.Display:
		return e.DisplayID, e.Update
	case messages.ExecuteResult:
		return e.DisplayID, false
	default:
		return "", false
	}
}

// Closing draws how a call of one cell ended: a line with its duration, and what
// there is to say of the session and of output that is not shown.
func Closing(s Style, r messages.Result, took time.Duration) []string {
	icon, in := "✓", green
	if r.Outcome != messages.OutcomeOK {
		icon, in = "✗", red
	}
	lines := []string{s.in(in, icon) + s.in(dim, " "+Duration(took))}
	lines = append(lines, Ending(s, r, 0)...)
	if r.Artifact != nil {
		lines = append(lines, s.wrap(yellow, "! cut for a model; all of it is "+*r.Artifact)...)
	}
	return lines
}
