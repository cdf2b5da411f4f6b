//go:build linux

package conformance_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
)

var update = flag.Bool("update", false, "write the golden files anew from the runner backend")

// errorCases are cells, the last of which raises. They run on both
// backends; what is to come out, testdata/errors.golden.json says: class, line,
// columns, snippet, pointer, summary and traceback. Cells are numbered from 1 in
// each case, though all of them run in one session.
var errorCases = map[string][]string{
	"division":                                 {"x = 1\ny = 0\nx / y"},
	"a name that is not there":                 {"total = 1\nprint(totl)"},
	"a missing attribute":                      {"import json\njson.dmps({})"},
	"a missing key in a nested expression":     {"d = {'a': {}}\nvalue = d['a']['b'] + 1"},
	"an index":                                 {"xs = [1]\nfor i in range(2):\n    xs[i]"},
	"a type":                                   {"n = 1\n'a' + n"},
	"a value":                                  {"int('x')"},
	"an assertion":                             {"x = 1\nassert x == 2, 'x is not 2'"},
	"an exception of the user":                 {"class Broken(Exception): pass\nraise Broken('why')"},
	"a module that is not there":               {"import no_such_module_x"},
	"a file that is not there":                 {"f = open('/no/such/file')"},
	"a colon is missing":                       {"for i in range(2)\n    print(i)"},
	"a bracket is not closed":                  {"x = 1\ny = (1,\n"},
	"a string is not closed":                   {"x = 'abc"},
	"indentation":                              {"def f():\nreturn 1"},
	"unexpected indentation":                   {"x = 1\n  y = 2"},
	"tabs and spaces":                          {"if True:\n        x = 1\n\ty = 2"},
	"return outside of a function":             {"x = 1\nreturn x"},
	"an assignment to a call":                  {"f() = 1"},
	"inside of a function":                     {"def f(x):\n    y = x + 1\n    return y / 0\n\nf(1)"},
	"a function of an earlier cell":            {"def f(x):\n    return x / 0", "f(1)"},
	"inside of a library":                      {"import json\n\njson.loads('{bad')"},
	"a callback that a library calls":          {"import functools\nfunctools.reduce(lambda a, b: a / b, [1, 0])"},
	"a module of the user":                     {"import of_the_user\nof_the_user.fail('k')"},
	"a module of the user with a syntax error": {"x = 1\nimport broken"},
	"an explicit cause":                        {"try:\n    {}['k']\nexcept KeyError as e:\n    raise RuntimeError('outer') from e"},
	"while handling another":                   {"try:\n    1 / 0\nexcept ZeroDivisionError:\n    undefined_name_x"},
	"a cause that is hidden":                   {"try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise ValueError('plain') from None"},
	"an exception group":                       {"def a(): raise ValueError('one')\ndef b(): return {}['two']\nerrors = []\nfor f in (a, b):\n    try: f()\n    except Exception as e: errors.append(e)\nraise ExceptionGroup('both', errors)"},
	"a task group":                             {"import asyncio\nasync def bad():\n    raise OSError('inside')\nasync with asyncio.TaskGroup() as g:\n    g.create_task(bad())"},
	"an await":                                 {"import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    raise ValueError('late')\nawait f()"},
	"wide characters":                          {"名 = {'é': 1}\nx = 名['é'] + 名['木']"},
	"tabs":                                     {"if True:\n\tx = 1; y = x / 0"},
	"over several lines":                       {"x = max(\n    1,\n    1 / 0,\n)"},
	"recursion":                                {"def f(n):\n    return f(n + 1)\nf(0)"},
	"code that was made":                       {"code = 'a = 1\\nb = a / 0'\nexec(code)"},
	"a comprehension":                          {"[1 / n for n in (1, 0)]"},
	"a generator":                              {"def g():\n    yield 1\n    raise ValueError('in g')\nlist(g())"},
	"a class body":                             {"class C:\n    x = 1\n    y = x.missing"},
	"a note":                                   {"e = ValueError('noted')\ne.add_note('a note')\nraise e"},
	"a message that raises":                    {"class E(Exception):\n    def __str__(self): raise ValueError('no')\nraise E"},
	"a deep recursion":                         {"import sys\nsys.setrecursionlimit(20000)\ndef f(n):\n    if n == 9900: 1 / 0\n    return f(n + 1)\nf(0)"},
	"a deep recursion of two":                  {"import sys\nsys.setrecursionlimit(20000)\ndef f(n): return g(n + 1)\ndef g(n):\n    if n >= 9900: 1 / 0\n    return f(n + 1)\nf(0)"},
	"a deep cause":                             {"import sys\nsys.setrecursionlimit(20000)\ndef f(n):\n    if n == 9900: 1 / 0\n    return f(n + 1)\ntry:\n    f(0)\nexcept ZeroDivisionError as e:\n    raise ValueError('on top') from e"},
	"a repr that raises":                       {"class B:\n    def __repr__(self):\n        return 1 / 0\nB()"},
	"a syntax error that code raises":          {"raise SyntaxError('mine')"},
	"a syntax error with odd details":          {"raise SyntaxError('m', ('f.py', 'x', None, 5))"},
	"asyncio.run":                              {"import asyncio\nasync def f(): pass\nasync def g(): asyncio.run(f())\nawait g()"},
}

// raisedError is one entry of the golden file.
type raisedError struct {
	Name    string `json:"name"`
	Message string `json:"message"`
	messages.ErrorPlace
}

const errorsGolden = "testdata/errors.golden.json"

func TestErrorPlaces(t *testing.T) {
	want := map[string]raisedError{}
	if !*update {
		data, err := os.ReadFile(errorsGolden)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &want))
		require.Len(t, want, len(errorCases))
	}
	for _, backend := range []string{backends.Gateway, backends.Runner} {
		if *update && backend != backends.Runner {
			continue
		}
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			cwd := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(cwd, "of_the_user.py"), []byte("def fail(x):\n    return {}[x]\n"), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(cwd, "broken.py"), []byte("x = 1\nx = = 2\n"), 0o600))
			s := plain(t, backend).Session("errors", coppice.In(cwd))
			// What one case leaves behind, the collector may find in another.
			run(t, s, step{cells: []string{"import warnings\nwarnings.filterwarnings('ignore', 'coroutine .* was never awaited')"}})
			ran := 1
			for _, name := range slices.Sorted(maps.Keys(errorCases)) {
				t.Run(name, func(t *testing.T) {
					held(t, backend)
					cells := errorCases[name]
					got := raise(t, s, cwd, ran, cells)
					ran += len(cells)
					if *update {
						want[name] = got
						return
					}
					require.Empty(t, cmp.Diff(want[name], got))
				})
			}
			if *update {
				var b bytes.Buffer
				enc := json.NewEncoder(&b)
				enc.SetEscapeHTML(false)
				enc.SetIndent("", "  ")
				require.NoError(t, enc.Encode(want))
				require.NoError(t, os.WriteFile(errorsGolden, b.Bytes(), 0o600))
			}
		})
	}
}

// raise runs the cells and returns what the last one raised. ran is how many
// cells the session has run before. Folders and what depends on the version of a
// library are made plain.
func raise(t *testing.T, s *coppice.Session, cwd string, ran int, cells []string) raisedError {
	t.Helper()
	var r messages.Result
	for _, code := range cells {
		r = run(t, s, step{cells: []string{code}})
	}
	require.Equal(t, messages.OutcomeError, r.Outcome, r.Text)
	e := r.Cells[0].Error
	require.NotNil(t, e)
	require.Contains(t, r.Text, e.UserTraceback, "the model reads the user's frames")
	for _, ours := range []string{"coppice_runner", "<coppice>", "ipykernel", "IPython"} {
		require.NotContains(t, r.Text, ours)
	}
	plain := func(text *string) {
		*text = libraryLine.ReplaceAllString(strings.ReplaceAll(*text, cwd, "$CWD"), "line N]")
		for i := range cells {
			*text = strings.ReplaceAll(*text, fmt.Sprintf("<cell %d>", ran+i+1), fmt.Sprintf("<cell %d>", i+1))
		}
		*text = times.ReplaceAllString(*text, "[the same N more times]")
	}
	got := raisedError{Name: e.Name, Message: e.Message, ErrorPlace: e.ErrorPlace}
	plain(&got.Filename)
	plain(&got.Summary)
	plain(&got.UserTraceback)
	plain(&got.Hint)
	return got
}

var (
	libraryLine = regexp.MustCompile(`line \d+\]`)
	times       = regexp.MustCompile(`\[the same \d+ more times\]`)
)
