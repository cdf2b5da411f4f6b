package render

import (
	"flag"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
)

// theme is how a terminal shows the colours that have names.
type theme struct {
	ground, text string
	colours      map[paint]string
}

var themes = map[string]theme{
	"dark": {"#1e1e2e", "#cdd6f4", map[paint]string{
		red: "#f38ba8", green: "#a6e3a1", yellow: "#f9e2af", blue: "#89b4fa", magenta: "#cba6f7", cyan: "#94e2d5",
	}},
	"light": {"#ffffff", "#24292f", map[paint]string{
		red: "#cf222e", green: "#116329", yellow: "#7d4e00", blue: "#0550ae", magenta: "#8250df", cyan: "#1b7c83",
	}},
}

// svgOf draws lines with SGR sequences as a terminal would, in SVG.
func svgOf(lines []string, columns int, in theme) string {
	const cell, line, edge = 8.4, 19, 14
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" font-family="ui-monospace,Menlo,Consolas,monospace" font-size="14">`+"\n",
		float64(columns)*cell+2*edge, len(lines)*line+2*edge)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", in.ground)
	for row, l := range lines {
		column := 0
		p := paint("0")
		for _, piece := range strings.Split("\x1b[0m"+l, "\x1b[")[1:] {
			sgr, text, _ := strings.Cut(piece, "m")
			p = paint(sgr)
			width := ansi.StringWidth(text)
			if strings.TrimSpace(text) != "" {
				style := fmt.Sprintf(`fill="%s"`, in.text)
				if c, ok := in.colours[p]; ok {
					style = fmt.Sprintf(`fill="%s"`, c)
				}
				switch p {
				case bold:
					style += ` font-weight="bold"`
				case dim:
					style += ` opacity="0.6"`
				default:
				}
				fmt.Fprintf(&b, `<text x="%.1f" y="%d" %s textLength="%.1f" xml:space="preserve">%s</text>`+"\n",
					edge+float64(column)*cell, edge+14+row*line, style, float64(width)*cell, html.EscapeString(text))
			}
			column += width
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// TestPictures draws what the README shows, with the renderer that the command
// uses, and keeps the pictures: they cannot show what the command does not.
func TestPictures(t *testing.T) {
	t.Parallel()
	const columns = 84
	clock := time.Unix(0, 0)
	cells := []messages.Cell{
		{Title: "load", Code: "import pandas as pd\ncities = pd.read_csv(\"cities.csv\")  # 3 rows\ncities"},
		{Title: "share", Code: "def share(name, total=0):\n    return cities.loc[name] / total\n\nshare(\"東京\")"},
	}
	r := NewRun(RunOptions{Style: Style{Colour: true, Width: columns}, Expand: true, Cells: cells, Now: func() time.Time {
		clock = clock.Add(21 * time.Millisecond)
		return clock
	}})
	at := func(cell int) messages.Position { return messages.Position{Cell: cell} }
	var text strings.Builder
	for _, e := range []messages.Event{
		messages.Status{Position: at(0), Status: messages.CellRunning},
		messages.Stream{Position: at(0), Name: messages.StdoutStream, Text: "reading:  40%\rreading: 100%\n"},
		messages.ExecuteResult{Position: at(0), Data: messages.Bundle{"text/plain": messages.RawJSON(`"      city   pop\n0     Oslo   0.7\n1  São Paulo 12.3\n2     東京  14.0"`)}},
		messages.Status{Position: at(0), Data: messages.RawJSON(`{"op":"read","path":"cities.csv","chars":61}`)},
		messages.Status{Position: at(0), Status: messages.CellComplete},
		messages.Status{Position: at(1), Status: messages.CellRunning},
		messages.Error{Position: at(1), ErrorDetails: messages.ErrorDetails{Name: "KeyError", Message: "'東京'", Traceback: []string{
			"Traceback (most recent call last):",
			"  File \"<cell 2>\", line 4, in <module>", "    share(\"東京\")",
			"  File \"<cell 2>\", line 2, in share", "    return cities.loc[name] / total", "           ^^^^^^^^^^^^^^^^",
			"  [5 frames in pandas/core/indexing.py, pandas/core/indexes/base.py]", "KeyError: '東京'",
		}}},
		messages.Status{Position: at(1), Status: messages.CellError},
	} {
		text.WriteString(r.Event(e))
	}
	lines := strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
	lines = append(lines, "")
	lines = append(lines, Tree(messages.Node{Name: "supervisor", State: messages.ChildIdle, Children: []messages.Node{
		{Name: "gateway", State: messages.ChildIdle, Children: []messages.Node{
			{Name: "analysis@~/data", State: messages.ChildBusy, PID: 4711, RSS: 55 << 20},
			{Name: "report@~/data", State: messages.ChildIdle, PID: 4712, RSS: 52 << 20, Restarts: 1},
		}},
	}}, TreeOptions{Style: Style{Colour: true, Width: columns}})...)
	for name, in := range themes {
		file := filepath.Join("testdata", "readme-"+name+".svg")
		got := svgOf(lines, columns, in)
		if flag.Lookup("update").Value.String() == "true" { // of the other test package here
			require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err, "make it with -update")
		require.Equal(t, string(want), got)
	}
}
