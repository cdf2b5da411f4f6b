package toolproc

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/coppice-run/coppice/internal/sse"
	"github.com/coppice-run/coppice/internal/toolspec"
	"github.com/coppice-run/coppice/messages"
)

// gathering puts the outputs of a run together from the events of its stream.
type gathering struct {
	tool *toolspec.Tool
	// plain are the outputs that an event replaces; those that grow are put
	// together at the end, so that a long stream takes linear time.
	plain  map[string]json.RawMessage
	texts  map[string]*strings.Builder
	logs   map[string][]json.RawMessage
	charts map[string]*chart
	done   map[string]bool
	first  string // the first output that streams, for events that name none
	seq    int
	ended  bool // an event that named no output said that all is done
	size   int64
}

// newGathering begins with what the answer to /run has of the outputs.
func newGathering(t *toolspec.Tool, answer []byte) *gathering {
	g := &gathering{tool: t, plain: map[string]json.RawMessage{}, texts: map[string]*strings.Builder{}, logs: map[string][]json.RawMessage{}, charts: map[string]*chart{}, done: map[string]bool{}}
	for i := range t.Outputs {
		if t.Outputs[i].Streams() && g.first == "" {
			g.first = t.Outputs[i].Key
		}
	}
	var early map[string]json.RawMessage
	if json.Unmarshal(answer, &early) == nil {
		for key, v := range early {
			if t.Output(key) != nil && string(v) != "null" {
				g.plain[key] = v
			}
		}
	}
	return g
}

// take adds one event. Three forms are known: {output_key, value, done},
// {chunk, done}, and an object that is the value itself.
func (g *gathering) take(e sse.Event) messages.ToolEvent {
	var form struct {
		Key   string          `json:"output_key"`
		Value json.RawMessage `json:"value"`
		Chunk json.RawMessage `json:"chunk"`
		Done  bool            `json:"done"`
	}
	out := messages.ToolEvent{Seq: g.seq, Output: strings.TrimPrefix(e.Name, "output:")}
	g.seq++
	if e.Name == "message" {
		out.Output = ""
	}
	if err := json.Unmarshal([]byte(e.Data), &form); err != nil {
		out.Value = quote(e.Data) // a line of text
	} else {
		out.Done = form.Done
		switch {
		case form.Key != "":
			out.Output, out.Value = form.Key, form.Value
		case form.Chunk != nil:
			out.Value = form.Chunk
		case form.Value != nil:
			out.Value = form.Value
		default:
			out.Value = withoutDone(e.Data)
		}
	}
	if out.Output == "" {
		out.Output = g.first
		g.ended = g.ended || out.Done
	}
	if out.Done {
		g.done[out.Output] = true
	}
	g.add(&out)
	return out
}

// withoutDone is an object without what is about the stream itself.
func withoutDone(data string) messages.RawJSON {
	var m map[string]json.RawMessage
	if json.Unmarshal([]byte(data), &m) != nil {
		return messages.RawJSON(data)
	}
	delete(m, "done")
	if len(m) == 0 {
		return nil
	}
	rest, err := json.Marshal(m)
	if err != nil {
		return messages.RawJSON(data)
	}
	return rest
}

func quote(s string) messages.RawJSON {
	data, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	return data
}

// add brings an event's value into the outputs: text, lines and points continue
// what came before, anything else takes its place.
func (g *gathering) add(e *messages.ToolEvent) {
	if len(e.Value) == 0 || string(e.Value) == "null" {
		return
	}
	g.size += int64(len(e.Value))
	if o := g.tool.Output(e.Output); o != nil {
		e.Append = g.grow(o, e.Value)
	}
	if !e.Append {
		g.plain[e.Output] = e.Value
	}
}

// grow adds to an output that grows; false: it does not grow, or the value is not of
// its form.
func (g *gathering) grow(o *toolspec.Output, v json.RawMessage) bool {
	switch o.Type {
	case "stream_text", "text", "markdown", "code":
		var more string
		if json.Unmarshal(v, &more) != nil {
			return false
		}
		if g.texts[o.Key] == nil {
			g.texts[o.Key] = &strings.Builder{}
		}
		g.texts[o.Key].WriteString(more)
	case "log":
		lines, ok := linesOf(v)
		if !ok {
			return false
		}
		g.logs[o.Key] = append(g.logs[o.Key], lines...)
	case "chart_line", "chart_bar":
		var more chart
		if json.Unmarshal(v, &more) != nil || more.Series == nil {
			return false
		}
		if g.charts[o.Key] == nil {
			g.charts[o.Key] = &chart{}
		}
		g.charts[o.Key].extend(more)
	default:
		return false
	}
	return true
}

// outputs are those that have come, in their final form.
func (g *gathering) outputs() map[string]json.RawMessage {
	all := maps.Clone(g.plain)
	put := func(key string, v any) {
		if data, err := json.Marshal(v); err == nil {
			all[key] = data
		}
	}
	for key, b := range g.texts {
		put(key, b.String())
	}
	for key, lines := range g.logs {
		put(key, map[string]any{"lines": lines})
	}
	for key, c := range g.charts {
		put(key, c)
	}
	return all
}

func linesOf(v json.RawMessage) ([]json.RawMessage, bool) {
	var m struct {
		Lines []json.RawMessage `json:"lines"`
	}
	if json.Unmarshal(v, &m) == nil && m.Lines != nil {
		return m.Lines, true
	}
	var list []json.RawMessage
	if json.Unmarshal(v, &list) == nil && list != nil {
		return list, true
	}
	var s string
	if json.Unmarshal(v, &s) == nil && len(v) > 0 {
		return []json.RawMessage{v}, true
	}
	return nil, false
}

// chart is the value of a line or bar chart.
type chart struct {
	X      []json.RawMessage `json:"x"`
	Series []series          `json:"series"`
}

type series struct {
	Name string            `json:"name"`
	Y    []json.RawMessage `json:"y"`
}

// extend adds the points of a chart to those that are there.
func (c *chart) extend(more chart) {
	c.X = append(c.X, more.X...)
next:
	for _, s := range more.Series {
		for i := range c.Series {
			if c.Series[i].Name == s.Name {
				c.Series[i].Y = append(c.Series[i].Y, s.Y...)
				continue next
			}
		}
		c.Series = append(c.Series, s)
	}
}

// allDone reports whether the stream said of every output that streams that it
// is complete.
func (g *gathering) allDone() bool {
	if g.ended {
		return true
	}
	for i := range g.tool.Outputs {
		if o := &g.tool.Outputs[i]; o.Streams() && !g.done[o.Key] {
			return false
		}
	}
	return true
}

// complete reports whether every output is there.
func (g *gathering) complete() bool {
	all := g.outputs()
	for i := range g.tool.Outputs {
		if _, there := all[g.tool.Outputs[i].Key]; !there {
			return false
		}
	}
	return true
}

func (g *gathering) partial() messages.RawJSON {
	all := g.outputs()
	if len(all) == 0 {
		return nil
	}
	data, err := json.Marshal(all)
	if err != nil {
		return nil
	}
	return data
}
