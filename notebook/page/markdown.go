package page

import (
	"html/template"
	"regexp"
	"strconv"
	"strings"

	"github.com/coppice-run/coppice/notebook"
)

// maxNesting is how deeply blocks and emphasis may nest; what is deeper is text.
const maxNesting = 12

// writer writes Markdown as HTML. What it writes is escaped text and elements of
// its own; HTML in the source is shown in frames.
type writer struct {
	b          strings.Builder
	code       *highlighter
	attachment func(name string) notebook.Bundle
}

// markdown turns Markdown into HTML. attachment may be nil.
func markdown(source string, code *highlighter, attachment func(string) notebook.Bundle) template.HTML {
	w := &writer{code: code, attachment: attachment}
	w.blocks(strings.Split(strings.ReplaceAll(source, "\r\n", "\n"), "\n"), 0)
	return template.HTML(w.b.String()) //nolint:gosec // all text in it is escaped
}

var (
	heading   = regexp.MustCompile(`^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$`)
	rule      = regexp.MustCompile(`^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$`)
	fence     = regexp.MustCompile("^( {0,3})(```+|~~~+)[ \t]*([^`]*)$")
	item      = regexp.MustCompile(`^( *)([-*+]|\d{1,9}[.)])( +|$)(.*)$`)
	tableRule = regexp.MustCompile(`^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$`)
	htmlBlock = regexp.MustCompile(`^ {0,3}</?([A-Za-z][A-Za-z0-9-]*)(?:[\s/>]|$)|^ {0,3}<!--`)
	underline = regexp.MustCompile(`^ {0,3}(=+|-+)[ \t]*$`)
)

// blocks writes blocks.
func (w *writer) blocks(lines []string, depth int) {
	for i := 0; i < len(lines); {
		line := lines[i]
		switch {
		case strings.TrimSpace(line) == "":
			i++
		case depth > maxNesting:
			w.b.WriteString("<pre>" + template.HTMLEscapeString(strings.Join(lines[i:], "\n")) + "</pre>")
			return
		case fence.MatchString(line):
			i = w.fenced(lines, i)
		case strings.HasPrefix(line, "    "):
			i = w.indented(lines, i)
		case heading.MatchString(line):
			m := heading.FindStringSubmatch(line)
			w.heading(len(m[1]), m[2])
			i++
		case rule.MatchString(line):
			w.b.WriteString("<hr>\n")
			i++
		case strings.HasPrefix(strings.TrimLeft(line, " "), ">"):
			i = w.quotation(lines, i, depth)
		case item.MatchString(line):
			i = w.list(lines, i, depth)
		case i+1 < len(lines) && strings.Contains(line, "|") && tableRule.MatchString(lines[i+1]):
			i = w.table(lines, i)
		case strings.HasPrefix(strings.TrimSpace(line), "$$"):
			i = w.formula(lines, i)
		case isHTMLBlock(line):
			i = w.frame(lines, i)
		default:
			i = w.paragraph(lines, i)
		}
	}
}

func (w *writer) heading(level int, text string) {
	tag := "h" + strconv.Itoa(level)
	w.b.WriteString("<" + tag + ">")
	w.inline(text, 0)
	w.b.WriteString("</" + tag + ">\n")
}

func (w *writer) fenced(lines []string, i int) int {
	m := fence.FindStringSubmatch(lines[i])
	var body []string
	for i++; i < len(lines); i++ {
		end := strings.TrimSpace(lines[i])
		if strings.HasPrefix(end, m[2]) && strings.Trim(end, m[2][:1]) == "" {
			i++
			break
		}
		body = append(body, strings.TrimPrefix(lines[i], m[1]))
	}
	language, _, _ := strings.Cut(strings.TrimSpace(m[3]), " ")
	w.b.WriteString(string(w.code.in(strings.Trim(language, "{.}"), strings.Join(body, "\n"))) + "\n")
	return i
}

func (w *writer) indented(lines []string, i int) int {
	var body []string
	for ; i < len(lines) && (strings.HasPrefix(lines[i], "    ") || strings.TrimSpace(lines[i]) == ""); i++ {
		body = append(body, strings.TrimPrefix(lines[i], "    "))
	}
	w.b.WriteString("<pre>" + template.HTMLEscapeString(strings.TrimRight(strings.Join(body, "\n"), "\n")) + "</pre>\n")
	return i
}

func (w *writer) quotation(lines []string, i, depth int) int {
	var body []string
	for ; i < len(lines) && strings.TrimSpace(lines[i]) != ""; i++ {
		line := strings.TrimLeft(lines[i], " ")
		body = append(body, strings.TrimPrefix(strings.TrimPrefix(line, ">"), " "))
	}
	w.b.WriteString("<blockquote>\n")
	w.blocks(body, depth+1)
	w.b.WriteString("</blockquote>\n")
	return i
}

// list writes the items that begin at line i with markers of one kind.
func (w *writer) list(lines []string, i, depth int) int {
	first := item.FindStringSubmatch(lines[i])
	ordered := len(first[2]) > 1
	tag, open := "ul", "<ul>\n"
	if ordered {
		tag, open = "ol", "<ol>\n"
		if n := strings.TrimLeft(first[2][:len(first[2])-1], "0"); n != "1" {
			open = `<ol start="` + n + `">` + "\n"
		}
	}
	w.b.WriteString(open)
	for i < len(lines) {
		m := item.FindStringSubmatch(lines[i])
		if m == nil || len(m[1]) > len(first[1])+3 || len(m[1]) < len(first[1]) || (len(m[2]) > 1) != ordered || rule.MatchString(lines[i]) {
			break
		}
		body, loose, next := itemBody(lines, i, m)
		w.item(body, loose, depth)
		i = next
	}
	w.b.WriteString("</" + tag + ">\n")
	return i
}

// itemBody gathers the lines of an item: those that are indented as far as its
// text, and those that go on with its paragraph.
func itemBody(lines []string, i int, m []string) (body []string, loose bool, next int) {
	indent := len(m[1]) + len(m[2]) + min(max(len(m[3]), 1), 4)
	body = []string{m[4]}
	blank := false
	for i++; i < len(lines); i++ {
		line := lines[i]
		own := len(line) - len(strings.TrimLeft(line, " "))
		switch {
		case strings.TrimSpace(line) == "":
			blank = true
			body = append(body, "")
			continue
		case own >= indent:
			loose = loose || blank
			body = append(body, line[indent:])
		case item.MatchString(line) && own > len(m[1]):
			loose = loose || blank
			body = append(body, strings.TrimLeft(line, " "))
		case item.MatchString(line) || blank:
			return body, loose, i
		default:
			body = append(body, strings.TrimLeft(line, " "))
		}
		blank = false
	}
	return body, loose, i
}

func (w *writer) item(body []string, loose bool, depth int) {
	w.b.WriteString("<li>")
	for mark, box := range map[string]string{"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "} {
		if rest, ok := strings.CutPrefix(body[0], mark); ok {
			body[0] = box + rest
		}
	}
	if loose {
		w.blocks(body, depth+1)
	} else {
		// The text of a tight item is no paragraph of its own.
		n := 1
		for n < len(body) && strings.TrimSpace(body[n]) != "" && !item.MatchString(body[n]) && !fence.MatchString(body[n]) {
			n++
		}
		w.inline(strings.Join(body[:n], "\n"), 0)
		w.blocks(body[n:], depth+1)
	}
	w.b.WriteString("</li>\n")
}

func (w *writer) table(lines []string, i int) int {
	align := splitRow(lines[i+1])
	row := func(line, tag string) {
		cells := splitRow(line)
		w.b.WriteString("<tr>")
		for n, rule := range align {
			style := ""
			switch l, r := strings.HasPrefix(rule, ":"), strings.HasSuffix(rule, ":"); {
			case l && r:
				style = ` style="text-align:center"`
			case r:
				style = ` style="text-align:right"`
			}
			w.b.WriteString("<" + tag + style + ">")
			if n < len(cells) {
				w.inline(cells[n], 0)
			}
			w.b.WriteString("</" + tag + ">")
		}
		w.b.WriteString("</tr>\n")
	}
	w.b.WriteString("<table>\n")
	row(lines[i], "th")
	for i += 2; i < len(lines) && strings.Contains(lines[i], "|"); i++ {
		row(lines[i], "td")
	}
	w.b.WriteString("</table>\n")
	return i
}

// splitRow cuts a row of a table at its bars, but for those with a backslash.
func splitRow(line string) []string {
	line = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "|"), "|")
	line = strings.ReplaceAll(line, `\|`, "\x00")
	cells := strings.Split(line, "|")
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(strings.TrimSpace(c), "\x00", "|")
	}
	return cells
}

// formula keeps a formula as it is written.
func (w *writer) formula(lines []string, i int) int {
	start := i
	line := strings.TrimSpace(lines[i])
	if len(line) < 4 || !strings.HasSuffix(line, "$$") {
		for i++; i < len(lines) && !strings.HasSuffix(strings.TrimSpace(lines[i]), "$$"); i++ {
			continue
		}
	}
	i = min(i+1, len(lines))
	w.b.WriteString("<pre>" + template.HTMLEscapeString(strings.Join(lines[start:i], "\n")) + "</pre>\n")
	return i
}

// isHTMLBlock says whether HTML begins that is more than a word in a text.
func isHTMLBlock(line string) bool {
	m := htmlBlock.FindStringSubmatch(line)
	return m != nil && !plainTags[strings.ToLower(m[1])]
}

// frame shows HTML in a frame: it ends with a blank line.
func (w *writer) frame(lines []string, i int) int {
	start := i
	for i < len(lines) && strings.TrimSpace(lines[i]) != "" {
		i++
	}
	doc := frameHead + strings.Join(lines[start:i], "\n")
	w.b.WriteString(`<iframe sandbox="allow-same-origin" loading="lazy" title="HTML" srcdoc="` + template.HTMLEscapeString(doc) + `"></iframe>` + "\n")
	return i
}

func (w *writer) paragraph(lines []string, i int) int {
	start := i
	for i++; i < len(lines); i++ {
		line := lines[i]
		if m := underline.FindStringSubmatch(line); m != nil {
			level := 2
			if m[1][0] == '=' {
				level = 1
			}
			w.heading(level, strings.Join(lines[start:i], " "))
			return i + 1
		}
		if strings.TrimSpace(line) == "" || heading.MatchString(line) || fence.MatchString(line) || rule.MatchString(line) ||
			item.MatchString(line) || strings.HasPrefix(strings.TrimLeft(line, " "), ">") || isHTMLBlock(line) {
			break
		}
	}
	w.b.WriteString("<p>")
	w.inline(strings.Join(lines[start:i], "\n"), 0)
	w.b.WriteString("</p>\n")
	return i
}
