package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/version"
)

// exposed are the metrics of a server, with their labels.
func exposed(t *testing.T) map[string][]string {
	t.Helper()
	m := newMetrics(version.Info{})
	descs := make(chan *prometheus.Desc, 1000)
	for _, c := range []prometheus.Collector{m.calls, m.tree, m.requests} {
		c.Describe(descs)
	}
	close(descs)
	all := map[string][]string{"up": nil, "coppice_build_info": nil, "process_resident_memory_bytes": nil}
	name, labels := regexp.MustCompile(`fqName: "(\w+)"`), regexp.MustCompile(`variableLabels: \{([^}]*)\}`)
	for d := range descs {
		var list []string
		if l := labels.FindStringSubmatch(d.String())[1]; l != "" {
			list = strings.Split(l, ",")
		}
		all[name.FindStringSubmatch(d.String())[1]] = list
	}
	return all
}

// holds looks at the metrics that a question asks for: the server shows them, with these
// labels.
func holds(t *testing.T, expr string, all map[string][]string) {
	t.Helper()
	// Prometheus adds the server's own labels.
	outside := map[string]bool{"instance": true, "job": true, "le": true}
	found := regexp.MustCompile(`\b((?:coppice|process)_\w+|up)\b(?:\{([^}]*)\})?`).FindAllStringSubmatch(expr, -1)
	require.NotEmpty(t, found, expr)
	for _, m := range found {
		name := m[1]
		for _, suffix := range []string{"_bucket", "_count", "_sum"} {
			if cut, ok := strings.CutSuffix(name, suffix); ok {
				name = cut
			}
		}
		labels, known := all[name]
		require.True(t, known, "%s is not shown: %s", name, expr)
		for _, l := range regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)"`).FindAllStringSubmatch(m[2], -1) {
			require.True(t, outside[l[1]] || slices.Contains(labels, l[1]), "%s has no label %s: %s", name, l[1], expr)
		}
	}
}

// The dashboard and the alerts in examples/monitoring ask for metrics that a server
// shows. make test-monitoring has promtool look at the alerts, too.
func TestTheDashboardAndTheAlertsAskForWhatIsShown(t *testing.T) {
	dir, all := filepath.Join("..", "..", "..", "examples", "monitoring"), exposed(t)
	data, err := os.ReadFile(filepath.Join(dir, "dashboard.json"))
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct {
			ID      int    `json:"id"`
			Type    string `json:"type"`
			Title   string `json:"title"`
			GridPos struct{ X, Y, W, H int }
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	require.NoError(t, json.Unmarshal(data, &dashboard))
	ids, taken, asked := map[int]bool{}, map[[2]int]string{}, 0
	for _, p := range dashboard.Panels {
		require.False(t, ids[p.ID], "two panels have the number %d", p.ID)
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			require.Less(t, x, 24, p.Title)
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				require.Empty(t, taken[[2]int{x, y}], "%s is on top of it", p.Title)
				taken[[2]int{x, y}] = p.Title
			}
		}
		for _, target := range p.Targets {
			holds(t, target.Expr, all)
			require.Contains(t, target.Expr, `instance=~"$instance"`, p.Title)
			asked++
		}
		require.Equal(t, p.Type == "row", len(p.Targets) == 0, p.Title)
	}
	require.Greater(t, asked, 20)

	rules, err := os.ReadFile(filepath.Join(dir, "alerts.yaml"))
	require.NoError(t, err)
	blocks := strings.Split(string(rules), "- alert: ")[1:]
	require.Greater(t, len(blocks), 8)
	names := map[string]bool{}
	for _, b := range blocks {
		name, rest, _ := strings.Cut(b, "\n")
		require.False(t, names[name], name)
		names[name] = true
		require.Regexp(t, `severity: (warning|critical)`, rest, name)
		require.Contains(t, rest, "summary: ", name)
		require.Contains(t, rest, "description: ", name)
		_, expr, ok := strings.Cut(rest, "expr: ")
		require.True(t, ok, name)
		expr, _, ok = strings.Cut(expr, "labels: {severity")
		require.True(t, ok, name)
		holds(t, expr, all)
	}
}
