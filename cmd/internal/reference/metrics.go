package reference

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// described is a metric as its description prints itself: client_golang has no other way
// to read one that has no value yet.
var described = regexp.MustCompile(`^Desc\{fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*"), (?:unit: "[^"]*", )?constLabels: \{([^}]*)\}, variableLabels: \{([^}]*)\}\}$`)

// Metrics is the page of metrics, of which there are the descriptions of Prometheus's
// client as they print themselves. Those of Go and of the process, which every program with
// that client has, are named in one line.
func Metrics(descriptions []string) ([]byte, error) {
	var rows [][]string
	for _, d := range descriptions {
		m := described.FindStringSubmatch(d)
		if m == nil {
			return nil, fmt.Errorf("read the description of a metric: %s", d)
		}
		name, help := unquoted(m[1]), unquoted(m[2])
		if !strings.HasPrefix(name, "coppice_") {
			continue
		}
		var labels []string
		for _, l := range strings.FieldsFunc(m[3]+","+m[4], func(r rune) bool { return r == ',' }) {
			key, _, _ := strings.Cut(l, "=")
			labels = append(labels, code(key))
		}
		rows = append(rows, []string{code(name), strings.Join(labels, " "), plain(help)})
	}
	slices.SortFunc(rows, func(a, b []string) int { return cmp.Compare(a[0], b[0]) })
	p := newPage("Metrics", "What `GET /metrics` of a server shows, for Prometheus; `examples/monitoring` has a dashboard and alerts. The metrics of Go (`go_*`) and of the process (`process_*`) are there, too.\n")
	p.table([]string{"metric", "labels", "what it says"}, rows)
	return p.text(), nil
}

// unquoted is a text that %q made.
func unquoted(text string) string {
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(strings.Trim(text, `"`))
}
