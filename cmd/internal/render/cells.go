package render

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/sanitise"
)

// cellLines is how many lines of its code and of its output a collapsed cell
// shows.
const cellLines = 10

// CellView draws a call that has ended, each cell as a block: how it ended, what
// it is, its code, the end of its output, and what it did.
//
//	✓ [1/2] load (12 ms)
//	│ import pandas as pd
//	│ … 3 more lines (--expand shows them)
//	… 31 more lines (--expand shows them)
//	the last ten lines
//	└─ read 120 chars · from a.csv
//
// It is a function of the result and o.Shown. o.Prefix and o.Now are not used.
func CellView(o RunOptions, r messages.Result) []string {
	v := cellView{o: o, n: max(len(r.Cells), len(o.Cells))}
	for _, c := range r.Cells {
		if len(v.lines) > 0 {
			v.add("")
		}
		v.cell(c)
	}
	if len(v.lines) > 0 && o.Shown == nil && len(r.JSON)+len(r.Images) > 0 {
		v.add("")
	}
	if o.Shown == nil {
		v.rich(r.Images, r.JSON)
	}
	v.add(Ending(o.Style, r, o.Timeout)...)
	if l := cutNotice(r); l != "" {
		v.add(o.wrap(yellow, "! "+l)...)
	}
	return v.lines
}

type cellView struct {
	o     RunOptions
	n     int
	lines []string
}

func (v *cellView) add(lines ...string) { v.lines = append(v.lines, lines...) }

// cell draws one cell.
func (v *cellView) cell(c messages.CellResult) {
	o := v.o
	icon, in := "✓", green
	switch c.Status {
	case messages.CellError:
		icon, in = "✗", red
	case messages.CellRunning:
		icon, in = "▸", cyan
	case messages.CellPending:
		icon, in = "·", dim
	case messages.CellComplete:
	}
	head := o.in(in, icon) + o.in(bold, " ["+strconv.Itoa(c.Index+1)+"/"+strconv.Itoa(v.n)+"]")
	if title := oneLine(c.Title); title != "" {
		head += o.in(bold, " "+title)
	}
	switch c.Status {
	case messages.CellPending:
		head += o.in(dim, " not run")
	case messages.CellRunning:
		head += o.in(dim, " running")
	default:
		head += o.in(dim, " ("+Duration(time.Duration(c.DurationMS)*time.Millisecond)+")")
	}
	v.add(o.Fit(head))
	if c.Index >= 0 && c.Index < len(o.Cells) {
		v.code(o.Cells[c.Index].Code)
	}
	v.output(c)
	v.rich(v.shownBy(c))
	v.add(StatusLines(o.Style, c.Events, o.Expand)...)
}

// code draws the first lines of a cell's code, or all.
func (v *cellView) code(code string) {
	code = strings.Trim(code, "\n")
	if strings.TrimSpace(code) == "" {
		return
	}
	lines := strings.Split(Code(v.o.Style, code), "\n")
	more := 0
	if cut := len(lines) - cellLines; !v.o.Expand && cut > 0 {
		lines, more = lines[:cellLines], cut
	}
	for _, l := range lines {
		v.add(v.o.Fit(v.o.in(dim, "│ ") + l))
	}
	if more > 0 {
		v.add(v.o.Fit(v.o.in(dim, "│ … "+Number(more, "more line")+" (--expand shows them)")))
	}
}

// output draws the last lines of what a cell printed, or all.
func (v *cellView) output(c messages.CellResult) {
	text := strings.TrimRight(sanitise.Clean(c.Output), "\n")
	if text == "" {
		return
	}
	lines := strings.Split(strings.ReplaceAll(text, "\t", "    "), "\n")
	if c.Status == messages.CellError {
		for i, l := range lines {
			lines[i] = v.o.in(red, l)
		}
	}
	if v.o.Expand {
		v.add(Clamp(v.o.Style, lines)...)
	} else {
		v.add(Collapse(v.o.Style, lines, cellLines, "--expand shows them")...)
	}
}

// shownBy is the rich output of a cell that its text does not hold.
func (v *cellView) shownBy(c messages.CellResult) (images []messages.Image, data []messages.RawJSON) {
	for _, b := range v.o.Shown[c.Index] {
		if _, is := statusOf(b); is {
			continue
		}
		for _, mime := range []string{messages.MIMEPNG, messages.MIMEJPEG} {
			if image, ok := b.Text(mime); ok {
				images = append(images, messages.Image{MIME: mime, Data: image})
			}
		}
		if raw, ok := b[messages.MIMEJSON]; ok && !strings.Contains(c.Output, indented(raw)) {
			data = append(data, raw)
		}
	}
	return images, data
}

// indented is a JSON value as the text of a result has it.
func indented(raw messages.RawJSON) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// rich draws images and JSON.
func (v *cellView) rich(images []messages.Image, all []messages.RawJSON) {
	for _, img := range images {
		v.add(v.o.inline(img.MIME, img.Data)...)
		v.add(v.o.Fit(v.o.in(cyan, "▣ "+picture(img.MIME, img.Data))))
	}
	for i, data := range all {
		title := "JSON output"
		if len(all) > 1 {
			title += " " + strconv.Itoa(i+1)
		}
		v.add(v.o.Fit(v.o.in(dim, title)))
		v.add(JSONTree(v.o.Style, data, v.o.Expand)...)
	}
}

// cutNotice says what of the output a result does not hold, and where it is.
func cutNotice(r messages.Result) string {
	var parts []string
	if t := r.Truncation; t != nil {
		parts = append(parts, strconv.FormatInt(t.OutputLines, 10)+" of "+strconv.FormatInt(t.TotalLines, 10)+" lines, "+Bytes(t.OutputBytes)+" of "+Bytes(t.TotalBytes)+", were kept for a model")
	}
	if r.Artifact != nil && *r.Artifact != "" {
		parts = append(parts, "all output is "+*r.Artifact)
	}
	return strings.Join(parts, "; ")
}
