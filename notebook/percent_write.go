package notebook

import (
	"slices"
	"strings"
)

// PercentOptions say how [Document.Percent] writes.
type PercentOptions struct {
	// Header writes the YAML header that names the kernel.
	Header bool
	// NoMetadata leaves titles, tags and other metadata out of the markers.
	NoMetadata bool
}

// hiddenMetadata are the members of a cell's metadata that say how a frontend
// showed or ran the cell; they have no place in a script.
var hiddenMetadata = []string{
	"autoscroll", "collapsed", "scrolled", "trusted", "execution", "ExecuteTime",
	"papermill", markSpace, "lines_to_next_cell", "cell_marker", "title", "cell_depth",
}

// Percent writes the notebook as a script in the percent format, which
// Jupytext, Spyder and VS Code read: for a Python notebook it is a Python
// file. Outputs are left out. opts may be nil.
//
// Cells that are frozen, or active elsewhere only, are commented out, as Jupytext has
// it. Reading it back with [ParseText] gives the same cells, but for blank lines
// at the end of a source, the metadata that only frontends use, a code cell that
// its metadata says is not active in notebooks, which is read as a raw one, and a
// markdown or raw cell that holds a line like a cell marker, or opens a block that it
// leaves open, together with both kinds of triple quotes.
func (d *Document) Percent(opts *PercentOptions) string {
	if opts == nil {
		opts = &PercentOptions{}
	}
	var parts []string
	if opts.Header {
		if header := d.percentHeader(); header != "" {
			parts = append(parts, header)
		}
	}
	for _, c := range d.cells {
		parts = append(parts, c.percent(!opts.NoMetadata))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, "\n\n") + "\n"
}

func (d *Document) percentHeader() string {
	spec := d.root.at("metadata", "kernelspec")
	if spec == nil || spec.kind() != kindObject {
		return ""
	}
	lines := []string{"# ---", "# jupyter:", "#   kernelspec:"}
	spec.each(func(_ int, key []byte, v *node) bool {
		if text, ok := v.str(); ok {
			lines = append(lines, "#     "+decodeString(key)+": "+yamlScalar(text))
		}
		return true
	})
	return strings.Join(append(lines, "# ---"), "\n")
}

// yamlScalar quotes a text that YAML would not read as that text.
func yamlScalar(s string) string {
	plain := s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ._+()/-") == "" &&
		strings.TrimSpace(s) == s && strings.ContainsAny(s[:1], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") &&
		!slices.Contains([]string{"true", "false", "yes", "no", "on", "off", "null"}, strings.ToLower(s))
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(strings.ReplaceAll(s, "'", "''"), "\n", " ") + "'"
}

func (c *Cell) percent(withMetadata bool) string {
	m := percentMarker{typ: c.typ}
	source := c.Source()
	var body []string
	if lines, ok := c.writeInactive(&m, source); ok {
		body = lines
	} else if c.typ == Code {
		name, args, rest, ok := cutCellMagic(source)
		if ok {
			if args != "" {
				m.metadata = append(m.metadata, member{"magic_args", newString(args)})
			}
			m.metadata = append(m.metadata, member{"language", newString(name)})
			if rest = strings.TrimRight(rest, "\n"); rest != "" {
				body = comment(strings.Split(rest, "\n"))
			}
		} else if source != "" {
			body = commentMagics(strings.Split(source, "\n"))
		}
	} else {
		body = writeComment(source)
	}
	if withMetadata {
		c.percentMetadata(&m)
	}
	return strings.TrimRight(strings.Join(append([]string{m.String()}, body...), "\n"), "\n")
}

// percentMetadata puts the cell's metadata into the marker: a title that
// cannot be misread, and the other members as pairs, or all as one object when
// a name does not fit before an equals sign.
func (c *Cell) percentMetadata(m *percentMarker) {
	metadata := c.n.get("metadata")
	if metadata == nil || metadata.kind() != kindObject {
		return
	}
	title, ok := metadata.get("title").str()
	switch {
	case ok && readsBackAsTitle(title):
		m.title = title
	case metadata.get("title") != nil:
		m.metadata = append(m.metadata, member{"title", metadata.get("title")})
	}
	if depth, ok := metadata.get("cell_depth").integer(); ok && depth > 0 && depth < 10 {
		m.depth = depth
	}
	m.metadata = append(m.metadata, others(metadata, hiddenMetadata...)...)
}

func readsBackAsTitle(title string) bool {
	if title == "" || title != strings.TrimSpace(title) || strings.ContainsAny(title, "{=[]\n\r%") {
		return false
	}
	got, attributes := cutAttributes(title)
	return got == title && attributes == ""
}

// writeComment returns the lines of a markdown or raw cell: commented out, or
// in triple quotes when a line would be read as a marker that way.
func writeComment(source string) []string {
	lines := comment(strings.Split(source, "\n"))
	if source == "" {
		return lines
	}
	if !slices.ContainsFunc(lines, func(l string) bool { _, ok := percentOptions(l); return ok }) && !opensFence(lines) {
		return lines
	}
	for _, quotes := range []string{`"""`, `'''`} {
		if !strings.Contains(source, quotes) && !strings.HasSuffix(source, quotes[:1]) && !strings.HasSuffix(source, `\`) {
			return append([]string{"r" + quotes}, append(strings.Split(source, "\n"), quotes)...)
		}
	}
	return lines
}

func comment(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		if out[i] = "# " + line; line == "" {
			out[i] = "#"
		}
	}
	return out
}
