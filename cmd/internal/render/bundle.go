package render

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"regexp"
	"slices"
	"strings"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/htmltext"
	"github.com/coppice-run/coppice/sinks/sanitise"
)

// wrapper is the text form of IPython's objects that hold something else, and
// says nothing beside it.
var wrapper = regexp.MustCompile(`^<IPython\.core\.display\.\w+ object>$`)

// Bundle draws rich output: the text that suits a terminal best, and a line for
// each image. JSON beside a text is left to [JSONTree]; of what has no text
// form the types are named.
func Bundle(s Style, b messages.Bundle) []string {
	var lines []string
	for _, mime := range []string{messages.MIMEPNG, messages.MIMEJPEG} {
		if data, ok := b.Text(mime); ok {
			lines = append(lines, s.inline(mime, data)...)
			lines = append(lines, s.Fit(s.in(cyan, "▣ "+picture(mime, data))))
		}
	}
	isPicture := len(lines) > 0
	_, isJSON := b[messages.MIMEJSON]
	for _, mime := range []string{messages.MIMEMarkdown, messages.MIMEPlain, messages.MIMELaTeX} {
		text, ok := b.Text(mime)
		switch {
		case !ok:
		case (isPicture || isJSON) && wrapper.MatchString(text):
			return lines
		case isPicture && mime == messages.MIMEPlain:
			return append(lines, s.Fit(s.in(dim, oneLine(text)))) // <Figure size 640x480 with 1 Axes>
		default:
			return append(lines, printed(s, text)...)
		}
	}
	if html, ok := b.Text(messages.MIMEHTML); ok && !isPicture && !isJSON {
		if text := htmltext.Markdown(html); text != "" {
			return append(lines, printed(s, text)...)
		}
	}
	if !isPicture && !isJSON && len(b) > 0 {
		var types []string
		for mime, raw := range b {
			types = append(types, mime+", "+Bytes(int64(len(raw))))
		}
		slices.Sort(types)
		lines = append(lines, s.Fit(s.in(cyan, "▣ "+oneLine(strings.Join(types, "; ")))))
	}
	return lines
}

// printed filters text of a kernel and splits it in lines.
func printed(s Style, text string) []string {
	if !s.Terminal {
		return strings.Split(strings.TrimRight(sanitise.Clean(text), "\n"), "\n")
	}
	return strings.Split(strings.TrimRight(s.still(text), "\n"), "\n")
}

// still is a text of a kernel for a terminal, with colours where they are allowed: it
// stands where it is drawn, unlike what code prints, which may go back in its line.
func (s Style) still(text string) string {
	filter := sanitise.Filter{Colour: s.Colour}
	return sanitise.ForTerminal(string(filter.Close(filter.Append(nil, text))))
}

// picture describes an image in base64.
func picture(mime, data string) string {
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return mime + ", not readable"
	}
	c, _, err := image.DecodeConfig(bytes.NewReader(raw))
	if err != nil {
		return mime + ", " + Bytes(int64(len(raw)))
	}
	return fmt.Sprintf("%s, %d×%d, %s", mime, c.Width, c.Height, Bytes(int64(len(raw))))
}

// How much of a JSON value is drawn.
type jsonLimits struct{ depth, items int }

var (
	jsonCollapsed = jsonLimits{depth: 2, items: 5}
	jsonExpanded  = jsonLimits{depth: 6, items: 20}
)

// JSONTree draws a JSON value as a tree: two levels of at most five items, or
// six of at most twenty when expand is set. Members keep their order.
func JSONTree(s Style, data messages.RawJSON, expand bool) []string {
	limits := jsonCollapsed
	if expand {
		limits = jsonExpanded
	}
	v, err := decodeJSON(json.NewDecoder(bytes.NewReader(data)), 0)
	if err != nil {
		return []string{"not JSON: " + oneLine(string(data))}
	}
	d := jsonDrawing{style: s, limits: limits}
	d.value("", "", "", v, 0)
	return d.lines
}

// jsonNode is a JSON value with its members in order.
type jsonNode struct {
	scalar string
	kind   byte // '{', '[', or 0 for a scalar
	keys   []string
	items  []jsonNode
}

// title is what stands in the place of a value that has parts.
func (n jsonNode) title() string {
	switch n.kind {
	case '{':
		return fmt.Sprintf("Object(%d)", len(n.items))
	case '[':
		return fmt.Sprintf("Array(%d)", len(n.items))
	default:
		return n.scalar
	}
}

// maxJSONDepth is more than anybody looks at, and less than a stack holds.
const maxJSONDepth = 1000

func decodeJSON(dec *json.Decoder, depth int) (jsonNode, error) {
	if depth > maxJSONDepth {
		return jsonNode{}, fmt.Errorf("read JSON: more than %d levels", maxJSONDepth)
	}
	dec.UseNumber()
	tok, err := dec.Token()
	if err != nil {
		return jsonNode{}, fmt.Errorf("read JSON: %w", err)
	}
	delim, ok := tok.(json.Delim)
	if !ok {
		text, err := json.Marshal(tok)
		return jsonNode{scalar: string(text)}, err
	}
	n := jsonNode{kind: byte(delim)}
	for dec.More() {
		if delim == '{' {
			key, err := dec.Token()
			if err != nil {
				return n, fmt.Errorf("read JSON: %w", err)
			}
			n.keys = append(n.keys, fmt.Sprint(key))
		}
		item, err := decodeJSON(dec, depth+1)
		if err != nil {
			return n, err
		}
		n.items = append(n.items, item)
	}
	_, err = dec.Token()
	return n, err
}

type jsonDrawing struct {
	style  Style
	limits jsonLimits
	lines  []string
}

// value draws n behind first; the lines of its parts begin with rest.
func (d *jsonDrawing) value(first, rest, key string, n jsonNode, depth int) {
	text := sanitise.Clean(n.title())
	if key != "" {
		text = d.style.in(dim, oneLine(key)+": ") + text
	}
	d.add(first + text)
	if depth >= d.limits.depth {
		return
	}
	shown := min(len(n.items), d.limits.items)
	for i, item := range n.items[:shown] {
		key := ""
		if n.kind == '{' {
			key = n.keys[i]
		}
		if i == len(n.items)-1 {
			d.value(rest+"└─ ", rest+"   ", key, item, depth+1)
		} else {
			d.value(rest+"├─ ", rest+"│  ", key, item, depth+1)
		}
	}
	if more := len(n.items) - shown; more > 0 {
		d.add(rest + "└─ " + d.style.in(dim, "… "+Number(more, "more item")))
	}
}

func (d *jsonDrawing) add(line string) { d.lines = append(d.lines, d.style.Fit(line)) }
