package toolspec

import "encoding/json"

// InputSchema describes the inputs as a JSON Schema (draft 2020-12), for
// whoever offers the tool to a model.
func (t *Tool) InputSchema() json.RawMessage {
	properties := map[string]any{}
	required := []string{}
	for i := range t.Inputs {
		in := &t.Inputs[i]
		if in.Type == "hidden" {
			continue
		}
		properties[in.Key] = in.schema()
		if in.MustBeGiven() {
			required = append(required, in.Key)
		}
	}
	data, err := json.Marshal(map[string]any{
		"type": "object", "properties": properties, "required": required, "additionalProperties": false,
	})
	if err != nil {
		return json.RawMessage(`{"type":"object"}`) // of values that were decoded from JSON there is no error
	}
	return data
}

func (in *Input) schema() map[string]any {
	s := in.typeSchema()
	if text := in.Label; text != "" {
		if in.Description != "" {
			text += ": " + in.Description
		}
		s["description"] = text
	}
	if len(in.Default) > 0 && string(in.Default) != "null" {
		s["default"] = in.Default
	}
	return s
}

func (in *Input) typeSchema() map[string]any {
	switch in.Type {
	case "number", "slider":
		n := map[string]any{"type": "number"}
		if in.Min != nil {
			n["minimum"] = *in.Min
		}
		if in.Max != nil {
			n["maximum"] = *in.Max
		}
		if in.Range {
			return map[string]any{"type": "array", "items": n, "minItems": 2, "maxItems": 2}
		}
		return n
	case "select", "radio":
		return map[string]any{"enum": in.values()}
	case "multiselect":
		return map[string]any{"type": "array", "items": map[string]any{"enum": in.values()}}
	case "checkbox", "toggle":
		return map[string]any{"type": "boolean"}
	case "tags":
		return map[string]any{"type": "array", "items": map[string]any{"type": "string"}}
	case "table":
		return map[string]any{"type": "array", "items": map[string]any{"type": "object"}}
	case "date":
		return map[string]any{"type": "string", "format": "date"}
	case "time", "datetime", "text", "textarea", "code", "markdown", "colour", "autocomplete", "image":
		s := map[string]any{"type": "string"}
		if in.MaxLength != nil {
			s["maxLength"] = *in.MaxLength
		}
		return s
	case "file", "audio":
		file := map[string]any{
			"type": "object", "required": []string{"filename", "data"}, "additionalProperties": false,
			"properties": map[string]any{
				"filename": map[string]any{"type": "string"}, "data": map[string]any{"type": "string", "contentEncoding": "base64"},
				"content_type": map[string]any{"type": "string"},
			},
		}
		if in.Multiple {
			return map[string]any{"type": "array", "items": file}
		}
		return file
	case "json":
		if len(in.Schema) > 0 && string(in.Schema) != "null" {
			var s map[string]any
			if json.Unmarshal(in.Schema, &s) == nil {
				return s
			}
		}
		return map[string]any{}
	case "date_range", "map_point", "map_bbox":
		return map[string]any{"type": "object"}
	case "map_polygon", "map_multipoint":
		return map[string]any{"type": "array"}
	default:
		return map[string]any{}
	}
}

func (in *Input) values() []any {
	values := make([]any, 0, len(in.Options))
	for _, o := range in.Options {
		values = append(values, o.Value)
	}
	return values
}
