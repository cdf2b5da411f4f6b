package result

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/budget"
)

const mimeSVG = "image/svg+xml"

// The bounds of what is kept beside the text of one call.
const (
	maxFigures     = 32
	maxFigureBytes = 32 << 20
	maxNamed       = 8 // series, encodings and columns that a summary names
)

// figureMIME matches the types of figures that are data: Vega, Vega-Lite, Plotly.
var figureMIME = regexp.MustCompile(`^application/vnd\.(vega|vegalite|plotly)\.v\d+(\.\d+)*\+json$`)

// figures keeps the drawings of a bundle as artifacts. It returns a line about
// each, and the bundle without them and without what only stands for them: a
// plotting library's plain text and HTML are the code of the figure again.
func (f *Fold) figures(b messages.Bundle) (rest messages.Bundle, lines []string) {
	for _, mime := range slices.Sorted(maps.Keys(b)) {
		kind := figureMIME.FindStringSubmatch(mime)
		if kind == nil && mime != mimeSVG {
			continue
		}
		if rest == nil {
			rest = maps.Clone(b)
		}
		delete(rest, mime)
		if kind == nil {
			if text, ok := b.Text(mime); ok {
				lines = append(lines, "["+f.attach(mimeSVG+svgSize(text), "svg", []byte(text))+"]")
			}
			continue
		}
		delete(rest, messages.MIMEHTML)
		delete(rest, messages.MIMEPlain)
		about := vegaSummary(b[mime])
		if kind[1] == "plotly" {
			about = plotlySummary(b[mime])
		}
		lines = append(lines, "["+f.attach(about, "json", b[mime])+"]")
	}
	if rest == nil {
		return b, nil
	}
	if text, ok := rest.Text(messages.MIMEPlain); ok && placeholder.MatchString(text) {
		delete(rest, messages.MIMEPlain)
	}
	return rest, lines
}

// attach keeps data in an artifact of its own, and returns about with its size
// and where it is.
func (f *Fold) attach(about, extension string, data []byte) string {
	about += ", " + budget.Size(int64(len(data)))
	if f.o.Store.Dir() == "" {
		return about
	}
	if f.attached >= maxFigures || f.attachedBytes+len(data) > maxFigureBytes {
		return about + ", not kept: the call has enough of them"
	}
	info, err := f.o.Store.Keep("figure", extension, data)
	if err != nil {
		return about + ", not kept: " + err.Error()
	}
	f.attached++
	f.attachedBytes += len(data)
	return about + ": " + info.URI()
}

var (
	svgTag  = regexp.MustCompile(`(?s)<svg\b[^>]*>`)
	svgAttr = regexp.MustCompile(`\b(width|height)\s*=\s*["']\s*(\d+(?:\.\d+)?)\s*(px|pt|mm|cm|in|em)?\s*["']`)
	svgBox  = regexp.MustCompile(`\bviewBox\s*=\s*["']\s*[-\d.]+[\s,]+[-\d.]+[\s,]+([\d.]+)[\s,]+([\d.]+)\s*["']`)
)

// svgSize returns " W×H" of a drawing that says it.
func svgSize(text string) string {
	tag := svgTag.FindString(text[:min(len(text), 16<<10)])
	found := map[string]string{}
	for _, m := range svgAttr.FindAllStringSubmatch(tag, -1) {
		found[m[1]] = m[2] + m[3]
	}
	if found["width"] != "" && found["height"] != "" {
		return " " + found["width"] + "×" + found["height"]
	}
	if m := svgBox.FindStringSubmatch(tag); m != nil {
		return " " + m[1] + "×" + m[2]
	}
	return ""
}

// named joins at most maxNamed words.
func named(words []string) string {
	more := ""
	if len(words) > maxNamed {
		more = fmt.Sprintf(", … %d more", len(words)-maxNamed)
		words = words[:maxNamed]
	}
	return strings.Join(words, ", ") + more
}

// short makes a text of the figure fit for a line.
func short(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 80 {
		s = string(r[:80]) + "…"
	}
	return s
}

// plotlySummary says what a Plotly figure shows: its title and its traces.
func plotlySummary(raw messages.RawJSON) string {
	var fig struct {
		Data []struct {
			Type string          `json:"type"`
			Name json.RawMessage `json:"name"`
			X    json.RawMessage `json:"x"`
			Y    json.RawMessage `json:"y"`
			V    json.RawMessage `json:"values"`
		} `json:"data"`
		Layout struct {
			Title json.RawMessage `json:"title"`
		} `json:"layout"`
	}
	if json.Unmarshal(raw, &fig) != nil {
		return "Plotly figure"
	}
	var traces []string
	for _, d := range fig.Data {
		kind := d.Type
		if kind == "" {
			kind = "scatter"
		}
		if name := label(d.Name); name != "" {
			kind += fmt.Sprintf(" %q", name)
		}
		n := max(points(d.X), points(d.Y), points(d.V))
		if n > 0 {
			kind += fmt.Sprintf(" (%d points)", n)
		}
		traces = append(traces, short(kind))
	}
	return summary("Plotly figure", label(fig.Layout.Title), traces)
}

// vegaSummary says what a Vega figure shows: its mark, encodings and rows.
func vegaSummary(raw messages.RawJSON) string {
	var fig struct {
		Title    json.RawMessage `json:"title"`
		Mark     json.RawMessage `json:"mark"`
		Encoding map[string]struct {
			Field     json.RawMessage `json:"field"`
			Aggregate json.RawMessage `json:"aggregate"`
		} `json:"encoding"`
		Layer    []json.RawMessage            `json:"layer"`
		Marks    []json.RawMessage            `json:"marks"`
		Datasets map[string][]json.RawMessage `json:"datasets"`
		Data     json.RawMessage              `json:"data"`
	}
	if json.Unmarshal(raw, &fig) != nil {
		return "Vega figure"
	}
	var parts []string
	if mark := label(fig.Mark); mark != "" {
		parts = append(parts, mark)
	}
	for _, channel := range slices.Sorted(maps.Keys(fig.Encoding)) {
		e := fig.Encoding[channel]
		field := label(e.Field)
		if a := label(e.Aggregate); a != "" {
			field = a + "(" + field + ")"
		}
		if field != "" {
			parts = append(parts, short(channel+": "+field))
		}
	}
	if n := len(fig.Layer) + len(fig.Marks); n > 0 {
		parts = append(parts, fmt.Sprintf("%d layers", n))
	}
	rows := 0
	for _, set := range fig.Datasets {
		rows += len(set)
	}
	var inline struct {
		Values []json.RawMessage `json:"values"`
	}
	if len(fig.Data) > 0 && json.Unmarshal(fig.Data, &inline) == nil {
		rows += len(inline.Values)
	}
	if rows > 0 {
		parts = append(parts, fmt.Sprintf("%d rows", rows))
	}
	return summary("Vega figure", label(fig.Title), parts)
}

func summary(kind, title string, parts []string) string {
	if title != "" {
		kind += fmt.Sprintf(" %q", title)
	}
	if len(parts) > 0 {
		kind += ": " + named(parts)
	}
	return kind
}

// label returns a text that stands for itself or in a member of an object.
func label(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return short(s)
	}
	var o struct {
		Text string `json:"text"`
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &o) == nil {
		return short(o.Text + o.Type)
	}
	return ""
}

// points counts the values of a list, or of an array that Plotly packs.
func points(raw json.RawMessage) int {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		return len(list)
	}
	var packed struct {
		Type string `json:"dtype"`
		Data string `json:"bdata"`
	}
	if json.Unmarshal(raw, &packed) != nil || packed.Data == "" {
		return 0
	}
	size := map[string]int{"i1": 1, "u1": 1, "i2": 2, "u2": 2, "i4": 4, "u4": 4, "f4": 4, "f8": 8}[packed.Type]
	if size == 0 {
		return 0
	}
	return (len(packed.Data)*3/4 - strings.Count(packed.Data[max(0, len(packed.Data)-2):], "=")) / size
}
