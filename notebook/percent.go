package notebook

import (
	"encoding/json"
	"slices"
	"strings"
)

// The percent format writes a notebook as a script. A cell begins with a
// comment line
//
//	# %% title [markdown] key="value" tags=["a"]
//
// in which everything after the two percent signs is optional, and in which a
// JSON object may stand in the place of the key=value pairs. Markdown and raw
// cells are commented out, or quoted in triple quotes; magics are commented
// out.

// percentMarker is what stands on such a line.
type percentMarker struct {
	title string
	// typ is Code when the line names no type.
	typ CellType
	// typed says that the line names a type.
	typed    bool
	metadata []member
	// depth counts the percent signs beyond two: Spyder's sub-cells.
	depth int
}

// percentOptions returns what follows the percent signs of a marker line, with
// the signs beyond two. Of "# %%" it is empty.
func percentOptions(line string) (options string, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimLeft(line, " \t"), "#")
	if !ok {
		return "", false
	}
	rest = strings.TrimLeft(rest, " \t")
	if bare := strings.TrimRight(rest, " \t\r"); bare == "<codecell>" || isPrompt(bare) {
		return "", true
	}
	rest, ok = strings.CutPrefix(rest, "%%")
	if !ok {
		return "", false
	}
	options = strings.TrimRight(rest, " \t\r")
	after := strings.TrimLeft(options, "%")
	// "# %%time" is a magic that was commented out.
	return options, after == "" || after[0] == ' ' || after[0] == '\t'
}

// isPrompt reports whether a comment is one that nbconvert writes before each
// cell: In[3]: or In[ ]:.
func isPrompt(s string) bool {
	count, ok := strings.CutPrefix(s, "In[")
	if !ok {
		return false
	}
	count, ok = strings.CutSuffix(strings.TrimSuffix(count, ":"), "]")
	return ok && strings.Trim(count, "0123456789 ") == ""
}

// regionKey is the member of a cell's metadata under which Jupytext notes that its marker
// says [md], to write it so again.
const regionKey = "region_name"

func parsePercentMarker(line string) (percentMarker, bool) {
	options, ok := percentOptions(line)
	if !ok {
		return percentMarker{}, false
	}
	m := percentMarker{typ: Code}
	for strings.HasPrefix(options, "%") {
		options = options[1:]
		m.depth++
	}
	m.title, m.metadata = parseOptions(strings.TrimSpace(options))
	for _, name := range []string{"markdown", "raw", "md", "code"} {
		before, after, found := strings.Cut(m.title, "["+name+"]")
		if !found {
			continue
		}
		m.title, m.typed = strings.TrimSpace(before+after), true
		if m.typ = CellType(name); name == "md" {
			m.typ = Markdown
			m.metadata = append(m.metadata, member{regionKey, newString(name)})
		}
		break
	}
	return m, true
}

// parseOptions splits options into a title and metadata: the title ends at the
// object or at the first word with an equals sign.
func parseOptions(s string) (title string, metadata []member) {
	brace, equals := strings.IndexByte(s, '{'), strings.IndexByte(s, '=')
	if brace >= 0 && (equals < 0 || brace < equals) {
		n, err := parseValue([]byte(s[brace:]))
		if err != nil || n.kind() != kindObject {
			return s, nil
		}
		return strings.TrimSpace(s[:brace]), others(n)
	}
	if equals < 0 {
		title, rest := cutAttributes(s)
		return title, parsePairs(rest)
	}
	start := strings.LastIndexAny(strings.TrimRight(s[:equals], " "), " \t") + 1
	title, attributes := cutAttributes(s[:start])
	return title, append(parsePairs(attributes), parsePairs(s[start:])...)
}

// cutAttributes takes words that begin with a dot, such as ".hidden", off the
// end of a title.
func cutAttributes(s string) (title, attributes string) {
	title = strings.TrimSpace(s)
	for {
		i := strings.LastIndexAny(title, " \t") + 1
		if title == "" || title[i] != '.' {
			return title, attributes
		}
		attributes = title[i:] + " " + attributes
		title = strings.TrimRight(title[:i], " \t")
	}
}

// parsePairs reads words of the form key=value, where the value is JSON, a
// text in single quotes or a bare word; a key alone is null.
func parsePairs(s string) []member {
	var pairs []member
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		end := strings.IndexAny(s, "= \t")
		if end < 0 {
			return append(pairs, member{s, newNull()})
		}
		key := s[:end]
		rest := strings.TrimLeft(s[end:], " \t")
		if rest == "" || rest[0] != '=' || key == "" {
			if key != "" {
				pairs = append(pairs, member{key, newNull()})
			}
			s = s[max(end, 1):]
			continue
		}
		val, n := parsePairValue(strings.TrimLeft(rest[1:], " \t"))
		pairs = append(pairs, member{key, val})
		s = strings.TrimLeft(rest[1:], " \t")[n:]
	}
	return pairs
}

func parsePairValue(s string) (*node, int) {
	scan := newScanner([]byte(s))
	if n, err := parseNode(scan, 0); err == nil && (scan.pos == len(s) || isSpace(s[scan.pos])) {
		return n, scan.pos
	}
	if strings.HasPrefix(s, "'") {
		if end := strings.IndexByte(s[1:], '\''); end >= 0 {
			return newString(s[1 : end+1]), end + 2
		}
	}
	end := strings.IndexAny(s, " \t")
	if end < 0 {
		end = len(s)
	}
	return newString(s[:end]), end
}

// String returns the marker line. Metadata is written as pairs when every name
// fits before an equals sign, and as one object otherwise.
func (m percentMarker) String() string {
	var b strings.Builder
	b.WriteString("# %%" + strings.Repeat("%", m.depth))
	for _, part := range []string{m.title, m.tag()} {
		if part != "" {
			b.WriteString(" " + part)
		}
	}
	asPairs := !slices.ContainsFunc(m.members(), func(kv member) bool {
		return !plainKey(kv.key) || kv.val.kind() == kindNull
	})
	if !asPairs {
		b.WriteByte(' ')
		b.Write(objectJSON(m.members()))
		return b.String()
	}
	for _, kv := range m.members() {
		b.WriteString(" " + kv.key + "=")
		b.Write(compact(kv.val))
	}
	return b.String()
}

// tag is the type as the line names it, which code has none of.
func (m percentMarker) tag() string {
	switch {
	case m.typ == Code:
		return ""
	case m.short():
		return "[md]"
	default:
		return "[" + string(m.typ) + "]"
	}
}

// short reports whether the line says [md].
func (m percentMarker) short() bool {
	return m.typ == Markdown && slices.ContainsFunc(m.metadata, isShort)
}

func isShort(kv member) bool {
	text, _ := kv.val.str()
	return kv.key == regionKey && text == "md"
}

// members are those that the line has.
func (m percentMarker) members() []member {
	if m.short() {
		return slices.DeleteFunc(slices.Clone(m.metadata), isShort)
	}
	return m.metadata
}

// plainKey reports whether a name can stand before an equals sign.
func plainKey(key string) bool {
	for i, c := range []byte(key) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || !(c >= '0' && c <= '9' || c == '-' || c == '.')) {
			return false
		}
	}
	return key != ""
}

// compact writes a value on one line, with a space after commas and colons.
func compact(n *node) []byte {
	st := &style{colon: ": ", gap: " "}
	return st.layOut(n.clone(), 0).bytes()
}

// objectJSON returns an object of the members, nil for none.
func objectJSON(members []member) json.RawMessage {
	if len(members) == 0 {
		return nil
	}
	return compact(newObject(members...))
}
