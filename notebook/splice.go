package notebook

import (
	"slices"
	"strings"
)

// spellings remembers how the lines of a source are spelled, by their text
// without a newline. A line that an edit keeps, or moves, or gives a newline,
// keeps its escapes then: those of its writer, and a lone surrogate, which the
// text cannot show.
type spellings map[string][]byte

func (sp spellings) learn(lines []literalLine) {
	for _, l := range lines {
		text := strings.TrimSuffix(l.text, "\n")
		if _, known := sp[text]; !known {
			sp[text] = l.raw[:len(l.raw)-l.newline]
		}
	}
}

// appendLine appends a line as it goes between the quotes of a literal.
func (sp spellings) appendLine(dst []byte, line string, ascii bool) []byte {
	text, ended := strings.CutSuffix(line, "\n")
	if raw, known := sp[text]; known {
		dst = append(dst, raw...)
	} else {
		dst = appendStringBody(dst, text, ascii)
	}
	if ended {
		dst = append(dst, `\n`...)
	}
	return dst
}

// spliceString returns a literal for text in which the lines that begin and
// end the literal raw as well are spelled as there.
func spliceString(raw []byte, text string, ascii bool) []byte {
	old, lines := splitLiteral(raw), SplitLines(text)
	head := 0
	for head < len(old) && head < len(lines) && old[head].text == lines[head] {
		head++
	}
	end := 0
	for end < len(old)-head && end < len(lines)-head && old[len(old)-1-end].text == lines[len(lines)-1-end] {
		end++
	}
	sp := spellings{}
	sp.learn(old)
	out := []byte{'"'}
	for _, l := range old[:head] {
		out = append(out, l.raw...)
	}
	for _, l := range lines[head : len(lines)-end] {
		out = sp.appendLine(out, l, ascii)
	}
	for _, l := range old[len(old)-end:] {
		out = append(out, l.raw...)
	}
	return append(out, '"')
}

// spliceArray makes an expanded array of lines hold text. Elements at its
// beginning and end that hold whole lines of text stay as they are.
func spliceArray(n *node, text string, st *style) {
	head, rest := 0, text
	for head < len(n.items) {
		s, ok := n.items[head].val.str()
		if !ok || !strings.HasSuffix(s, "\n") || !strings.HasPrefix(rest, s) {
			break
		}
		rest = rest[len(s):]
		head++
	}
	end := len(n.items)
	for end > head {
		s, ok := n.items[end-1].val.str()
		before, found := strings.CutSuffix(rest, s)
		if !ok || s == "" || !found || before != "" && !strings.HasSuffix(before, "\n") {
			break
		}
		rest = before
		end--
	}
	sp := spellings{}
	for _, it := range n.items {
		if it.val.kind() == kindString {
			sp.learn(splitLiteral(it.val.raw))
		}
	}
	items := slices.Clone(n.items[:head])
	for _, line := range SplitLines(rest) {
		raw := append(sp.appendLine([]byte{'"'}, line, st.ascii), '"')
		items = append(items, item{val: rawNode(raw), fresh: true})
	}
	n.setItems(append(items, n.items[end:]...), st, cellLevel+1)
}
