package contents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/coppice-run/coppice/notebook"
)

// emptyNotebook is a new one.
var emptyNotebook = []byte("{\n \"cells\": [],\n \"metadata\": {},\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n")

// object is one of JSON. Its numbers are as they were written.
type object = map[string]any

// parse reads a notebook of nbformat 4.
func parse(data []byte) (object, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var n object
	if err := d.Decode(&n); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("there is more after the notebook")
	}
	if _, ok := n["cells"].([]any); !ok || fmt.Sprint(n["nbformat"]) != "4" {
		return nil, errors.New("it has no cells, or is not of nbformat 4")
	}
	return n, nil
}

// joined is a notebook for clients: its texts are strings, where a file has lists of lines.
func joined(data []byte) ([]byte, error) {
	d, err := notebook.Parse(data) // nbformat 3 is upgraded
	if err != nil {
		return nil, err
	}
	n, err := parse(d.Bytes())
	if err != nil {
		return nil, err
	}
	texts(n, func(v any) any {
		lines, ok := v.([]any)
		if !ok {
			return v
		}
		var b strings.Builder
		for _, line := range lines {
			s, ok := line.(string)
			if !ok {
				return v
			}
			b.WriteString(s)
		}
		return b.String()
	})
	return encode(n, "")
}

// split is a notebook for a file, as Jupyter writes it.
func split(content []byte) ([]byte, error) {
	n, err := parse(content)
	if err != nil {
		return nil, err
	}
	texts(n, func(v any) any {
		s, ok := v.(string)
		if !ok {
			return v
		}
		lines := []any{}
		for line := range strings.Lines(s) {
			lines = append(lines, line)
		}
		return lines
	})
	data, err := encode(n, " ")
	if err != nil {
		return nil, err
	}
	if _, err := notebook.Parse(data); err != nil {
		return nil, err
	}
	return data, nil
}

func encode(n object, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(n); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// texts changes all that is text of several lines in a notebook: sources, streams, and what
// is displayed, unless it is JSON.
func texts(n object, change func(any) any) {
	at := func(o object, name string) {
		if v, ok := o[name]; ok {
			o[name] = change(v)
		}
	}
	bundle := func(v any) {
		data, _ := v.(object)
		for mime := range data {
			if mime != "application/json" && !(strings.HasPrefix(mime, "application/") && strings.HasSuffix(mime, "+json")) {
				at(data, mime)
			}
		}
	}
	for _, cell := range list(n["cells"]) {
		at(cell, "source")
		if attachments, ok := cell["attachments"].(object); ok {
			for _, v := range attachments {
				bundle(v)
			}
		}
		for _, output := range list(cell["outputs"]) {
			if output["output_type"] == "stream" {
				at(output, "text")
			}
			bundle(output["data"])
		}
	}
}

// list are the objects of a list.
func list(v any) []object {
	all, _ := v.([]any)
	objects := make([]object, 0, len(all))
	for _, one := range all {
		if o, ok := one.(object); ok {
			objects = append(objects, o)
		}
	}
	return objects
}
