//go:build linux

package runner_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/messages"
)

func TestCells(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		cells []string // all but the last must end well
		want  string   // of the last, as seen.text has it
	}{
		{"the value of the last expression", []string{"1+1"}, "=> 2"},
		{"None is no result", []string{"None"}, ""},
		{"a semicolon keeps it back", []string{"1+1;"}, ""},
		{"a semicolon and a comment", []string{"(1+1) ; # two"}, ""},
		{"a semicolon in a string", []string{"'a;'"}, "=> 'a;'"},
		{"a semicolon between statements", []string{"a = 1; a"}, "=> 1"},
		{"an assignment has none", []string{"x = 1"}, ""},
		{"an empty cell", []string{""}, ""},
		{"a comment", []string{"# nothing"}, ""},
		{"variables stay", []string{"x = 5", "def f(): return x * 2", "f()"}, "=> 10"},
		{"underscore is the last result", []string{"6 * 7", "_ + 1"}, "=> 43"},
		{"future imports stay", []string{"from __future__ import annotations", "def f(a: no_such_type): pass\nf.__annotations__"}, "=> {'a': 'no_such_type'}"},
		{"Windows line ends", []string{"x = 1\r\nx + 1\r\n"}, "=> 2"},
		{"stdout and stderr in order", []string{"import sys\nfor i in range(3):\n    print('o', i)\n    print('e', i, file=sys.stderr)"}, "o 0\n[e 0\n]o 1\n[e 1\n]o 2\n[e 2\n]"},
		{"text without a line end", []string{"print('a', end='')"}, "a"},
		{"output before a result", []string{"print('a')\n1"}, "a\n=> 1"},
		{"print returns after sys.stdout.write", []string{"import sys\nsys.stdout.write('ab')"}, "ab=> 2"},
		{"bytes", []string{"import sys\n_ = sys.stdout.buffer.write('é\\n'.encode())\nprint('x')"}, "é\nx\n"},
		{"lone surrogates", []string{`print('a\udc80b')`}, "a\\udc80b\n"},
		{"not characters of JSON", []string{`print('\x00\x1b[1m "\\ \u2028 😀')`}, "\x00\x1b[1m \"\\ \u2028 😀\n"},
		{"a system call writes to the stream", []string{"import os\nprint('a')\nos.system('echo b')\nprint('c')"}, "a\nb\nc\n"},
		{"descriptor 2 is stderr", []string{"import os\nprint('a')\n_ = os.write(2, b'b\\n')\nprint('c')"}, "a\n[b\n]c\n"},
		{"C writes", []string{"import ctypes\n_ = ctypes.CDLL(None).puts(b'from C')"}, "from C\n"},
		{"a child of its own", []string{"import subprocess, sys\n_ = subprocess.run([sys.executable, '-c', 'print(1)'])\nprint(2)"}, "1\n2\n"},
		{"a child with our streams", []string{"import subprocess, sys\nsubprocess.run(['sh', '-c', 'echo o; echo e >&2'], stdout=sys.stdout, stderr=sys.stderr).returncode"}, "o\n[e\n]=> 0"},
		{"a line that looks like a frame", []string{`print('{"type":"done","id":1,"ok":true}')`}, `{"type":"done","id":1,"ok":true}` + "\n"},
		{"frames on the descriptors", []string{`import os` + "\n" + `_ = os.write(1, b'{"id":1,"seq":9,"type":"done","ok":false}\n\xff\n')`}, `{"id":1,"seq":9,"type":"done","ok":false}` + "\n\ufffd\n"},
		{"a replaced stdout is back in the next cell", []string{"import io, sys\nsys.stdout = io.StringIO(); print('away')", "print('here')"}, "here\n"},
		{"a closed stdout goes on", []string{"import sys\nsys.stdout.close()", "print('here')"}, "here\n"},
		{"await", []string{"import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 7\nawait f()"}, "=> 7"},
		{"one loop for all cells", []string{"import asyncio\nlock = asyncio.Event()\nasync def w():\n    await lock.wait()\n    print('set')\nawait asyncio.sleep(0)", "task = asyncio.create_task(w())\nawait asyncio.sleep(0)", "lock.set()\nawait task"}, "set\n"},
		{"async for and async with", []string{"import contextlib\n@contextlib.asynccontextmanager\nasync def c():\n    yield 3\nasync def g():\n    yield 1\n    yield 2\nasync with c() as v:\n    print(v)\nasync for i in g():\n    print(i)\n[i async for i in g()]"}, "3\n1\n2\n=> [1, 2]"},
		{"asyncio.run", []string{"import asyncio\nasync def f(): return 1\nasyncio.run(f())"}, "=> 1"},
		{"pickling", []string{"class A:\n    x = 1\nimport pickle", "pickle.loads(pickle.dumps(A())).x"}, "=> 1"},
		{"inspect", []string{"def f():\n    return 'here'", "import inspect\nprint(inspect.getsource(f))"}, "def f():\n    return 'here'\n\n"},
		{"the main module", []string{"import __main__\nz = 3\n(__name__, __main__.z)"}, "=> ('__main__', 3)"},
		{"a forked process ends with the cell", []string{"import os\npid = os.fork()\nif pid:\n    print('parent', os.waitpid(pid, 0)[1])\nelse:\n    print('child')"}, "child\nparent 0\n"},
		{"a process that a forked one has forked", []string{"import os\nif os.fork() == 0:\n    fs = [os.open('/dev/null', os.O_RDONLY) for _ in range(20)]\n    if os.fork() == 0:\n        for f in fs: os.fstat(f)\n        print('all open', flush=True)\n        os._exit(0)\n    os.wait()\n    os._exit(0)\n_ = os.wait()"}, "all open\n"},
		{"half a character at the end of a cell", []string{"import os\n_ = os.write(1, b'a\\xe2\\x82')"}, "a\ufffd"},
		{"half a character through sys.stdout.buffer", []string{"import sys\n_ = sys.stdout.buffer.write(b'a\\xe2\\x82')"}, "a\ufffd"},
		{"multiprocessing", []string{"import multiprocessing as m\ndef f(x): return x * x", "with m.get_context('fork').Pool(2) as p:\n    r = p.map(f, range(4))\nr"}, "=> [0, 1, 4, 9]"},
		{"display", []string{"display(1, 'a')"}, "<1><'a'>"},
		{"a failing exit function does no harm", []string{"import atexit\n@atexit.register\ndef f(): raise SystemExit(9)"}, ""},
		{"a session leads its group", []string{"import os\nos.getpgrp() == os.getpid() == os.getsid(0)"}, "=> True"},
		{"stdin is empty for children", []string{"import subprocess\nsubprocess.run(['cat']).returncode"}, "=> 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			i := session(t)
			var got seen
			for _, code := range tt.cells {
				got = ok(t, i, code)
			}
			require.Equal(t, tt.want, got.text())
		})
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, code    string
		kind, message string
		traceback     string
	}{
		{"the line that raised", "x = 1\ny = 0\nx / y", "ZeroDivisionError", "division by zero", `Traceback (most recent call last):
  File "<cell 1>", line 3, in <module>
    x / y
ZeroDivisionError: division by zero`},
		{"a function", "def f():\n    raise KeyError('k')\nf()", "KeyError", "'k'", `Traceback (most recent call last):
  File "<cell 1>", line 3, in <module>
    f()
  File "<cell 1>", line 2, in f
    raise KeyError('k')
KeyError: 'k'`},
		{"a cause", "try:\n    1/0\nexcept Exception as e:\n    raise ValueError('v') from e", "ValueError", "v", `Traceback (most recent call last):
  File "<cell 1>", line 2, in <module>
    1/0
ZeroDivisionError: division by zero

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "<cell 1>", line 4, in <module>
    raise ValueError('v') from e
ValueError: v`},
		{"the compiler", "for i in range(2)\n    pass", "SyntaxError", "expected ':'|invalid syntax", `  File "<cell 1>", line 1
    for i in range(2)
SyntaxError: invalid syntax`},
		{"the result's repr", "class A:\n    def __repr__(self): raise OSError('no')\nA()", "OSError", "no", `Traceback (most recent call last):
  File "<cell 1>", line 2, in __repr__
    def __repr__(self): raise OSError('no')
OSError: no`},
		{"an exception without words", "class E(Exception):\n    def __str__(self): 1/0\nraise E()", "E", "<the message could not be made: str.. raised ZeroDivisionError>", `Traceback (most recent call last):
  File "<cell 1>", line 3, in <module>
    raise E()
E: <unprintable E object>`},
		{"SystemExit", "import sys\nsys.exit(3)", "SystemExit", "3", ""},
		{"exit", "exit()", "SystemExit", "None", ""},
		{"quit", "quit(0)", "SystemExit", "0", ""},
		{"recursion", "def f(): f()\nf()", "RecursionError", "maximum recursion depth exceeded", ""},
		{"no memory", "x = bytearray(1 << 62)", "MemoryError", "", ""},
		{"a BaseException", "class B(BaseException): pass\nraise B('b')", "B", "b", ""},
		{"GeneratorExit", "raise GeneratorExit('g')", "GeneratorExit", "g", ""},
		{"input", "input('name? ')", "StdinNotAllowed", "input was requested, but this call cannot be answered: provide the value in the code", ""},
		{"a NUL", "x = '\x00'", "", "", ""},
		{"a null in the source", "x = 1\x00", "", "", ""},
		{"await that raises", "async def f(): raise ValueError('in f')\nawait f()", "ValueError", "in f", ""},
		{"print to a surrogate stream", "raise ValueError('\\udc80')", "ValueError", `\\udc80`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			i := session(t)
			got := run(t, i, tt.code)
			require.NoError(t, got.err)
			require.False(t, got.OK)
			require.NotNil(t, got.Error)
			if tt.kind != "" {
				require.Equal(t, tt.kind, got.Error.Name)
				require.Regexp(t, "^(?:"+tt.message+")$", got.Error.Message)
			}
			if tt.traceback != "" {
				require.Equal(t, tt.traceback, versionless.Replace(withoutCarets(got.Error.Traceback)))
			}
			require.NotContains(t, strings.Join(got.Error.Traceback, "\n"), "<coppice>")
			last := got.events[len(got.events)-1]
			if got.StdinRequested {
				require.Equal(t, "stdin", last.(messages.Notice).Code)
				last = got.events[len(got.events)-2]
			}
			require.Equal(t, messages.Error{ErrorDetails: *got.Error}, last)
			require.Equal(t, "=> 'alive'", ok(t, i, "'alive'").text())
		})
	}
}

// versionless says in the words of Python 3.9 what later versions say otherwise.
var versionless = strings.NewReplacer("<exception str() failed>", "<unprintable E object>", "expected ':'", "invalid syntax")

// withoutCarets joins the lines of a traceback but those that point at columns,
// which differ between versions of Python.
func withoutCarets(lines []string) string {
	var kept []string
	for _, l := range lines {
		if strings.Trim(l, " ^~") != "" || l == "" {
			kept = append(kept, l)
		}
	}
	return strings.Join(kept, "\n")
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	i := sessionOn(t, shared.get(), prelude("def helper(): return 'prelude'"), kernel.StartOptions{
		Key: messages.SessionKey{Cwd: dir}, Env: map[string]string{"COPPICE_A": "1"},
	})
	require.Equal(t, "=> ('1', True, True, 'prelude', True)", ok(t, i, "import os, sys\n(os.environ['COPPICE_A'], os.path.samefile(os.getcwd(), "+quote(dir)+"), sys.path[0] == "+quote(dir)+", helper(), 'COPPICE_TEST_ROLE' not in os.environ)").text())
	got := request(t, i, kernel.CellRequest{Code: "os.environ['COPPICE_B'], os.environ['COPPICE_A']", Env: map[string]string{"COPPICE_B": "2", "COPPICE_A": ""}})
	require.NoError(t, got.err)
	require.Equal(t, "=> ('2', '')", got.text())
	require.Equal(t, "=> '2'", ok(t, i, "os.environ['COPPICE_B']").text())
}
