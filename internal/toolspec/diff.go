package toolspec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Diff compares two JSON documents deeply and names where they differ, at most
// limit places. The order of keys does not count.
func Diff(disk, live []byte, limit int) ([]Problem, error) {
	a, err := value(disk)
	if err != nil {
		return nil, fmt.Errorf("compare schemas: on the disk: %w", err)
	}
	b, err := value(live)
	if err != nil {
		return nil, fmt.Errorf("compare schemas: of the process: %w", err)
	}
	d := differ{limit: limit, left: "tool.json", right: "the process"}
	d.walk("", a, b)
	return d.p.list, nil
}

// DiffOutputs compares what a run returned with what was expected of it.
// Numbers may differ by one part in a thousand million.
func DiffOutputs(want, got []byte, limit int) ([]Problem, error) {
	a, err := value(want)
	if err != nil {
		return nil, fmt.Errorf("compare outputs: expected: %w", err)
	}
	b, err := value(got)
	if err != nil {
		return nil, fmt.Errorf("compare outputs: returned: %w", err)
	}
	d := differ{limit: limit, left: "the reference", right: "the run", tolerance: 1e-9, subset: true}
	d.walk("", a, b)
	return d.p.list, nil
}

func value(data []byte) (any, error) {
	var v any
	err := decodeOne(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), &v)
	return v, err
}

type differ struct {
	p           problems
	limit       int
	left, right string
	tolerance   float64
	subset      bool // what only the right side has at the top is no difference
}

func (d *differ) add(path, format string, args ...any) {
	if len(d.p.list) < d.limit {
		d.p.add(path, format, args...)
	}
}

func (d *differ) walk(path string, a, b any) {
	if len(d.p.list) >= d.limit {
		return
	}
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			d.objects(path, a, b)
			return
		}
	case []any:
		if b, ok := b.([]any); ok {
			d.lists(path, a, b)
			return
		}
	case float64:
		if b, ok := b.(float64); ok && (a == b || math.Abs(a-b) <= d.tolerance*math.Max(math.Abs(a), math.Abs(b))) {
			return
		}
	default:
		if a == b && comparable0(b) {
			return
		}
	}
	d.add(path, "%s in %s, %s in %s", brief(a), d.left, brief(b), d.right)
}

// comparable0 reports whether == may be asked: not of lists and objects.
func comparable0(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	default:
		return true
	}
}

func (d *differ) objects(path string, a, b map[string]any) {
	at := func(key string) string {
		if path == "" {
			return key
		}
		return path + "." + key
	}
	for _, key := range sortedKeys(a) {
		if v, there := b[key]; there {
			d.walk(at(key), a[key], v)
		} else {
			d.add(at(key), "only in %s", d.left)
		}
	}
	for _, key := range sortedKeys(b) {
		if _, there := a[key]; !there && (!d.subset || path != "") {
			d.add(at(key), "only in %s", d.right)
		}
	}
}

func (d *differ) lists(path string, a, b []any) {
	if len(a) != len(b) {
		d.add(path, "%d elements in %s, %d in %s", len(a), d.left, len(b), d.right)
		return
	}
	for i := range a {
		d.walk(path+"["+strconv.Itoa(i)+"]", a[i], b[i])
	}
}

// brief shows a value in at most 60 bytes.
func brief(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return typeName(v)
	}
	if len(data) > 60 {
		return string(bytes.ToValidUTF8(data[:57], nil)) + "..."
	}
	return string(data)
}
