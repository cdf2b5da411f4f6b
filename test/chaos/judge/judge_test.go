package judge_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/test/chaos/judge"
)

// asked and told are a call of two cells and its result.
func asked(call string, at int64) judge.Line {
	return judge.Line{What: "call", Session: "s", Call: call, At: at, Cells: 2, Limit: 1000}
}

func told(call string, at int64, outcome, state string, printed ...string) judge.Line {
	return judge.Line{What: "result", Session: "s", Call: call, At: at, Outcome: outcome, State: state, Printed: printed}
}

// good is what two calls of two cells do.
const good = "B a 0 i 1\nE a 0 i 1\nB a 1 i 2\nE a 1 i 2\nB b 0 i 3\nE b 0 i 3\nB b 1 i 4\nE b 1 i 4\n"

var well = []judge.Line{
	asked("a", 0), told("a", 100, "ok", "fresh", "1", "2"), asked("b", 200), told("b", 300, "ok", "kept", "3", "4"),
}

func TestJudge(t *testing.T) {
	t.Parallel()
	second := func(outcome, state string, printed ...string) []judge.Line {
		return append(append([]judge.Line{}, well[:3]...), told("b", 300, outcome, state, printed...))
	}
	const firstCall = "B a 0 i 1\nE a 0 i 1\nB a 1 i 2\nE a 1 i 2\n"
	for name, tt := range map[string]struct {
		lines  []judge.Line
		cells  string
		untrue int
		late   int
	}{
		"well":                              {lines: well, cells: good},
		"no result, with time left":         {lines: append(append([]judge.Line{}, well...), asked("c", 9000)), cells: good},
		"no result yet, with none left":     {lines: append(append([]judge.Line{}, well...), asked("c", 400)), cells: good, late: 1},
		"never a result":                    {lines: append(append([]judge.Line{}, well...), asked("c", -40_000)), cells: good, untrue: 1},
		"lost at its end, and it serves":    {lines: []judge.Line{asked("a", 0), told("a", 100, "ok", "lost", "1", "2"), asked("b", 200), told("b", 300, "ok", "kept", "3", "4")}, cells: good, untrue: 2},
		"lost at its end":                   {lines: []judge.Line{asked("a", 0), told("a", 100, "ok", "lost", "1", "2")}, cells: firstCall},
		"two results":                       {lines: append(append([]judge.Line{}, well...), well[3]), cells: good, untrue: 1},
		"a result of no call":               {lines: append(append([]judge.Line{}, well...), told("c", 400, "ok", "kept")), cells: good, untrue: 1},
		"late":                              {lines: append(append([]judge.Line{}, well[:3]...), told("b", 5300, "ok", "kept", "3", "4")), cells: good, late: 1},
		"ok, and a cell did not run":        {lines: well, cells: firstCall + "B b 0 i 3\nE b 0 i 3\n", untrue: 1},
		"ok, and a cell did not end":        {lines: well, cells: firstCall + "B b 0 i 3\nE b 0 i 3\nB b 1 i 4\n", untrue: 1},
		"twice":                             {lines: well, cells: good + "B b 1 i 5\nE b 1 i 5\n", untrue: 3},
		"not started, and it ran":           {lines: second("not_started", ""), cells: good, untrue: 1},
		"not started":                       {lines: second("not_started", ""), cells: firstCall},
		"timeout after one cell":            {lines: second("timeout", "kept"), cells: firstCall + "B b 0 i 3\nE b 0 i 3\nB b 1 i 4\n"},
		"kept, and another interpreter":     {lines: second("ok", "kept", "1", "2"), cells: firstCall + "B b 0 j 1\nE b 0 j 1\nB b 1 j 2\nE b 1 j 2\n", untrue: 1},
		"fresh, and another interpreter":    {lines: second("ok", "fresh", "1", "2"), cells: firstCall + "B b 0 j 1\nE b 0 j 1\nB b 1 j 2\nE b 1 j 2\n"},
		"fresh, and the same":               {lines: second("ok", "fresh", "3", "4"), cells: good, untrue: 1},
		"a value is left out":               {lines: second("ok", "kept", "3", "5"), cells: firstCall + "B b 0 i 3\nE b 0 i 3\nB b 1 i 5\nE b 1 i 5\n", untrue: 1},
		"a new one has variables":           {lines: second("ok", "fresh", "3", "4"), cells: firstCall + "B b 0 j 3\nE b 0 j 3\nB b 1 j 4\nE b 1 j 4\n", untrue: 1},
		"in two interpreters":               {lines: second("lost", "lost"), cells: firstCall + "B b 0 i 3\nE b 0 i 3\nB b 1 j 1\n", untrue: 1},
		"the output of another":             {lines: second("ok", "kept", "1", "2"), cells: good, untrue: 2},
		"a call of which nothing was asked": {lines: well, cells: good + "B c 0 i 5\n", untrue: 1},
		"one after a later one":             {lines: second("timeout", "kept"), cells: "B a 0 i 1\nE a 0 i 1\nB b 0 i 2\nE b 0 i 2\nB a 1 i 3\nE a 1 i 3\n", untrue: 5},
		"a strange outcome":                 {lines: second("fine", "kept"), cells: good, untrue: 1},
		"a strange line":                    {lines: well, cells: good + "what\n", untrue: 1},
		"kept after a new one was told of": {
			lines: []judge.Line{asked("a", 0), told("a", 100, "timeout", "fresh"), asked("b", 200), told("b", 300, "ok", "kept", "1", "2")},
			cells: "B b 0 j 1\nE b 0 j 1\nB b 1 j 2\nE b 1 j 2\n",
		},
		"one that was lost": {
			lines:  []judge.Line{asked("a", 0), told("a", 100, "ok", "fresh", "1", "2"), asked("b", 200), told("b", 300, "ok", "fresh", "1", "2"), asked("c", 400), told("c", 500, "ok", "kept", "1", "2")},
			cells:  firstCall + "B b 0 j 1\nE b 0 j 1\nB b 1 j 2\nE b 1 j 2\nB c 0 i 3\nE c 0 i 3\nB c 1 i 4\nE c 1 i 4\n",
			untrue: 4, // the value, the interpreter, and two of the output
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var data []byte
			for _, l := range tt.lines {
				line, err := json.Marshal(l)
				require.NoError(t, err)
				data = append(append(data, line...), '\n')
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, "calls.jsonl"), data, 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "s.cells"), []byte(tt.cells), 0o600))
			r, err := judge.Judge(dir, judge.Bounds{Ended: 10_000, Grace: 1000, Margin: 2000})
			require.NoError(t, err)
			require.Len(t, r.Untrue, tt.untrue, "%q", r.Untrue)
			require.Len(t, r.Late, tt.late, "%q", r.Late)
		})
	}
}
