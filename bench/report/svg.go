package report

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// point is one measurement in a picture.
type point struct{ x, y float64 }

// line is a named row of points.
type line struct {
	name   string
	points []point
}

// The size of a picture, and its margins, in pixels.
const (
	width, height            = 760, 420
	left, right, top, bottom = 80, 190, 46, 56
)

// colours are told apart also by those who see no red or no green, on light and on
// dark.
var colours = []string{"#2b8cd6", "#e0661b", "#12a67c", "#cc79a7", "#c98a00", "#56b4e9", "#8b949e"}

// axis maps values to pixels on a logarithmic scale of whole decades, or a linear
// one from zero.
type axis struct {
	from, to float64
	log      bool
	a, b     float64 // pixels of from and to
}

func newAxis(values []float64, log bool, a, b float64) axis {
	x := axis{log: log, a: a, b: b}
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		low, high = math.Min(low, v), math.Max(high, v)
	}
	if log {
		x.from, x.to = math.Floor(math.Log10(math.Max(low, 1e-9))), math.Ceil(math.Log10(math.Max(high, 1e-9)))
		if x.from == x.to {
			x.to++
		}
		return x
	}
	step := nice(high / 5)
	x.to = math.Max(step, math.Ceil(high/step)*step)
	return x
}

// nice rounds a step up to 1, 2 or 5 times a power of ten.
func nice(v float64) float64 {
	if v <= 0 {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if v <= m*p {
			return m * p
		}
	}
	return 10 * p
}

func (x axis) at(v float64) float64 {
	if x.log {
		v = math.Log10(math.Max(v, 1e-9))
	}
	return x.a + (v-x.from)/(x.to-x.from)*(x.b-x.a)
}

func (x axis) ticks() []float64 {
	var out []float64
	if x.log {
		for e := x.from; e <= x.to; e++ {
			out = append(out, math.Pow(10, e))
		}
		return out
	}
	step := nice(x.to / 5)
	for v := 0.0; v <= x.to*1.001; v += step {
		out = append(out, v)
	}
	return out
}

// picture collects the elements of an SVG file.
type picture struct{ strings.Builder }

func newPicture(title string) *picture {
	p := &picture{}
	p.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" font-family="system-ui, sans-serif" font-size="12">`, width, height, width, height)
	p.add(`<title>%s</title>`, html.EscapeString(title))
	// Readers have light and dark pages: the picture follows theirs, also inside an
	// img element.
	p.add(`<style>.paper{fill:#ffffff}.ink{fill:#222222}.grid{stroke:#dddddd}@media (prefers-color-scheme:dark){.paper{fill:#0d1117}.ink{fill:#e6edf3}.grid{stroke:#30363d}}</style>`)
	p.add(`<rect class="paper" width="%d" height="%d"/>`, width, height)
	p.text(left, 24, "start", title, `font-size="15" font-weight="600"`)
	return p
}

func (p *picture) add(format string, args ...any) { _, _ = fmt.Fprintf(p, format+"\n", args...) } // a Builder does not fail

func (p *picture) text(x, y float64, anchor, text, more string) {
	p.add(`<text x="%.1f" y="%.1f" text-anchor="%s" class="ink" %s>%s</text>`, x, y, anchor, more, html.EscapeString(text))
}

func (p *picture) end() string {
	p.add("</svg>")
	return p.String()
}

// lines draws rows of points over a logarithmic x.
func lines(title, xName, yName string, logY bool, rows []line) string {
	return draw(title, xName, yName, true, logY, rows)
}

// linesOver draws them over a linear x from zero, as over time.
func linesOver(title, xName, yName string, rows []line) string {
	return draw(title, xName, yName, false, false, rows)
}

func draw(title, xName, yName string, logX, logY bool, rows []line) string {
	p := newPicture(title)
	var xs, ys []float64
	for _, r := range rows {
		for _, q := range r.points {
			xs, ys = append(xs, q.x), append(ys, q.y)
		}
	}
	x, y := newAxis(xs, logX, left, width-right), newAxis(ys, logY, height-bottom, top)
	for _, v := range y.ticks() {
		p.add(`<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" class="grid"/>`, left, width-right, y.at(v), y.at(v))
		p.text(left-8, y.at(v)+4, "end", grouped(v), "")
	}
	for _, v := range x.ticks() {
		p.add(`<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" class="grid"/>`, x.at(v), x.at(v), top, height-bottom)
		p.text(x.at(v), height-bottom+18, "middle", grouped(v), "")
	}
	p.text((left+width-right)/2, height-14, "middle", xName, "")
	p.text(18, (top+height-bottom)/2, "middle", yName, fmt.Sprintf(`transform="rotate(-90 18 %d)"`, (top+height-bottom)/2))
	for i, r := range rows {
		colour := colours[i%len(colours)]
		var path strings.Builder
		for _, q := range r.points {
			_, _ = fmt.Fprintf(&path, "%.1f,%.1f ", x.at(q.x), y.at(q.y)) // a Builder does not fail
			p.add(`<circle cx="%.1f" cy="%.1f" r="3" fill="%s"><title>%s: %s, %s</title></circle>`, x.at(q.x), y.at(q.y), colour, html.EscapeString(r.name), grouped(q.x), number(q.y))
		}
		p.add(`<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`, strings.TrimSpace(path.String()), colour)
		p.add(`<rect x="%d" y="%d" width="12" height="12" fill="%s"/>`, width-right+14, top+22*i, colour)
		p.text(float64(width-right+32), float64(top+22*i+10), "start", r.name, "")
	}
	return p.end()
}

// bar is one row of a bar chart.
type bar struct {
	name  string
	value float64
	ours  bool
}

// bars draws values on a logarithmic scale, each with its number.
func bars(title, unit string, rows []bar) string {
	p := newPicture(title)
	var values []float64
	for _, r := range rows {
		values = append(values, r.value)
	}
	const names = 210
	x := newAxis(values, true, names, width-90)
	for _, v := range x.ticks() {
		p.add(`<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" class="grid"/>`, x.at(v), x.at(v), top, height-bottom)
		p.text(x.at(v), height-bottom+18, "middle", grouped(v), "")
	}
	p.text((names+width-90)/2, height-14, "middle", unit+", logarithmic", "")
	step := float64(height-bottom-top) / float64(max(1, len(rows)))
	for i, r := range rows {
		colour := colours[6]
		if r.ours {
			colour = colours[0]
		}
		y := float64(top) + step*float64(i)
		p.add(`<rect x="%d" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`, names, y+step*.15, math.Max(1, x.at(r.value)-names), step*.7, colour)
		p.text(names-8, y+step/2+4, "end", r.name, "")
		p.text(x.at(r.value)+6, y+step/2+4, "start", number(r.value), "")
	}
	return p.end()
}

// grouped writes a number with thin groups of thousands.
func grouped(v float64) string {
	text := number(v)
	whole, rest, _ := strings.Cut(text, ".")
	var out strings.Builder
	for i, c := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 && c != '-' {
			out.WriteByte(',')
		}
		out.WriteRune(c)
	}
	if rest != "" {
		out.WriteString("." + rest)
	}
	return out.String()
}
