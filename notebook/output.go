package notebook

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
)

// OutputType is the kind of an output.
type OutputType string

// The output types of nbformat 4.
const (
	Stream        OutputType = "stream"
	DisplayData   OutputType = "display_data"
	ExecuteResult OutputType = "execute_result"
	ErrorOutput   OutputType = "error"
)

// Bundle is a MIME bundle: MIME type to value. Texts and base64 data are JSON
// strings, application/json and the +json types any JSON value. It has the
// form in which Jupyter kernels send bundles; on disk, texts are lists of
// lines, which SetOutputs and Outputs take care of.
type Bundle map[string]json.RawMessage

// Output is one output of a code cell. Which fields count depends on Type.
type Output struct {
	Type OutputType
	// Name is stdout or stderr, Text what was written: of a stream.
	Name, Text string
	// Data and Metadata are those of display_data and execute_result. Metadata
	// is a JSON object; nil is an empty one.
	Data     Bundle
	Metadata json.RawMessage
	// Count is the prompt number of an execute_result, 0 for null.
	Count int
	// EName, EValue and Traceback are those of an error; the traceback's lines
	// keep their colours.
	EName, EValue string
	Traceback     []string
	// Raw is the JSON of an output of a type that is not known here.
	Raw json.RawMessage
}

// NewStream returns text that was written to stdout or stderr.
func NewStream(name, text string) Output { return Output{Type: Stream, Name: name, Text: text} }

// NewDisplay returns display_data. metadata may be nil.
func NewDisplay(data Bundle, metadata json.RawMessage) Output {
	return Output{Type: DisplayData, Data: data, Metadata: metadata}
}

// NewResult returns the value of a cell's last expression. metadata may be nil.
func NewResult(count int, data Bundle, metadata json.RawMessage) Output {
	return Output{Type: ExecuteResult, Count: count, Data: data, Metadata: metadata}
}

// NewError returns an exception.
func NewError(ename, evalue string, traceback []string) Output {
	return Output{Type: ErrorOutput, EName: ename, EValue: evalue, Traceback: traceback}
}

// TextValue returns a text for a bundle.
func TextValue(s string) json.RawMessage { return appendString(nil, s, false) }

// ImageValue returns a picture for a bundle: base64 on one line without a
// newline at its end, as current IPython sends it. Data that a kernel sent is
// kept as it came instead, with whatever newlines it has.
func ImageValue(data []byte) json.RawMessage {
	return appendString(nil, base64.StdEncoding.EncodeToString(data), false)
}

// Text returns the text of a type; ok is false when the bundle lacks it or
// holds another kind of value. A list of lines is joined.
func (b Bundle) Text(mime string) (text string, ok bool) {
	raw, ok := b[mime]
	if !ok {
		return "", false
	}
	n, err := parseValue(raw)
	if err != nil || !isMultiline(n) {
		return "", false
	}
	return n.multiline(), true
}

// Image returns the bytes of base64 data, newlines and all.
func (b Bundle) Image(mime string) (data []byte, ok bool) {
	text, ok := b.Text(mime)
	if !ok {
		return nil, false
	}
	data, err := base64.StdEncoding.DecodeString(strings.Map(dropSpace, text))
	return data, err == nil
}

func dropSpace(r rune) rune {
	if r == '\n' || r == '\r' || r == ' ' || r == '\t' {
		return -1
	}
	return r
}

// isMultiline reports whether n is a string or an array of strings.
func isMultiline(n *node) bool {
	if n.kind() == kindString {
		return true
	}
	return n.kind() == kindArray &&
		!slices.ContainsFunc(children(n), func(it item) bool { return it.val.kind() != kindString })
}

// isJSONType reports whether a MIME type holds JSON, by the rule of the
// nbformat schema.
func isJSONType(mime string) bool {
	rest, ok := strings.CutPrefix(mime, "application/")
	return ok && (rest == "json" || strings.HasSuffix(rest, "+json"))
}

// splitsLines reports whether nbformat writes a type as a list of lines.
// Base64 data is one string.
func splitsLines(mime string) bool {
	return strings.HasPrefix(mime, "text/") || mime == "image/svg+xml" || mime == "application/javascript"
}

// Outputs decodes the outputs of a code cell; other cells have none.
func (c *Cell) Outputs() []Output {
	list := c.n.get("outputs")
	if c.typ != Code || list == nil || list.kind() != kindArray {
		return nil
	}
	var outputs []Output
	list.each(func(_ int, _ []byte, n *node) bool {
		outputs = append(outputs, decodeOutput(n))
		return true
	})
	return outputs
}

// Attachment returns an attachment of a markdown or raw cell by its name, nil
// when there is none: its bundle holds the picture.
func (c *Cell) Attachment(name string) Bundle {
	n := c.n.at("attachments", name)
	if n == nil || n.kind() != kindObject {
		return nil
	}
	return decodeBundle(n)
}

func decodeOutput(n *node) Output {
	typ, _ := n.get("output_type").str()
	o := Output{Type: OutputType(typ)}
	switch o.Type {
	case Stream:
		o.Name, _ = n.get("name").str()
		o.Text = n.get("text").multiline()
	case DisplayData, ExecuteResult:
		o.Data = decodeBundle(n.get("data"))
		o.Metadata, _ = rawValue(n.get("metadata"))
		o.Count, _ = n.get("execution_count").integer()
	case ErrorOutput:
		o.EName, _ = n.get("ename").str()
		o.EValue, _ = n.get("evalue").str()
		if lines := n.get("traceback"); lines != nil {
			lines.each(func(_ int, _ []byte, v *node) bool {
				line, _ := v.str()
				o.Traceback = append(o.Traceback, line)
				return true
			})
		}
	default:
		o.Raw, _ = rawValue(n)
	}
	return o
}

func decodeBundle(n *node) Bundle {
	b := Bundle{}
	if n == nil {
		return b
	}
	n.each(func(_ int, key []byte, v *node) bool {
		mime := decodeString(key)
		if !isJSONType(mime) && v.kind() == kindArray && isMultiline(v) {
			b[mime] = TextValue(v.multiline())
		} else {
			b[mime], _ = rawValue(v)
		}
		return true
	})
	return b
}

// node returns the output as nbformat has it on disk, members in the order in
// which nbformat writes them. What a kernel should not have sent (a bundle
// value that is no JSON, metadata that is no object) is dropped or turned into
// text, so that what is written is always valid.
func (o Output) node() *node {
	members := []member{{"output_type", newString(string(o.Type))}}
	switch o.Type {
	case Stream:
		name := o.Name
		if name == "" {
			name = "stdout"
		}
		members = append(members, member{"name", newString(name)}, member{"text", newStrings(SplitLines(o.Text))})
	case DisplayData, ExecuteResult:
		members = append(members, member{"data", o.Data.node()}, member{"metadata", objectOrEmpty(o.Metadata)})
		if o.Type == ExecuteResult {
			count := newNull()
			if o.Count > 0 {
				count = newInt(o.Count)
			}
			members = append(members, member{"execution_count", count})
		}
	case ErrorOutput:
		members = append(members, member{"ename", newString(o.EName)}, member{"evalue", newString(o.EValue)},
			member{"traceback", newStrings(o.Traceback)})
	default:
		if n, err := parseValue(o.Raw); err == nil && n.kind() == kindObject {
			return n
		}
	}
	return sortedObject(members)
}

func objectOrEmpty(raw json.RawMessage) *node {
	if n, err := parseValue(raw); err == nil && n.kind() == kindObject {
		return n
	}
	return newObject()
}

func (b Bundle) node() *node {
	var members []member
	for mime, raw := range b {
		n, err := parseValue(bytes.ToValidUTF8(raw, []byte("\uFFFD")))
		if err != nil {
			continue
		}
		if !isJSONType(mime) {
			text := n.multiline()
			if !isMultiline(n) {
				// The schema allows text only: keep what was sent, as text.
				text = string(compact(n))
			}
			if n = newString(text); splitsLines(mime) {
				n = newStrings(SplitLines(text))
			}
		}
		members = append(members, member{mime, n})
	}
	return sortedObject(members)
}
