package toolspec

import (
	"maps"
	"slices"
	"strings"
)

// The bounds of what a tool may ask for.
const (
	maxMemoryMB   = 65536
	maxOpenFiles  = 1 << 20
	maxSeconds    = 86400
	maxRetainRuns = 1_000_000
	maxInteger    = 1 << 53
)

var (
	option   = anyOption
	options  = listOf(option)
	column   = object(map[string]rule{"key": must(name), "label": may(text), "type": may(text)})
	natural  = integer(0, maxInteger)
	optText  = may(orNull(text))
	optBool  = may(boolean)
	optNum   = may(orNull(number))
	optNat   = may(orNull(natural))
	mapExtra = map[string]rule{"default_center": may(orNull(point)), "default_zoom": optNum}
)

// anyOption accepts a plain value, or a value with a label.
func anyOption(p *problems, path string, v any) {
	switch v := v.(type) {
	case string, float64, bool:
	case map[string]any:
		checkKeys(p, path, v, map[string]rule{"value": must(anything), "label": may(text)})
	default:
		p.add(path, "expected a value or an object with value and label, found %s", typeName(v))
	}
}

// inputKinds are the types of inputs, with the keys that each has beyond the
// common ones.
var inputKinds = map[string]map[string]rule{
	"text":           {"placeholder": optText, "max_length": optNat},
	"textarea":       {"placeholder": optText, "max_length": optNat, "monospace": optBool},
	"number":         {"min": optNum, "max": optNum, "step": optNum, "unit": optText},
	"slider":         {"min": must(number), "max": must(number), "step": optNum, "range": optBool, "unit": optText},
	"select":         {"options": must(options), "searchable": optBool},
	"multiselect":    {"options": must(options), "searchable": optBool},
	"checkbox":       {},
	"toggle":         {},
	"radio":          {"options": must(options)},
	"date":           {"min": optText, "max": optText},
	"time":           {},
	"datetime":       {},
	"date_range":     {},
	"file":           {"accept": may(anything), "max_size_mb": optNum, "multiple": optBool},
	"image":          {"max_size_mb": optNum, "multiple": optBool},
	"audio":          {"max_size_mb": optNum},
	"colour":         {},
	"json":           {"schema": may(orNull(object0))},
	"code":           {"language": optText},
	"markdown":       {},
	"tags":           {"suggestions": may(listOf(text))},
	"autocomplete":   {"endpoint": must(name)},
	"table":          {"columns": may(listOf(column)), "min_rows": optNat, "max_rows": optNat},
	"map_point":      mapExtra,
	"map_bbox":       mapExtra,
	"map_polygon":    mapExtra,
	"map_multipoint": mapExtra,
	"hidden":         {},
}

// outputKinds are the types of outputs.
var outputKinds = map[string]map[string]rule{
	"text": {}, "markdown": {},
	"number":     {"format": may(orNull(oneOf("currency", "percent", "scientific", "decimal"))), "precision": may(orNull(integer(0, 20)))},
	"boolean":    {"true_label": optText, "false_label": optText},
	"table":      {"columns": may(listOf(column)), "downloadable": optBool},
	"kv":         {},
	"chart_line": {}, "chart_bar": {}, "chart_scatter": {}, "chart_area": {}, "chart_pie": {}, "chart_histogram": {},
	"chart_boxplot": {}, "chart_heatmap": {}, "chart_candlestick": {}, "chart_radar": {}, "chart_sankey": {},
	"chart_treemap": {}, "chart_network": {},
	"map_points": {}, "map_heatmap": {}, "map_choropleth": {}, "map_polygons": {}, "map_route": {},
	"image": {}, "image_grid": {}, "image_compare": {}, "audio": {}, "video": {}, "latex": {},
	"code": {"language": optText},
	"diff": {}, "tree": {}, "timeline": {}, "gantt": {}, "progress": {}, "log": {}, "stream_text": {}, "file": {},
}

func object0(p *problems, path string, v any) {
	if _, ok := v.(map[string]any); !ok {
		p.add(path, "expected an object, found %s", typeName(v))
	}
}

var inputCommon = map[string]rule{
	"key": must(name), "label": must(text), "type": must(text), "description": optText, "default": may(anything),
	"required": optBool, "group": optText,
	"show_if": may(orNull(object(map[string]rule{"key": must(name), "equals": must(anything)}))),
}

var outputCommon = map[string]rule{
	"key": must(name), "label": must(text), "type": must(text), "description": optText, "caption": optText, "unit": optText,
	"streaming": optBool, "layout": may(orNull(oneOf("panel", "tab", "inline"))),
	"default_export_format": optText, "supported_export_formats": may(orNull(listOf(text))),
}

// ofKind checks an object whose "type" says which further keys it has.
func ofKind(what string, common map[string]rule, kinds map[string]map[string]rule) check {
	known := strings.Join(slices.Sorted(maps.Keys(kinds)), ", ")
	rules := make(map[string]map[string]rule, len(kinds))
	for kind, extra := range kinds {
		rules[kind] = maps.Clone(common)
		maps.Copy(rules[kind], extra)
	}
	return func(p *problems, path string, v any) {
		m, ok := v.(map[string]any)
		if !ok {
			p.add(path, "expected an object, found %s", typeName(v))
			return
		}
		kind, _ := m["type"].(string)
		if keys, ok := rules[kind]; ok {
			checkKeys(p, path, m, keys)
			return
		}
		if _, there := m["type"]; there {
			p.add(path+".type", "%s is not a type of %s; the types are %s", shown(m["type"]), what, known)
		} else {
			p.add(path+".type", "the key is missing; the types of %s are %s", what, known)
		}
	}
}

var document = object(map[string]rule{
	"$schema": may(text),
	"id":      must(name), "name": must(name),
	"description": optText, "version": optText, "category": optText, "icon": optText, "package": optText, "workspace_default": optText,
	"layout":            may(oneOf("form", "chat", "split")),
	"warm_keep_seconds": may(integer(0, maxSeconds)), "max_memory_mb": may(integer(0, maxMemoryMB)), "max_open_files": may(integer(0, maxOpenFiles)), "max_runtime_seconds": may(integer(1, maxSeconds)),
	"secrets":        may(listOf(object(map[string]rule{"key": must(name), "description": optText, "required": optBool}))),
	"schema_version": may(text), "concurrent": optBool, "validator_timeout_override": may(orNull(integer(1, maxSeconds))),
	"requires_data_persistence": optBool, "provides_file_endpoint": optBool, "provides_autocomplete": optBool, "archived": optBool,
	"input_transport": may(oneOf("json", "multipart")), "retain_runs": may(integer(0, maxRetainRuns)), "tags": may(listOf(text)),
	"pinned_warm": optBool, "entrypoint": may(name),
	"inputs":  must(listOf(ofKind("input", inputCommon, inputKinds))),
	"outputs": must(listOf(ofKind("output", outputCommon, outputKinds))),
})
