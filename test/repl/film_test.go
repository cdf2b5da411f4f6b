//go:build linux

package repl_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"html"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/test/terminal"
)

// film is a recording of a terminal. Its times are those of the story and not of the
// machine that it was recorded on, so that the same screens make the same picture.
type film struct {
	width, height int
	frames        []frame
}

// frame is what a screen shows, for how long.
type frame struct {
	rows [][]terminal.Cell
	hold time.Duration
}

// add goes on with a screen; one that shows what the last one did makes that longer.
func (f *film) add(rows [][]terminal.Cell, hold time.Duration) {
	if n := len(f.frames); n > 0 && look(f.frames[n-1].rows) == look(rows) {
		f.frames[n-1].hold += hold
		return
	}
	f.frames = append(f.frames, frame{rows: rows, hold: hold})
}

// look is all that is drawn of a screen.
func look(rows [][]terminal.Cell) string { return fmt.Sprint(rows) }

// The size of a cell, and of the edge around all.
const (
	cellWidth, cellHeight = 8.4, 18
	edge                  = 16
)

// The colours, which follow those of the reader's page. They are those of picture.py.
const colours = `
.page{fill:#fff;stroke:#d0d7de}text{fill:#24292f}.i31{fill:#cf222e}.i32{fill:#116329}.i33{fill:#7d4e00}.i34{fill:#0550ae}.i35{fill:#8250df}.i36{fill:#1b7c83}
.bold{font-weight:bold}.dim{opacity:.65}
@media(prefers-color-scheme:dark){.page{fill:#1e1e2e;stroke:#313244}text{fill:#cdd6f4}.i31{fill:#f38ba8}.i32{fill:#a6e3a1}.i33{fill:#f9e2af}.i34{fill:#89b4fa}.i35{fill:#cba6f7}.i36{fill:#94e2d5}}
`

// svg draws the film: the frames one below the other, of which one shows at a time. A row
// that several frames have is drawn once. Whoever wants no motion sees the last frame.
func (f *film) svg(label string) []byte {
	var total time.Duration
	for _, fr := range f.frames {
		total += fr.hold
	}
	inner := float64(f.height * cellHeight)
	var steps, strip, rows bytes.Buffer
	known := map[string]int{}
	at := time.Duration(0)
	for i, fr := range f.frames {
		fmt.Fprintf(&steps, "%.3f%%{transform:translateY(%gpx)}", 100*at.Seconds()/total.Seconds(), -float64(i)*inner)
		at += fr.hold
		for y, row := range fr.rows {
			text := line(row)
			if text == "" {
				continue
			}
			if known[text] == 0 {
				known[text] = len(known) + 1
				fmt.Fprintf(&rows, "<g id=\"r%d\">%s</g>\n", known[text], text)
			}
			fmt.Fprintf(&strip, `<use href="#r%d" y="%g"/>`, known[text], float64(i)*inner+float64(y*cellHeight))
		}
		strip.WriteByte('\n')
	}
	wide, high := float64(f.width)*cellWidth+2*edge, inner+2*edge
	var out bytes.Buffer
	fmt.Fprintf(&out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\" role=\"img\" aria-label=\"%s\">\n", wide, high, wide, high, html.EscapeString(label))
	fmt.Fprintf(&out, "<style>%s.film{transform:translateY(%gpx);animation:film %gs step-end infinite}\n@media(prefers-reduced-motion:reduce){.film{animation:none}}\n@keyframes film{%s}\n</style>\n",
		colours, -float64(len(f.frames)-1)*inner, total.Seconds(), steps.String())
	fmt.Fprintf(&out, "<defs>\n%s</defs>\n<rect class=\"page\" x=\".5\" y=\".5\" width=\"%g\" height=\"%g\" rx=\"8\"/>\n", rows.String(), wide-1, high-1)
	fmt.Fprintf(&out, "<svg x=\"%d\" y=\"%d\" width=\"%g\" height=\"%g\" font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace\" font-size=\"14\">\n<g class=\"film\">\n%s</g></svg>\n</svg>\n",
		edge, edge, wide-2*edge, inner, strip.String())
	return out.Bytes()
}

// line draws a row: a text for each run of cells that look the same, as wide as its cells
// are, whichever font the reader has.
func line(row []terminal.Cell) string {
	var out strings.Builder
	for from := 0; from < len(row); {
		to, text := from, ""
		for ; to < len(row) && alike(row[from], row[to]); to++ {
			text += row[to].Text
		}
		if words := strings.TrimRight(text, " "); words != "" {
			lead := len(words) - len(strings.TrimLeft(words, " "))
			class := class(row[from])
			if class != "" {
				class = ` class="` + class + `"`
			}
			n := len([]rune(words)) - lead
			fmt.Fprintf(&out, `<text x="%.5g" y="13" textLength="%.5g"%s xml:space="preserve">%s</text>`,
				float64(from+lead)*cellWidth, float64(n)*cellWidth, class, html.EscapeString(words[lead:]))
		}
		from = to
	}
	return out.String()
}

func alike(a, b terminal.Cell) bool { a.Text, b.Text = "", ""; return a == b }

// class has the looks of a cell. The colours beyond the first eight are not ours.
func class(c terminal.Cell) string {
	var all []string
	if len(c.Ink) == 2 {
		all = append(all, "i"+c.Ink)
	}
	if c.Bold {
		all = append(all, "bold")
	}
	if c.Dim {
		all = append(all, "dim")
	}
	return strings.Join(all, " ")
}

func TestFilm(t *testing.T) {
	t.Parallel()
	screen := terminal.NewScreen(20, 2)
	f := film{width: 20, height: 2}
	show := func(text string, hold time.Duration) {
		_, err := screen.Write([]byte(text))
		require.NoError(t, err)
		f.add(screen.Cells(), hold)
	}
	show("$ a<b", time.Second)
	show("", time.Second) // nothing has changed
	show("\r\n\x1b[1;31m no\x1b[0m", 2*time.Second)
	require.Len(t, f.frames, 2)
	out := string(f.svg("a \"film\""))
	require.Contains(t, out, "animation:film 4s step-end infinite")
	require.Contains(t, out, "{0.000%{transform:translateY(-0px)}50.000%{transform:translateY(-36px)}}")
	require.Equal(t, 1, strings.Count(out, "$ a&lt;b"), "a row that stays is drawn once")
	require.Contains(t, out, `<text x="8.4" y="13" textLength="16.8" class="i31 bold" xml:space="preserve">no</text>`)
	require.Contains(t, out, `aria-label="a &#34;film&#34;"`)
	for d := xml.NewDecoder(strings.NewReader(out)); ; {
		_, err := d.Token()
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
			return
		}
	}
}
