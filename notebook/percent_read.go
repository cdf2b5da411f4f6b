package notebook

import (
	"encoding/json"
	"slices"
	"strings"
)

// readPercent reads a script. It has no failures: a text without any marker is
// one code cell.
func (t *Text) readPercent(text string) {
	if text == "" {
		return
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	number := t.readHeader(lines)
	var f fences
	for number < len(lines) {
		start := number
		marker, marked := parsePercentMarker(lines[start])
		if marked {
			number++
		} else {
			marker = percentMarker{typ: Code}
		}
		number = endOfPercentCell(lines, number, marker.typ, &f)
		first := start
		if marked {
			first++
		}
		body := trimSeparator(lines[first:number])
		valid := validMetadata(&marker)
		c := percentCell(marker, body)
		if marked {
			c.Line = start + 1
		}
		if !valid {
			t.Doubtful = append(t.Doubtful, start+1)
		}
		t.Cells = append(t.Cells, c)
	}
}

// endOfPercentCell returns the line of the next marker. In code, a marker in a
// triple-quoted string does not count, nor does one in markdown that is quoted or in a
// block between fences, such as a diagram.
func endOfPercentCell(lines []string, from int, typ CellType, f *fences) int {
	var q quoteTracker
	f.open = codeFence{} // a block ends with its cell
	for i := from; i < len(lines); i++ {
		if !q.quoted() {
			if typ != Code && f.reads(lines, i) {
				continue
			}
			if _, ok := percentOptions(lines[i]); ok {
				return i
			}
		}
		if typ == Code || q.quoted() || i == from {
			q.read(lines[i])
		}
	}
	return len(lines)
}

// trimSeparator takes off the empty lines that separate a cell from the next
// one: one, or the two that style guides ask for before a function.
func trimSeparator(lines []string) []string {
	n := len(lines)
	blank := func(i int) bool { return strings.TrimSpace(lines[i]) == "" }
	switch {
	case n >= 3 && blank(n-1) && blank(n-2) && !blank(n-3):
		return lines[:n-2]
	case n >= 1 && lines[n-1] == "":
		return lines[:n-1]
	}
	return lines
}

func percentCell(m percentMarker, body []string) TextCell {
	c := TextCell{Type: m.typ, Index: -1}
	language, args := "", ""
	var metadata []member
	if m.title != "" {
		metadata = append(metadata, member{"title", newString(m.title)})
	}
	if m.depth > 0 {
		metadata = append(metadata, member{"cell_depth", newInt(m.depth)})
	}
	for _, kv := range m.metadata {
		text, isText := kv.val.str()
		switch {
		case m.typ == Code && kv.key == "language" && isText && cellLanguages[text]:
			language = text
		case m.typ == Code && kv.key == "magic_args" && isText:
			args = text
		default:
			metadata = append(metadata, kv)
		}
	}
	inactive, source, isInactive := readInactive(m, body)
	if isInactive && inactive == Raw {
		metadata = slices.DeleteFunc(metadata, func(kv member) bool {
			text, isText := kv.val.str()
			return kv.key == activeKey && isText && text == "" // a raw cell needs no more
		})
	}
	c.Metadata = objectJSON(metadata)
	switch {
	case isInactive && language == "":
		c.Type, c.Source = inactive, source
	case m.typ != Code:
		c.Source = readComment(body)
	case language != "":
		magic := "%%" + language
		if args != "" {
			magic += " " + args
		}
		c.Source = magic + "\n" + strings.Join(uncomment(body), "\n")
	default:
		c.Source = strings.Join(uncommentMagics(body), "\n")
	}
	return c
}

// validMetadata takes members out of a marker that nbformat does not allow, such
// as a name that is a number, and reports whether there were none.
func validMetadata(m *percentMarker) bool {
	all := len(m.metadata)
	m.metadata = slices.DeleteFunc(slices.Clone(m.metadata), func(kv member) bool {
		v := validator{minor: 5}
		v.cellMetadata(m.typ, newObject(kv))
		return len(v.problems) > 0
	})
	return len(m.metadata) == all
}

// readComment returns the text of a markdown or raw cell: what stands between
// triple quotes, or the lines without their comment signs.
func readComment(body []string) string {
	content := strings.TrimSpace(strings.Join(body, "\n"))
	for _, prefix := range []string{"", "r", "R"} {
		for _, quotes := range []string{`"""`, `'''`} {
			inner, ok := strings.CutPrefix(content, prefix+quotes)
			if !ok || len(inner) < len(quotes) {
				continue
			}
			if inner, ok = strings.CutSuffix(inner, quotes); ok {
				return strings.TrimSuffix(strings.TrimPrefix(inner, "\n"), "\n")
			}
		}
	}
	return strings.Join(uncomment(body), "\n")
}

func uncomment(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		if rest, ok := strings.CutPrefix(line, "# "); ok {
			out[i] = rest
		} else {
			out[i] = strings.TrimPrefix(line, "#")
		}
	}
	return out
}

// readHeader reads the YAML header that Jupytext writes, between two lines
// "# ---", and returns the number of lines that it takes. The kernelspec goes
// to Metadata; other top-level entries become a raw cell, as Jupytext has it.
// The line that names the interpreter and the one that names the encoding are
// passed over.
func (t *Text) readHeader(lines []string) int {
	start := 0
	for start < len(lines) && (strings.HasPrefix(lines[start], "#!") ||
		start < 2 && strings.HasPrefix(lines[start], "#") && strings.Contains(lines[start], "coding")) {
		start++
	}
	if start >= len(lines) || strings.TrimSpace(lines[start]) != "# ---" {
		return start
	}
	end := start + 1
	for end < len(lines) && strings.TrimSpace(lines[end]) != "# ---" {
		if !strings.HasPrefix(lines[end], "#") {
			return start
		}
		end++
	}
	if end == len(lines) {
		return start
	}
	var jupyter, rest []string
	inJupyter := false
	for _, line := range uncomment(lines[start+1 : end]) {
		if !strings.HasPrefix(line, " ") {
			inJupyter = strings.TrimSpace(line) == "jupyter:"
		}
		if inJupyter {
			jupyter = append(jupyter, line)
		} else {
			rest = append(rest, line)
		}
	}
	t.Metadata = readKernelspec(jupyter)
	if len(rest) > 0 {
		t.Cells = append(t.Cells, TextCell{
			Type: Raw, Index: -1, Line: start + 1,
			Source: "---\n" + strings.Join(rest, "\n") + "\n---",
		})
	}
	if end++; end < len(lines) && strings.TrimSpace(lines[end]) == "" {
		end++
	}
	return end
}

// readKernelspec finds the scalars under jupyter: kernelspec: in the lines of
// a header. It is all of YAML that is needed here.
func readKernelspec(lines []string) json.RawMessage {
	var spec []member
	depth := -1
	for _, line := range lines {
		body := strings.TrimLeft(line, " ")
		indent := len(line) - len(body)
		if body == "kernelspec:" {
			depth = indent
			continue
		}
		if depth < 0 {
			continue
		}
		if indent <= depth {
			break
		}
		key, value, ok := strings.Cut(body, ":")
		if value = strings.TrimSpace(value); !ok || value == "" {
			continue
		}
		if len(value) > 1 && (value[0] == '\'' || value[0] == '"') && value[len(value)-1] == value[0] {
			value = value[1 : len(value)-1]
		}
		spec = append(spec, member{key, newString(value)})
	}
	if len(spec) == 0 {
		return nil
	}
	return objectJSON([]member{{"kernelspec", newObject(spec...)}})
}
