package displays_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
)

// drawn are figures and tables, with a part of the data that they have.
var drawn = map[string]struct {
	code, mime, want string
}{
	"line": {
		"plt.plot([1, 2], [3, 4.5], label='l'); plt.plot([1, 2], [0, 1]); plt.axhline(2); plt.title('T'); plt.xlabel('t (s)'); plt.ylabel('x [m]')", messages.MIMEChart,
		`{"type":"line","title":"T","x_label":"t (s)","x_unit":"s","y_label":"x [m]","y_unit":"m","x_scale":"linear","y_scale":"linear","elements":[{"label":"l","points":[[1,3],[2,4.5]]},{"label":"Line 1","points":[[1,0],[2,1]]}]}`,
	},
	"log":   {"plt.plot([1, 10, 100], [1, 2, 3]); plt.xscale('log')", messages.MIMEChart, `{"type":"line","x_scale":"log","y_scale":"linear","title":null,"x_label":null,"x_unit":null}`},
	"dates": {"import datetime as d; plt.plot([d.datetime(2020, 1, 2), d.datetime(2020, 1, 3)], [1, 2])", messages.MIMEChart, `{"x_scale":"datetime","elements":[{"label":"Line 0","points":[["2020-01-02T00:00:00",1],["2020-01-03T00:00:00",2]]}]}`},
	"gap":   {"plt.plot([1, 2], [float('nan'), 4])", messages.MIMEChart, `{"elements":[{"label":"Line 0","points":[[1,null],[2,4]]}]}`},
	"scatter": {
		"plt.scatter([1, 2], [3, 4], label='s'); plt.grid(True)", messages.MIMEChart,
		`{"type":"scatter","elements":[{"label":"s","points":[[1,3],[2,4]]}]}`,
	},
	"bar": {
		"plt.bar(['a', 'b'], [3, 4.1], label='g'); plt.ylabel('n')", messages.MIMEChart,
		`{"type":"bar","y_label":"n","elements":[{"label":"a","group":"g","value":3},{"label":"b","group":"g","value":4.1}]}`,
	},
	"bars of one height, on their side": {
		"plt.barh(['a', 'b'], [3, 3]); plt.xlabel('n')", messages.MIMEChart,
		`{"type":"bar","y_label":"n","x_label":null,"elements":[{"label":"a","group":"Group 0","value":3},{"label":"b","group":"Group 0","value":3}]}`,
	},
	"bars in groups": {
		"f, ax = plt.subplots(); ax.bar([0, 1], [1, 2], .4, label='x'); ax.bar([.4, 1.4], [3, 4], .4, label='y'); ax.set_xticks([.2, 1.2], ['a', 'b'])", messages.MIMEChart,
		`{"type":"bar","elements":[{"label":"a","group":"x","value":1},{"label":"b","group":"x","value":2},{"label":"a","group":"y","value":3},{"label":"b","group":"y","value":4}]}`,
	},
	"pie": {
		"plt.pie([1, 3], labels=['a', 'b'], radius=2)", messages.MIMEChart,
		`{"type":"pie","elements":[{"label":"a","angle":90,"radius":2},{"label":"b","angle":270,"radius":2}]}`,
	},
	"box": {
		"f, ax = plt.subplots(); ax.boxplot([[1, 2, 3, 4, 20], [2, 2, 3, 4, 4]]); ax.set_xticks([1, 2], ['a', 'b'])", messages.MIMEChart,
		`{"type":"box_and_whisker","elements":[{"label":"a","min":1,"first_quartile":2,"median":3,"third_quartile":4,"max":4,"outliers":[20]},{"label":"b","min":2,"first_quartile":2,"median":3,"third_quartile":4,"max":4,"outliers":[]}]}`,
	},
	"boxes that are filled, on their side": {
		"f, ax = plt.subplots(); ax.boxplot([[85, 90, 78, 92, 88], [95, 89, 76, 91, 84, 87]], patch_artist=True, vert=False); ax.set_yticks([1, 2], ['a', 'b'])", messages.MIMEChart,
		`{"type":"box_and_whisker","elements":[{"label":"a","min":78,"first_quartile":85,"median":88,"third_quartile":90,"max":92,"outliers":[]},{"label":"b","min":84,"first_quartile":84.75,"median":88,"third_quartile":90.5,"max":95,"outliers":[76]}]}`,
	},
	"several": {
		"f, (x, y) = plt.subplots(1, 2); f.suptitle('S'); x.plot([1, 2]); x.set_title('X'); y.scatter([1], [2])", messages.MIMEChart,
		`{"type":"superchart","title":"S"}`,
	},
	"another kind": {"plt.imshow([[1, 2], [3, 4]])", messages.MIMEChart, `{"type":"unknown","elements":[]}`},
	"nothing":      {"plt.figure()", messages.MIMEChart, ``},
	"table": {
		"pd.DataFrame({'a': [1, 2], 'b': ['x', None], 't': pd.to_datetime(['2020-01-02', None]), 3: [float('nan'), float('inf')]})", messages.MIMETable,
		`{"a":[1,2],"b":["x",null],"t":["2020-01-02T00:00:00",null],"3":[null,null]}`,
	},
	"a table that is too large": {"pd.DataFrame({'a': range(200_001)})", messages.MIMETable, ``},
}

// charts asks a session for the data of what it draws, and then no more.
func charts(t *testing.T, s *coppice.Session) {
	shown := func(code string, env map[string]string) messages.Bundle {
		t.Helper()
		var last messages.Bundle
		for e, err := range s.Stream(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: code}}, Env: env}) {
			require.NoError(t, err)
			switch e := e.(type) {
			case messages.Display:
				last = e.Data
			case messages.ExecuteResult:
				last = e.Data
			case messages.Final:
				require.Equal(t, messages.OutcomeOK, e.Result.Outcome, e.Result.Text)
			}
		}
		return last
	}
	shown("import pandas as pd\nimport matplotlib.pyplot as plt", nil)
	for name, c := range drawn {
		code := c.code
		if c.mime == messages.MIMEChart {
			code = "plt.close('all')\n" + c.code + "\nplt.show()"
		}
		b := shown(code, map[string]string{"COPPICE_CHARTS": "1"})
		require.NotEmpty(t, b, name)
		if c.want == "" {
			require.NotContains(t, b, c.mime, name)
			continue
		}
		var want, got map[string]any
		require.NoError(t, json.Unmarshal([]byte(c.want), &want))
		require.NoError(t, json.Unmarshal(b[c.mime], &got), name)
		for key, value := range want {
			require.Equal(t, value, got[key], "%s: %s", name, key)
		}
	}
	b := shown("plt.close('all')\nplt.plot([1, 2])\nplt.show()", map[string]string{"COPPICE_CHARTS": "0"})
	require.NotContains(t, b, messages.MIMEChart)
	require.Contains(t, b, messages.MIMEPNG)
}
