package page

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"slices"
	"strings"

	"github.com/coppice-run/coppice/notebook"
)

// outputView is an output as the template shows it: one of HTML, Picture and
// Frame is set.
type outputView struct {
	Kind          string
	HTML          template.HTML
	Picture       template.URL
	Alt           string
	Width, Height int
	Frame         string
}

// frameHead is the beginning of a document in a frame.
const frameHead = `<!DOCTYPE html><meta charset="utf-8"><meta name="color-scheme" content="light dark">` +
	`<style>:root{color-scheme:light dark}body{margin:0;font:15px/1.5 system-ui,sans-serif}table{border-collapse:collapse}th,td{padding:.2rem .5rem;text-align:right}tr:nth-child(even){background:#8881}img{max-width:100%}</style>`

// pictures are the types that a page can show, the best first.
var pictures = []string{"image/svg+xml", "image/png", "image/jpeg", "image/gif", "image/webp"}

func output(o notebook.Output, code *highlighter) outputView {
	switch o.Type {
	case notebook.Stream:
		kind := "stream"
		if o.Name == "stderr" {
			kind = "stream stderr"
		}
		return outputView{Kind: kind, HTML: terminal(strings.TrimRight(o.Text, "\n"))}
	case notebook.ErrorOutput:
		text := strings.Join(o.Traceback, "\n")
		if text == "" {
			text = o.EName + ": " + o.EValue
		}
		return outputView{Kind: "error", HTML: terminal(text)}
	case notebook.DisplayData, notebook.ExecuteResult:
		return bundle(o.Data, o.Metadata, code)
	default:
		return outputView{Kind: "unknown", HTML: terminal(string(o.Raw))}
	}
}

// bundle shows the best that a page can show of rich output.
func bundle(b notebook.Bundle, metadata json.RawMessage, code *highlighter) outputView {
	if html, ok := b.Text("text/html"); ok {
		return outputView{Kind: "html", Frame: frameHead + html}
	}
	if text, ok := b.Text("text/markdown"); ok {
		return outputView{Kind: "markdown", HTML: markdown(text, code, nil)}
	}
	for _, mime := range pictures {
		if url, ok := picture(b, mime); ok {
			v := outputView{Kind: "picture", Picture: url, Alt: "output"}
			if plain, ok := b.Text("text/plain"); ok {
				v.Alt = strings.TrimSpace(plain)
			}
			v.Width, v.Height = size(metadata, mime)
			return v
		}
	}
	if data, ok := b["application/json"]; ok {
		var pretty bytes.Buffer
		if json.Indent(&pretty, data, "", "  ") == nil {
			return outputView{Kind: "json", HTML: code.in("json", pretty.String())}
		}
	}
	for _, mime := range []string{"text/latex", "text/plain"} {
		if text, ok := b.Text(mime); ok {
			return outputView{Kind: "text", HTML: terminal(text)}
		}
	}
	var types []string
	for mime := range b {
		types = append(types, mime)
	}
	slices.Sort(types)
	return outputView{Kind: "unknown", HTML: terminal("[" + strings.Join(types, ", ") + "]")}
}

// picture is an image of a bundle as a data: URL.
func picture(b notebook.Bundle, mime string) (url template.URL, ok bool) {
	var data []byte
	if mime == "image/svg+xml" {
		text, isText := b.Text(mime)
		data, ok = []byte(text), isText
	} else {
		data, ok = b.Image(mime)
	}
	if !ok {
		return "", false
	}
	return template.URL("data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(data)), true //nolint:gosec // an image of a known type, in base64
}

// size is what the metadata of an output says of a picture's size.
func size(metadata json.RawMessage, mime string) (width, height int) {
	var m map[string]json.RawMessage
	if json.Unmarshal(metadata, &m) != nil {
		return 0, 0
	}
	var s struct {
		Width, Height float64
	}
	if json.Unmarshal(m[mime], &s) != nil || s.Width < 0 || s.Height < 0 || s.Width > 1e5 || s.Height > 1e5 {
		return 0, 0
	}
	return int(s.Width), int(s.Height)
}
