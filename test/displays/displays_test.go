//go:build linux

// Package displays_test shows what libraries that people use display, on both
// backends, and keeps the texts as golden files.
package displays_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/test/starve"
	"github.com/coppice-run/coppice/test/testpython"
)

var update = flag.Bool("update", false, "write the golden files anew from the runner backend")

// noting notes what was put off.
type noting struct{ m *testing.M }

func (n noting) Run() int {
	defer starve.Note()
	return n.m.Run()
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(noting{m}) }

// displayCase is code that shows something. Its text is in testdata/<name>.golden.
type displayCase struct {
	code  string
	check func(*testing.T, messages.Result)
}

// A figure is shown where show is called in a Jupyter kernel, and at the end of the
// cell in a forked interpreter, so the case shows it last. pandas asks an
// interactive shell how many columns it may show; the case says it.
var displays = map[string]displayCase{
	"dataframe":        {code: "import pandas as pd\npd.DataFrame({'city': ['Oslo', 'São Paulo', '東京'], 'pop|m': [0.7, 12.3, 14.0]}, index=[1, 2, 3])"},
	"dataframe_long":   {code: "import pandas as pd\npd.options.display.max_columns = 20\npd.DataFrame({f'column_{i}': range(100) for i in range(30)})"},
	"dataframe_levels": {code: "import pandas as pd\npd.DataFrame({('a', 'x'): [1], ('a', 'y'): [2], ('b', 'x'): [3]})"},
	"series":           {code: "import pandas as pd\npd.Series([1, 2], name='n')"},
	"figure": {code: "import matplotlib.pyplot as plt\nplt.figure(figsize=(4, 3), dpi=100)\nplt.plot([1, 4, 9]); plt.title('squares')\nprint('before')\nplt.show()", check: func(t *testing.T, r messages.Result) {
		require.Len(t, r.Images, 1)
		require.Equal(t, messages.MIMEPNG, r.Images[0].MIME)
		require.InDelta(t, 400, r.Images[0].Width, 60)
		require.InDelta(t, 300, r.Images[0].Height, 60)
	}},
	"figure_large": {code: "import matplotlib.pyplot as plt\nfig = plt.figure(figsize=(30, 10), dpi=100)\nplt.plot([1, 2]);", check: func(t *testing.T, r messages.Result) {
		require.Len(t, r.Images, 1)
		require.Equal(t, 1568, r.Images[0].Width)
		require.Greater(t, r.Images[0].OriginalWidth, 2000)
	}},
	"json": {code: "class Tree:\n    def _repr_json_(self): return {'a': [1, {'deep': [True, None]}], 'b': 'text'}\n    def __repr__(self): return 'Tree(2)'\ndisplay(Tree())", check: func(t *testing.T, r messages.Result) {
		require.Len(t, r.JSON, 1)
		require.JSONEq(t, `{"a":[1,{"deep":[true,null]}],"b":"text"}`, string(r.JSON[0]))
	}},
	"markdown":   {code: "class M:\n    def _repr_markdown_(self): return '# Title\\n\\n- **one**\\n- two'\nM()", check: func(t *testing.T, r messages.Result) { require.True(t, r.Cells[0].HasMarkdown) }},
	"html_table": {code: "display({'text/html': '<h2>Sales</h2><table><tr><th>q</th><th>sum</th></tr><tr><td>1</td><td><b>10</b></td></tr></table><script>x()</script>'}, raw=True)"},
	"latex":      {code: "display({'text/latex': r'$\\frac{1}{2}$'}, raw=True)"},
	"svg": {code: "class D:\n    def _repr_svg_(self): return '<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"30\" height=\"20\"><rect width=\"9\"/></svg>'\n    def __repr__(self): return 'a drawing'\nD()", check: func(t *testing.T, r messages.Result) {
		require.Empty(t, r.Images)
	}},
	"tqdm":           {code: "import sys, time\nfrom tqdm import tqdm\nfor _ in tqdm(range(20), desc='work', mininterval=0, miniters=1, ncols=40, bar_format='{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt}', file=sys.stdout): pass\nprint('done')"},
	"clear_output":   {code: "try:\n    clear_output\nexcept NameError:\n    from IPython.display import clear_output\nprint('before')\nfor i in range(20):\n    clear_output(wait=True)\n    print('frame', i)\nprint('end')"},
	"update_display": {code: "class P:\n    def __init__(self, n): self.n = n\n    def __repr__(self): return f'{self.n} %'\nh = display(P(0), display_id=True)\nprint('between')\nfor n in (50, 100): h.update(P(n))"},
	"escapes":        {code: "print('\\x1b[31mred\\x1b[0m \\x1b]8;;http://x\\x07link\\x1b]8;;\\x07 \\x1bP+q\\x1b\\\\end')\nprint('abc\\rX')\nprint('wide 東京 é 👩‍👩‍👧')"},
}

func TestDisplays(t *testing.T) {
	python, extras := testpython.Path(t), testpython.Extras(t)
	for _, backend := range []string{backends.Runner, backends.Gateway} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			host, err := coppice.Start(t.Context(), coppice.Options{
				Backend: backends.Named(backend), Python: python, Home: home, Env: append(os.Environ(), "PYTHONPATH="+extras, "HOME="+home), StartTimeout: 2 * time.Minute,
			})
			require.NoError(t, err)
			t.Cleanup(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				require.True(t, host.Shutdown(ctx).Clean())
			})
			s := host.Session("displays", coppice.In(home))
			t.Run("look", func(t *testing.T) { looks(t, s) })
			t.Run("charts", func(t *testing.T) { charts(t, s) })
			for name, c := range displays {
				t.Run(name, func(t *testing.T) {
					r, err := s.Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: c.code}}})
					require.NoError(t, err)
					require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
					text := artifactNumber(r.Text) + "\n"
					file := filepath.Join("testdata", name+".golden")
					if *update && backend == backends.Runner {
						require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
					}
					want, err := os.ReadFile(file)
					require.NoError(t, err)
					require.Empty(t, cmp.Diff(string(want), text))
					if c.check != nil {
						c.check(t, r)
					}
				})
			}
		})
	}
}

// looks asks the session what could stand at a cursor, and what a name is.
func looks(t *testing.T, s *coppice.Session) {
	_, err := s.Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: "import math\nclass Größe:\n    'how large'\n    def länge(self, zoll): 'a length'\ng = Größe()"}}})
	require.NoError(t, err)
	for _, tc := range []struct {
		code     string
		cursor   int
		has, not string
		start    int
	}{
		{code: "x = math.isq", cursor: 12, has: "math.isqrt", not: "math.floor", start: 4},
		{code: "x = math.isq + 1", cursor: 12, has: "math.isqrt", start: 4},
		{code: "'日本'; g.lä", cursor: 15, has: "g.länge", start: 10},
		{code: "print(\n    Grö", cursor: 15, has: "Größe", start: 11},
	} {
		c, err := s.Complete(t.Context(), tc.code, tc.cursor)
		require.NoError(t, err)
		// A match replaces the text from Start on: kernels begin it where they like.
		var whole []string
		for _, m := range c.Matches {
			whole = append(whole, strings.TrimRight(tc.code[tc.start:max(c.Start, tc.start)]+m, "()"))
		}
		require.Contains(t, whole, tc.has, "%+v", c)
		require.GreaterOrEqual(t, c.Start, tc.start)
		if tc.not != "" {
			require.NotContains(t, whole, tc.not)
		}
	}
	for code, wants := range map[string][]string{
		"math.isqrt": {"(n, /)", "Return the integer part of the square root"}, "g.länge": {"zoll", "a length"}, "Größe": {"how large"}, "no_such_name": nil,
	} {
		text, err := s.Inspect(t.Context(), code, len(code))
		require.NoError(t, err)
		require.NotContains(t, text, "\x1b")
		for _, want := range wants {
			require.Contains(t, text, want)
		}
		if wants == nil {
			require.Empty(t, text)
		}
	}
	r, err := s.Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: "1 + 1"}}})
	require.NoError(t, err)
	require.Equal(t, "2", r.Text, "a completion leaves nothing behind")
}

// artifactNumber takes the number out of the name of an artifact: the cases run
// in any order.
func artifactNumber(text string) string {
	before, after, found := strings.Cut(text, "artifact://")
	if !found {
		return text
	}
	return before + "artifact://N" + strings.TrimLeft(after, "0123456789")
}
