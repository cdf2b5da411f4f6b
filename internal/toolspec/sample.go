package toolspec

import "encoding/json"

// samplePNG is one transparent pixel.
const samplePNG = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

// Sample returns inputs for a first run: each input's default, or else a plain
// value of its type. A tool with the chat layout gets a message too.
func (t *Tool) Sample() map[string]any {
	inputs := make(map[string]any, len(t.Inputs))
	for i := range t.Inputs {
		inputs[t.Inputs[i].Key] = t.Inputs[i].sample()
	}
	if t.Layout == "chat" {
		if _, set := inputs["messages"]; !set {
			inputs["messages"] = []any{map[string]any{"role": "user", "content": "Hello"}}
		}
		if _, set := inputs["history"]; !set {
			inputs["history"] = []any{}
		}
	}
	return inputs
}

func (in *Input) sample() any {
	var v any
	if len(in.Default) > 0 && json.Unmarshal(in.Default, &v) == nil && v != nil {
		return v
	}
	switch in.Type {
	case "number", "slider":
		mid := in.middle()
		if in.Range {
			return []any{mid, mid}
		}
		return mid
	case "select", "radio":
		if len(in.Options) > 0 {
			return in.Options[0].Value
		}
		return ""
	case "multiselect":
		if len(in.Options) > 0 {
			return []any{in.Options[0].Value}
		}
		return []any{}
	case "checkbox", "toggle":
		return false
	case "date":
		return "2026-01-15"
	case "time":
		return "12:00"
	case "datetime":
		return "2026-01-15T12:00:00"
	case "date_range":
		return map[string]any{"start": "2026-01-01", "end": "2026-01-31"}
	case "image":
		return samplePNG
	case "file", "audio":
		return map[string]any{"filename": "sample.txt", "data": "c2FtcGxl"}
	case "colour":
		return "#336699"
	case "json":
		return map[string]any{}
	case "tags", "table", "map_polygon", "map_multipoint":
		return []any{}
	case "map_point":
		return map[string]any{"lat": 0, "lng": 0}
	case "map_bbox":
		return map[string]any{"north": 1, "south": 0, "east": 1, "west": 0}
	default:
		return ""
	}
}

// middle is a number between min and max, on a step.
func (in *Input) middle() any {
	low, high := 0.0, 0.0
	switch {
	case in.Min != nil && in.Max != nil:
		low, high = *in.Min, *in.Max
	case in.Min != nil:
		low, high = *in.Min, *in.Min
	case in.Max != nil:
		low, high = *in.Max, *in.Max
	}
	mid := (low + high) / 2
	if in.Step != nil && *in.Step > 0 {
		mid = low + *in.Step*float64(int((mid-low)/(*in.Step)))
	}
	if mid == float64(int64(mid)) {
		return int64(mid) // 3, not 3.0: a tool may want a whole number
	}
	return mid
}
