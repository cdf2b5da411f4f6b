package toolproc

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/coppice-run/coppice/messages"
)

// explain says in words why a run was refused or failed.
func (p *Process) explain(c *call, status int, body []byte) *messages.ToolError {
	if status >= http.StatusInternalServerError {
		p.settleStderr(c)
	}
	e := &messages.ToolError{Kind: messages.ToolErrorTool, Status: status, Stderr: p.since(c)}
	detail := p.env.Mask(detailOf(body))
	switch {
	case status == http.StatusUnprocessableEntity || status == http.StatusBadRequest:
		e.Kind = messages.ToolErrorInput
		e.Message = fmt.Sprintf("the tool refused the inputs (status %d): %s", status, detail)
		e.Hint = "compare the inputs with those that tool.json declares"
	case status >= 500:
		why := failedWith(detail, e.Stderr)
		if why.memory() {
			return p.memoryError(e)
		}
		e.Message = fmt.Sprintf("the tool failed (status %d): %s", status, detail)
		e.Hint = "view stderr"
		if strings.TrimSpace(e.Stderr) == "" {
			e.Hint = "the tool wrote nothing to standard error: it caught its own exception; let it raise, or print it there"
		}
		if why.thread() {
			return p.threadError(e)
		}
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		e.Message = fmt.Sprintf("the tool has no POST /run (status %d): %s", status, detail)
	default:
		e.Message = fmt.Sprintf("the tool answered with status %d: %s", status, detail)
	}
	return e
}

// maxDetail bounds what of an answer is quoted, in runes.
const maxDetail = 500

// detailOf takes the words for people out of an error's body: FastAPI puts them
// into "detail", which is a text, or a list of what is wrong with which input.
func detailOf(body []byte) string {
	var wrapped struct {
		Detail json.RawMessage `json:"detail"`
		Error  json.RawMessage `json:"error"`
	}
	text := strings.TrimSpace(strings.ToValidUTF8(string(body), "\ufffd"))
	if json.Unmarshal(body, &wrapped) == nil {
		for _, raw := range []json.RawMessage{wrapped.Detail, wrapped.Error} {
			if len(raw) > 0 {
				text = words(raw)
				break
			}
		}
	}
	if text == "" {
		return "it said nothing"
	}
	if r := []rune(text); len(r) > maxDetail {
		text = string(r[:maxDetail]) + "..."
	}
	return text
}

func words(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var list []struct {
		Loc []any  `json:"loc"`
		Msg string `json:"msg"`
	}
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 && list[0].Msg != "" {
		lines := make([]string, 0, len(list))
		for _, item := range list {
			lines = append(lines, place(item.Loc)+item.Msg)
		}
		return strings.Join(lines, "; ")
	}
	return string(raw)
}

// place is the path of an input, without the parts that a person does not know
// of.
func place(loc []any) string {
	var parts []string
	for i, l := range loc {
		if s, ok := l.(string); ok && (i == 0 && s == "body" || i == 1 && s == "inputs") {
			continue
		}
		parts = append(parts, fmt.Sprint(l))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ".") + ": "
}
