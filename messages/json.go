package messages

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// AppendEvent appends the JSON form of e to buf: one object whose members
// "seq", "cell" and "type" come first and whose other members are the event's
// own; those of a Final are its result's. It is the form of `coppice run
// --events`, of journals and of the HTTP surface.
func AppendEvent(buf []byte, e Event) ([]byte, error) {
	if f, ok := e.(Final); ok {
		return appendFinal(buf, f)
	}
	return appendTyped(buf, e.Type(), e.Pos(), e)
}

func appendFinal(buf []byte, f Final) ([]byte, error) {
	body, err := marshal(f.Result)
	if err != nil {
		return buf, fmt.Errorf("encode %s: %w", f.Type(), err)
	}
	head, err := marshal(f.Position)
	if err != nil {
		return buf, fmt.Errorf("encode position: %w", err)
	}
	buf = append(buf, head[:len(head)-1]...)
	buf = append(buf, `,"type":"final",`...)
	return append(buf, body[1:]...), nil
}

// AppendLifecycle appends the JSON form of e to buf: one object whose member
// "type" comes first.
func AppendLifecycle(buf []byte, e Lifecycle) ([]byte, error) {
	body, err := marshal(e)
	if err != nil {
		return buf, fmt.Errorf("encode %s: %w", e.Type(), err)
	}
	buf = append(buf, `{"type":"`...)
	buf = append(buf, e.Type()...)
	buf = append(buf, '"', ',')
	return append(buf, body[1:]...), nil
}

// appendTyped writes the position and the type first, then the members of v
// without the position, which encoding/json puts first because it is embedded
// first.
func appendTyped(buf []byte, typ string, p Position, v any) ([]byte, error) {
	body, err := marshal(v)
	if err != nil {
		return buf, fmt.Errorf("encode %s: %w", typ, err)
	}
	head, err := marshal(p)
	if err != nil {
		return buf, fmt.Errorf("encode position: %w", err)
	}
	buf = append(buf, head[:len(head)-1]...)
	buf = append(buf, `,"type":"`...)
	buf = append(buf, typ...)
	buf = append(buf, '"')
	rest := bytes.TrimPrefix(body, head[:len(head)-1])
	return append(buf, rest...), nil
}

// marshal is json.Marshal without the escaping of <, > and &, which only HTML
// needs.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// ParseEvent is the inverse of [AppendEvent].
func ParseEvent(data []byte) (Event, error) {
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("parse event: %w", err)
	}
	switch head.Type {
	case "status":
		return parse[Status](data)
	case "stdout", "stderr":
		e, err := parse[Stream](data)
		if err != nil {
			return nil, err
		}
		s := e.(Stream)
		s.Name = StreamName(head.Type)
		return s, nil
	case "display":
		return parse[Display](data)
	case "result":
		return parse[ExecuteResult](data)
	case "clear":
		return parse[ClearOutput](data)
	case "error":
		return parse[Error](data)
	case "input_request":
		return parse[InputRequest](data)
	case "comm":
		return parse[Comm](data)
	case "notice":
		return parse[Notice](data)
	case "host_call":
		return parse[HostCallStep](data)
	case "host_event":
		return parse[HostEvent](data)
	case "final":
		var f Final
		err := json.Unmarshal(data, &f.Position)
		if err == nil {
			err = json.Unmarshal(data, &f.Result)
		}
		if err != nil {
			return nil, fmt.Errorf("parse event final: %w", err)
		}
		return f, nil
	default:
		return nil, fmt.Errorf("parse event: unknown type %q", head.Type)
	}
}

func parse[T Event](data []byte) (Event, error) {
	var e T
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, fmt.Errorf("parse event %s: %w", e.Type(), err)
	}
	return e, nil
}

// ParseLifecycle is the inverse of [AppendLifecycle].
func ParseLifecycle(data []byte) (Lifecycle, error) {
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("parse lifecycle event: %w", err)
	}
	var err error
	switch head.Type {
	case "child_changed":
		var e ChildChanged
		if err = json.Unmarshal(data, &e); err == nil {
			return e, nil
		}
	case "decided":
		var e Decided
		if err = json.Unmarshal(data, &e); err == nil {
			return e, nil
		}
	case "dropped":
		var e Dropped
		if err = json.Unmarshal(data, &e); err == nil {
			return e, nil
		}
	default:
		return nil, fmt.Errorf("parse lifecycle event: unknown type %q", head.Type)
	}
	return nil, fmt.Errorf("parse lifecycle event %s: %w", head.Type, err)
}

// resultJSON has Result's fields without its methods.
type resultJSON Result

// MarshalJSON writes the result as the command line promises it: the lists are
// [] when they are empty, never null.
func (r Result) MarshalJSON() ([]byte, error) {
	j := resultJSON(r)
	if j.Cells == nil {
		j.Cells = []CellResult{}
	}
	if j.JSON == nil {
		j.JSON = []RawJSON{}
	}
	if j.Images == nil {
		j.Images = []Image{}
	}
	return marshal(j)
}

type cellResultJSON CellResult

// MarshalJSON writes the cell with its events as [] when there are none.
func (c CellResult) MarshalJSON() ([]byte, error) {
	j := cellResultJSON(c)
	if j.Events == nil {
		j.Events = []RawJSON{}
	}
	return marshal(j)
}
