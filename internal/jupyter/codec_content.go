package jupyter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/coppice-run/coppice/internal/bytescan"
	"github.com/coppice-run/coppice/messages"
)

// errContent stands for a content that is not what its message type promises.
var errContent = errors.New("malformed content")

// wireError is an exception on the wire, in an error message and in a reply.
type wireError struct {
	Name      string   `json:"ename"`
	Value     string   `json:"evalue"`
	Traceback []string `json:"traceback"`
	// Place is what code of ours in the kernel adds to error messages.
	Place messages.ErrorPlace `json:"coppice_place"`
}

func (w wireError) details() messages.ErrorDetails {
	return messages.ErrorDetails{Name: w.Name, Message: w.Value, Traceback: w.Traceback, ErrorPlace: w.Place}
}

// wireDisplay is the content of the three messages that carry a bundle.
type wireDisplay struct {
	Data      messages.Bundle  `json:"data"`
	Metadata  messages.RawJSON `json:"metadata"`
	Transient struct {
		DisplayID string `json:"display_id"`
	} `json:"transient"`
	ExecutionCount int `json:"execution_count"`
}

// plainStream reads the content of a stream message in the form that nearly all of them
// have: a name and a text, in any order, and nothing else. It reports false for every other
// one, and is five times as fast as what reads those.
func plainStream(content []byte) (messages.Stream, bool) {
	var name, text []byte
	rest, ok := bytes.CutPrefix(content, []byte("{"))
	for ok {
		var key, value []byte
		if key, rest, ok = bytescan.Quoted(rest); !ok {
			break
		}
		if rest, ok = bytes.CutPrefix(bytes.TrimLeft(rest, " "), []byte(":")); !ok {
			break
		}
		if value, rest, ok = bytescan.Quoted(bytes.TrimLeft(rest, " ")); !ok {
			break
		}
		switch string(key) {
		case `"name"`:
			name = value
		case `"text"`:
			text = value
		default:
			return messages.Stream{}, false
		}
		if string(rest) == "}" {
			break
		}
		rest, ok = bytes.CutPrefix(rest, []byte(","))
		rest = bytes.TrimLeft(rest, " ")
	}
	if !ok || name == nil || text == nil {
		return messages.Stream{}, false
	}
	s := messages.Stream{Name: messages.StreamName(bytescan.Unquote(name)), Text: bytescan.Unquote(text)}
	return s, s.Name == messages.StdoutStream || s.Name == messages.StderrStream
}

// decodeOutput reads the content of one output message, or of what stands in its
// place.
func decodeOutput(kind recordKind, id string, content []byte) (messages.Event, error) {
	switch kind {
	case recordStream:
		if printed, ok := plainStream(content); ok {
			return printed, nil
		}
		var in struct {
			Name messages.StreamName `json:"name"`
			Text string              `json:"text"`
			// Late is what code of ours in the kernel sends around the text that was
			// printed since the last cell.
			Late *struct {
				Begin   bool  `json:"begin"`
				Dropped int64 `json:"dropped"`
			} `json:"coppice_late"`
		}
		if json.Unmarshal(content, &in) != nil || (in.Name != messages.StdoutStream && in.Name != messages.StderrStream) {
			return nil, contentError(typeStream)
		}
		switch late := in.Late; {
		case late != nil && late.Begin:
			return messages.LateBegins(late.Dropped), nil
		case late != nil:
			return messages.LateEnds(), nil
		}
		return messages.Stream{Name: in.Name, Text: in.Text}, nil
	case recordDisplay, recordUpdate:
		in, err := decodeDisplay(typeDisplayData, content)
		if err != nil {
			return nil, err
		}
		return messages.Display{
			Data: in.Data, Metadata: in.Metadata,
			DisplayID: in.Transient.DisplayID, Update: kind == recordUpdate,
		}, nil
	case recordResult:
		in, err := decodeDisplay(typeExecuteResult, content)
		if err != nil {
			return nil, err
		}
		return messages.ExecuteResult{Data: in.Data, Metadata: in.Metadata, ExecutionCount: in.ExecutionCount, DisplayID: in.Transient.DisplayID}, nil
	case recordClear:
		var in struct {
			Wait bool `json:"wait"`
		}
		if json.Unmarshal(content, &in) != nil {
			return nil, contentError(typeClearOutput)
		}
		return messages.ClearOutput{Wait: in.Wait}, nil
	case recordError:
		var in wireError
		if json.Unmarshal(content, &in) != nil {
			return nil, contentError(typeError)
		}
		return messages.Error{ErrorDetails: in.details()}, nil
	case recordInput:
		var in struct {
			Prompt   string `json:"prompt"`
			Password bool   `json:"password"`
		}
		if json.Unmarshal(content, &in) != nil {
			return nil, contentError(typeInputRequest)
		}
		return messages.InputRequest{ID: id, Prompt: in.Prompt, Password: in.Password}, nil
	case recordRateLimited:
		return messages.Notice{Code: NoticeRateLimited, Text: "the gateway's rate limit dropped output of this cell"}, nil
	case recordGap:
		return gapNotice(content)
	case recordComm:
		return decodeComm(content)
	}
	return nil, fmt.Errorf("%w: record kind %d", errContent, kind)
}

// decodeDisplay reads a content with a bundle.
func decodeDisplay(typ string, content []byte) (wireDisplay, error) {
	var in wireDisplay
	if json.Unmarshal(content, &in) != nil || in.Data == nil {
		return in, contentError(typ)
	}
	if string(in.Metadata) == "null" || string(in.Metadata) == "{}" {
		in.Metadata = nil
	}
	return in, nil
}

// contentError says which message type was malformed.
func contentError(typ string) error { return fmt.Errorf("%w: %s", errContent, typ) }

// decodeState reads the content of a status message; "" when it is malformed.
func decodeState(content []byte) string {
	var in struct {
		State string `json:"execution_state"`
	}
	if json.Unmarshal(content, &in) != nil {
		return ""
	}
	return in.State
}

// decodeRestart reads the content of a shutdown_reply.
func decodeRestart(content []byte) (restart bool) {
	var in struct {
		Restart bool `json:"restart"`
	}
	return json.Unmarshal(content, &in) == nil && in.Restart
}

// decodeStreamText reads the text of a stream message to stderr; "" for others.
func decodeStreamText(content []byte) string {
	var in struct {
		Name string `json:"name"`
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &in) != nil || in.Name != "stderr" {
		return ""
	}
	return in.Text
}

// wirePayload is one entry of a reply's payload list, of any kind.
type wirePayload struct {
	Source string `json:"source"`
	// Keep is true in an ask_exit that wants the kernel to go on.
	Keep bool `json:"keepkernel"`
	// Data is what a page payload shows.
	Data messages.Bundle `json:"data"`
}

// wireExpression is the value of one user expression.
type wireExpression struct {
	Status   string           `json:"status"`
	Data     messages.Bundle  `json:"data"`
	Metadata messages.RawJSON `json:"metadata"`
	wireError
}

// decodeReply reads the content of an execute_reply. pages are what the code
// wanted to show in a pager, as help with "?" does: it has no other output.
func decodeReply(content []byte) (r ExecuteReply, pages []messages.Display, err error) {
	var in struct {
		Status ReplyStatus `json:"status"`
		wireError
		ExecutionCount int `json:"execution_count"`
		// A list with one broken entry must not cost the whole reply, so both
		// are read on their own below.
		Payload     messages.RawJSON `json:"payload"`
		Expressions messages.RawJSON `json:"user_expressions"`
		// Stdin is what our own kernels say beside the protocol.
		Stdin bool `json:"coppice_stdin"`
	}
	if json.Unmarshal(content, &in) != nil {
		return r, nil, contentError(typeExecuteReply)
	}
	r.Status = in.Status
	r.ExecutionCount = in.ExecutionCount
	r.StdinRequested = in.Stdin
	switch in.Status {
	case ReplyOK, ReplyAborted:
	case ReplyError:
		e := in.details()
		r.Error = &e
	case "abort": // protocol before 5.1
		r.Status = ReplyAborted
	default:
		return r, nil, contentError(typeExecuteReply)
	}

	var payload []wirePayload
	if len(in.Payload) > 0 && json.Unmarshal(in.Payload, &payload) != nil {
		payload = nil
	}
	for _, p := range payload {
		switch {
		case p.Source == "ask_exit" && !p.Keep:
			r.Exited = true
		case p.Source == "page" && p.Data != nil:
			pages = append(pages, messages.Display{Data: p.Data})
		}
	}
	r.UserExpressions = decodeExpressions(in.Expressions)
	return r, pages, nil
}

// decodeExpressions reads the values of the user expressions; nil for none.
func decodeExpressions(raw messages.RawJSON) map[string]Expression {
	var in map[string]wireExpression
	if len(raw) == 0 || json.Unmarshal(raw, &in) != nil || len(in) == 0 {
		return nil
	}
	out := make(map[string]Expression, len(in))
	for name, e := range in {
		if e.Status == string(ReplyError) {
			raised := e.details()
			out[name] = Expression{Error: &raised}
			continue
		}
		out[name] = Expression{Data: e.Data, Metadata: e.Metadata}
	}
	return out
}

// KernelInfo is what a kernel says of itself.
type KernelInfo struct {
	// Protocol is the version of the messaging protocol that it speaks.
	Protocol string
	// Implementation is "ipython" with its version, Language "python" with its.
	Implementation, ImplementationVersion string
	Language, LanguageVersion             string
	// Features are the optional parts of the protocol that it supports.
	Features []string
}

// decodeInfo reads the content of a kernel_info_reply.
func decodeInfo(content []byte) (KernelInfo, error) {
	var in struct {
		Protocol              string `json:"protocol_version"`
		Implementation        string `json:"implementation"`
		ImplementationVersion string `json:"implementation_version"`
		Language              struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"language_info"`
		Features []string `json:"supported_features"`
	}
	if json.Unmarshal(content, &in) != nil {
		return KernelInfo{}, contentError(typeInfoReply)
	}
	return KernelInfo{
		Protocol:       in.Protocol,
		Implementation: in.Implementation, ImplementationVersion: in.ImplementationVersion,
		Language: in.Language.Name, LanguageVersion: in.Language.Version,
		Features: in.Features,
	}, nil
}
