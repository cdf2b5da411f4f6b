package toolproc

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"mime/multipart"
	"net/textproto"
	"slices"
	"strings"

	"github.com/coppice-run/coppice/internal/toolspec"
	"github.com/coppice-run/coppice/messages"
)

// payload is the body of a request, and its type.
type payload struct {
	data []byte
	kind string
}

// transportMultipart is the input_transport of tools that take forms.
const transportMultipart = "multipart"

// form is the body of a run for a tool with that transport: run_id and _pixie as
// fields, and each input as a field of its key: a text as it is, a file as a
// file, and anything else as JSON.
func (p *Process) form(c *call, inputs map[string]json.RawMessage, about []byte) (*payload, error) {
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	f := former{w: w}
	f.field("run_id", c.Run)
	f.field("_pixie", string(about))
	keys := make([]string, 0, len(inputs))
	for key := range inputs {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		f.input(p.o.Tool.Input(key), key, inputs[key])
	}
	if f.err == nil {
		f.err = w.Close()
	}
	if f.err != nil {
		return nil, f.err
	}
	return &payload{data: body.Bytes(), kind: w.FormDataContentType()}, nil
}

// former writes a form until something is wrong.
type former struct {
	w   *multipart.Writer
	err error
}

func (f *former) field(key, value string) {
	if f.err == nil {
		f.err = f.w.WriteField(key, value)
	}
}

func (f *former) input(in *toolspec.Input, key string, v json.RawMessage) {
	if in != nil && in.IsFile() {
		f.files(key, v)
		return
	}
	var s string
	if json.Unmarshal(v, &s) == nil && string(v) != "null" {
		f.field(key, s)
		return
	}
	f.field(key, string(v))
}

// files writes one file, or a list of them, or none.
func (f *former) files(key string, v json.RawMessage) {
	var list []json.RawMessage
	if json.Unmarshal(v, &list) != nil {
		list = []json.RawMessage{v}
	}
	for _, one := range list {
		if s := string(one); s == "null" || s == `""` {
			continue
		}
		file, err := readUpload(key, one)
		if err == nil && f.err == nil {
			var part interface{ Write([]byte) (int, error) }
			if part, err = f.w.CreatePart(file.header(key)); err == nil {
				_, err = part.Write(file.data)
			}
		}
		if f.err == nil {
			f.err = err
		}
	}
}

// upload is a file among the inputs.
type upload struct {
	name, kind string
	data       []byte
}

// readUpload reads a file as inputs have it: {"filename", "data"} with data in
// base64, or a data URL alone or in place of that.
func readUpload(key string, v json.RawMessage) (upload, error) {
	var object struct {
		Name string `json:"filename"`
		Data string `json:"data"`
		Kind string `json:"content_type"`
	}
	if json.Unmarshal(v, &object.Data) != nil && (json.Unmarshal(v, &object) != nil || object.Data == "" && !bytes.Contains(v, []byte(`"data"`))) {
		return upload{}, inputError(`%s: a file is {"filename": "a.csv", "data": "<base64>"}, or a data URL`, key)
	}
	u := upload{name: object.Name, kind: object.Kind}
	text := object.Data
	if rest, isURL := strings.CutPrefix(text, "data:"); isURL {
		head, data, ok := strings.Cut(rest, ",")
		kind, encoded := strings.CutSuffix(head, ";base64")
		if !ok || !encoded {
			return upload{}, inputError("%s: the data URL is not one in base64", key)
		}
		text = data
		if u.kind == "" {
			u.kind = kind
		}
	}
	var err error
	if u.data, err = base64.StdEncoding.DecodeString(text); err != nil {
		return upload{}, inputError("%s: the data is not base64: %v", key, err)
	}
	if _, _, err := mime.ParseMediaType(u.kind); err != nil {
		u.kind = "application/octet-stream"
	}
	if u.name == "" {
		u.name = key
	}
	return u, nil
}

func (u upload) header(key string) textproto.MIMEHeader {
	h := textproto.MIMEHeader{}
	h.Set("Content-Disposition", mime.FormatMediaType("form-data", map[string]string{"name": key, "filename": u.name}))
	h.Set("Content-Type", u.kind)
	return h
}

func inputError(format string, args ...any) error {
	return &messages.ToolError{
		Kind: messages.ToolErrorInput, Message: "the inputs cannot be sent: " + fmt.Sprintf(format, args...),
		Hint: "compare the inputs with those that tool.json declares",
	}
}
