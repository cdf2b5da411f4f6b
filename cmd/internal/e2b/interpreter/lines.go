package interpreter

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/coppice-run/coppice/messages"
)

// The lines of a stream, as clients read them.
type (
	plainLine struct {
		Type string `json:"type"`
	}
	textLine struct {
		Type string `json:"type"`
		Text string `json:"text"`
		// Timestamp is in nanoseconds since 1970.
		Timestamp int64 `json:"timestamp"`
	}
	errorLine struct {
		Type      string `json:"type"`
		Name      string `json:"name"`
		Value     string `json:"value"`
		Traceback string `json:"traceback"`
	}
	countLine struct {
		Type  string `json:"type"`
		Count int    `json:"execution_count"`
	}
)

func failure(name, value string) errorLine { return errorLine{"error", name, value, ""} }

// linesOf are the lines for an event.
func linesOf(e messages.Event) []any {
	switch e := e.(type) {
	case messages.Stream:
		return []any{textLine{string(e.Name), e.Text, time.Now().UnixNano()}}
	case messages.Notice:
		if e.Code == messages.LateOutput {
			return nil // what it is about says enough
		}
		return []any{textLine{"stderr", e.Text + "\n", time.Now().UnixNano()}}
	case messages.Display:
		if e.Update {
			return nil // clients have no word for it
		}
		return []any{result(e.Data, false)}
	case messages.ExecuteResult:
		return []any{result(e.Data, true)}
	case messages.Error:
		return []any{errorLine{"error", e.Name, e.Message, strings.Join(e.Traceback, "\n")}}
	case messages.Final:
		return endOf(e.Result)
	}
	return nil
}

// endOf are the last lines but one: what is not as it was since the context was kept on
// disk, how the code ended, if no error has said it, and its number.
func endOf(r messages.Result) []any {
	var list []any
	if c := r.Restored; c != nil && len(c.Lost)+len(c.Changed)+len(c.Notes) > 0 {
		list = append(list, textLine{"stderr", c.String() + "\n", time.Now().UnixNano()}) // else it is as clients expect
	}
	switch r.Outcome {
	case messages.OutcomeOK, messages.OutcomeError:
	case messages.OutcomeCancelled:
		list = append(list, failure("KeyboardInterrupt", "the execution was interrupted"))
	case messages.OutcomeTimeout:
		list = append(list, failure("TimeoutError", r.Text))
	case messages.OutcomeLost, messages.OutcomeNotStarted:
		list = append(list, failure("UnexpectedEndOfExecution", r.Reason))
	}
	for _, c := range r.Cells {
		if c.ExecutionCount > 0 {
			list = append(list, countLine{"number_of_executions", c.ExecutionCount})
		}
	}
	return list
}

// names are what clients call the forms of a result.
var names = map[string]string{
	messages.MIMEPlain: "text", messages.MIMEHTML: "html", messages.MIMEMarkdown: "markdown", messages.MIMESVG: "svg", messages.MIMEPNG: "png",
	messages.MIMEJPEG: "jpeg", "application/pdf": "pdf", messages.MIMELaTeX: "latex", messages.MIMEJSON: "json", "application/javascript": "javascript",
	messages.MIMETable: "data", messages.MIMEChart: "chart",
}

// result is the line for a MIME bundle.
func result(b messages.Bundle, main bool) map[string]any {
	line, extra := map[string]any{"type": "result", "is_main_result": main}, map[string]json.RawMessage{}
	for mime, data := range b {
		name, known := names[mime]
		if !known {
			extra[mime] = data
			continue
		}
		line[name] = data
		if text, ok := b.Text(mime); ok && name != "json" {
			line[name] = text
		}
	}
	if text, ok := line["text"].(string); ok {
		line["text"] = unquoted(text)
	}
	line["extra"] = extra
	return line
}

// unquoted is a text that may be the repr of a string, as clients show it: without its
// quotes.
func unquoted(text string) string {
	if len(text) >= 2 && (text[0] == '\'' || text[0] == '"') && text[len(text)-1] == text[0] {
		return text[1 : len(text)-1]
	}
	return text
}
