//go:build linux

// Package conformance_test holds every behaviour of a session that does not
// depend on its backend, and runs it on both. What differs is listed in the
// README.
package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/test/proc"
	"github.com/coppice-run/coppice/test/testpython"
)

const marker = "PI_COPPICE_TEST_MARK"

// step is one call of a behaviour and what is expected of it. Zero fields are
// not looked at.
type step struct {
	cells   []string
	timeout time.Duration
	reset   bool
	mode    messages.KernelMode
	env     map[string]string
	callEnv map[string]string
	input   coppice.InputHandler
	idle    time.Duration // of each question
	names   bool          // the session's names are reset first
	leave   time.Duration // after which the caller leaves

	outcome  messages.Outcome // "": ok
	state    messages.State
	output   string   // of the last cell that ran, exactly
	contains []string // in the result's text
	check    func(*testing.T, messages.Result)
}

const (
	raised    = messages.OutcomeError
	timedOut  = messages.OutcomeTimeout
	lost      = messages.OutcomeLost
	kept      = messages.StateKept
	fresh     = messages.StateFresh
	stateLost = messages.StateLost
)

// ops checks the status events of the last cell that ran.
func ops(want ...string) func(*testing.T, messages.Result) {
	return func(t *testing.T, r messages.Result) {
		t.Helper()
		var got []string
		for _, raw := range r.Cells[len(r.Cells)-1].Events {
			var e struct {
				Op string `json:"op"`
			}
			require.NoError(t, json.Unmarshal(raw, &e))
			got = append(got, e.Op)
		}
		require.Equal(t, want, got)
	}
}

// behaviours are the cases.
var behaviours = map[string][]step{
	"variables stay": {
		{cells: []string{"x = 40"}, state: fresh},
		{cells: []string{"x + 2"}, state: kept, output: "42"},
	},
	"functions, classes and imports stay": {
		{cells: []string{"import json\nclass P:\n    def __init__(self, v): self.v = v\ndef f(p): return json.dumps(p.v)"}},
		{cells: []string{"f(P([1, 2]))"}, output: "'[1, 2]'"},
	},
	"the last expression is the result": {
		{cells: []string{"1\n2\n'three'"}, output: "'three'"},
		{cells: []string{"x = 1"}, contains: []string{"(no output)"}},
		{cells: []string{"7;"}, contains: []string{"(no output)"}},
		{cells: []string{"None"}, contains: []string{"(no output)"}},
		{cells: []string{""}, contains: []string{"(no output)"}},
	},
	"stdout and stderr come in the order in which they were written": {
		{cells: []string{"import sys\nfor i in range(3):\n    print('out', i, flush=True)\n    print('err', i, file=sys.stderr, flush=True)"}, contains: []string{"out 0", "err 0", "out 2", "err 2"}},
	},
	"children and descriptors are captured": {
		{cells: []string{"import os\nos.system('echo from a child')\nNone"}, contains: []string{"from a child"}},
		{cells: []string{"import os\n_ = os.write(1, b'from descriptor 1\\n')"}, contains: []string{"from descriptor 1"}},
	},
	"helpers are there, and tell what they did": {
		{cells: []string{"import os, tempfile; os.chdir(tempfile.mkdtemp()); _ = write('a/b.txt', 'one\\ntwo\\n')"}, check: ops("write")},
		{cells: []string{"[p.name for p in find('*.txt')], grep('two', 'a/b.txt'), replace('a/b.txt', 'two', 'three')"}, output: "(['b.txt'], [(2, 'two')], 1)", check: ops("find", "grep", "replace")},
		{cells: []string{"r = run('echo hi; exit 2'); r.stdout, r.code, bool(r)"}, output: "('hi\\n', 2, False)", check: ops("sh")},
		{cells: []string{"_ = env('MY_TOKEN', 'hush')"}, check: func(t *testing.T, r messages.Result) {
			ops("env")(t, r)
			require.NotContains(t, string(r.Cells[0].Events[0]), "hush")
		}},
		{cells: []string{"parallel([lambda: 1, lambda: 2])"}, output: "[1, 2]"},
		{cells: []string{"read('none')"}, outcome: raised, contains: []string{"FileNotFoundError"}},
		{cells: []string{"%reset -f"}},
		{cells: []string{"lines('a/b.txt')"}, output: "'one\\nthree'"},
		{cells: []string{"read = 5", "read"}, output: "5"},
		{cells: []string{"len([d for d in __prelude_docs__() if d['category'] == 'Search'])"}, output: "4"},
		{cells: []string{"read('x')"}, reset: true, outcome: raised, contains: []string{"FileNotFoundError"}},
	},
	"a cell that no request holds is refused, and costs nothing": {
		{cells: []string{"kept = 1"}},
		{
			cells: []string{"x = '" + strings.Repeat("x", 17<<20) + "'"}, outcome: raised, contains: []string{"ValueError: the cell was not run: the request is too long", "write the data to a file"},
			check: func(t *testing.T, r messages.Result) { require.Equal(t, "ValueError", r.Cells[0].Error.Name) },
		},
		{cells: []string{"kept"}, state: kept, output: "1"},
	},
	"text beyond ASCII": {
		{cells: []string{"print('naïve ☃ 🌲')"}, output: "naïve ☃ 🌲"},
	},
	"an exception ends the call and keeps the state": {
		{
			cells: []string{"a = 1", "1/0", "b = 2"}, outcome: raised, contains: []string{"ZeroDivisionError: division by zero", "Cell 2 failed (exit code 1)"},
			check: func(t *testing.T, r messages.Result) {
				require.Equal(t, "ZeroDivisionError", r.Cells[1].Error.Name)
				require.Equal(t, "division by zero", r.Cells[1].Error.Message)
				require.Equal(t, messages.CellPending, r.Cells[2].Status)
			},
		},
		{cells: []string{"(a, 'b' in globals())"}, state: kept, output: "(1, False)"},
	},
	"a syntax error": {
		{cells: []string{"def (:"}, outcome: raised, contains: []string{"SyntaxError"}},
		{cells: []string{"1"}, state: kept},
	},
	"a magic that is not there": {
		{cells: []string{"x = 1\n%nosuchmagic"}, outcome: raised, check: func(t *testing.T, r messages.Result) {
			e := r.Cells[0].Error
			require.Equal(t, []any{"UsageError", 2, "%nosuchmagic"}, []any{e.Name, e.Line, e.Snippet})
			require.Equal(t, 1, strings.Count(r.Text, "UsageError"), r.Text)
		}},
	},
	"texts that are not UTF-8": {
		// It is flushed: a kernel that sends each stream when its time has come may put one into a line of the other.
		{cells: []string{`print('a\ud800b', 'name \udce9.txt', flush=True)` + "\nimport sys; print('\\udfff', file=sys.stderr)\ndisplay('\\ud801')\n'\\udc80'"}, check: func(t *testing.T, r messages.Result) {
			require.Contains(t, r.Text, `a\ud800b name \udce9.txt`)
			require.Contains(t, r.Text, `\udfff`)
			require.NotContains(t, r.Text, "raceback")
			require.NotContains(t, r.Text, "missing")
		}},
		{cells: []string{`raise ValueError('\udc80')`}, outcome: raised, contains: []string{`ValueError: \udc80`}},
		{cells: []string{"'alive'"}, state: kept, output: "'alive'"},
	},
	"an exception names the user's line": {
		{cells: []string{"def f():\n    raise ValueError('here')\nf()"}, outcome: raised, contains: []string{"raise ValueError('here')", "line 2", "line 3"}},
	},
	"chained exceptions": {
		{cells: []string{"try:\n    {}['k']\nexcept KeyError as e:\n    raise RuntimeError('outer') from e"}, outcome: raised, contains: []string{"KeyError", "RuntimeError: outer", "direct cause"}},
	},
	"a repr that raises": {
		{cells: []string{"class B:\n    def __repr__(self): raise ValueError('bad repr')\nB()"}, check: func(t *testing.T, r messages.Result) {
			require.Contains(t, r.Text, "bad repr")
		}, outcome: "*"},
		{cells: []string{"'alive'"}, state: kept, output: "'alive'"},
	},
	"deep recursion": {
		{cells: []string{"def f(n): return f(n + 1)\nf(0)"}, outcome: raised, contains: []string{"RecursionError"}},
		{cells: []string{"'alive'"}, state: kept, output: "'alive'"},
	},
	"top-level await": {
		{cells: []string{"import asyncio\nawait asyncio.sleep(0.01, 'done')"}, output: "'done'"},
	},
	"a loop is interrupted": {
		{cells: []string{"x = 1"}},
		{cells: []string{"while True: pass"}, timeout: time.Second, outcome: timedOut, state: kept, contains: []string{"Command timed out after 1 seconds"}},
		{cells: []string{"x"}, state: kept, output: "1"},
	},
	"a sleep is interrupted": {
		{cells: []string{"import time; time.sleep(100)"}, timeout: time.Second, outcome: timedOut},
		{cells: []string{"1"}, state: kept},
	},
	"an await is interrupted": {
		{cells: []string{"import asyncio\nawait asyncio.sleep(100)"}, timeout: time.Second, outcome: timedOut},
		{cells: []string{"1"}, state: kept},
	},
	"a subprocess is interrupted": {
		{cells: []string{"import subprocess\nsubprocess.run(['sleep', '100'])"}, timeout: time.Second, outcome: timedOut},
		{cells: []string{"1"}, state: kept},
	},
	"an interrupt that is swallowed costs the state": {
		{cells: []string{"x = 1"}},
		{cells: []string{"import time\nwhile True:\n    try: time.sleep(10)\n    except KeyboardInterrupt: pass"}, timeout: time.Second, outcome: timedOut, state: stateLost},
		{cells: []string{"'x' in globals()"}, state: fresh, contains: []string{"False"}},
	},
	"a killed kernel is lost": {
		{cells: []string{"x = 1"}},
		{cells: []string{"import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "1"}, outcome: lost, state: stateLost},
		{cells: []string{"'x' in globals()"}, state: fresh, contains: []string{"False", "new kernel"}},
	},
	"os._exit is a loss": {
		{cells: []string{"import os; os._exit(3)"}, outcome: lost, state: stateLost},
		{cells: []string{"1"}, state: fresh},
	},
	"a reset gives a new kernel": {
		{cells: []string{"x = 1"}},
		{cells: []string{"'x' in globals()"}, reset: true, state: fresh, contains: []string{"False"}},
	},
	"a per-call kernel shares nothing": {
		{cells: []string{"x = 1"}},
		{cells: []string{"'x' in globals()"}, mode: messages.ModePerCall, state: fresh, output: "False"},
		{cells: []string{"x"}, state: kept, output: "1"},
	},
	"input is refused": {
		{cells: []string{"input('name? ')"}, outcome: raised, contains: []string{"interactive input is not supported"}, check: func(t *testing.T, r messages.Result) {
			require.True(t, r.StdinRequested)
		}},
		{cells: []string{"1"}, state: kept},
	},
	"the environment of a call": {
		{cells: []string{"import os\nos.environ['MARK']"}, env: map[string]string{"MARK": "a \"b\" \\ ☃"}, contains: []string{"☃"}},
		{cells: []string{"os.environ['MARK'][0]"}, output: "'a'"},
	},
	"secrets of the host are not there": {
		{cells: []string{"import os\nsorted(k for k in os.environ if 'TOKEN' in k or 'API_KEY' in k or k.startswith('KG_AUTH'))"}, output: "[]"},
	},
	"a session begins in its folder": {
		{cells: []string{"import os\nprint(os.getcwd())"}, check: func(t *testing.T, r messages.Result) {
			require.Equal(t, r.Cwd, r.Cells[0].Output)
		}},
	},
	"the whole of a long value": {
		{cells: []string{"'x' * (9 << 20)"}, check: func(t *testing.T, r messages.Result) {
			require.NotNil(t, r.Truncation)
			require.GreaterOrEqual(t, r.Truncation.TotalBytes, int64(9<<20))
			require.NotNil(t, r.Artifact)
			require.Empty(t, r.NotKept)
		}},
		{cells: []string{"1"}, output: "1", state: kept},
	},
	"sys.exit and quit are no way around a result": {
		{cells: []string{"x = 1"}},
		{cells: []string{"import sys\nsys.exit(3)"}, outcome: raised, contains: []string{"SystemExit", "Command exited with code 3"}, state: kept},
		{cells: []string{"raise SystemExit", "1"}, outcome: raised, contains: []string{"Cell 1 ended the call (exit code 0)."}, state: kept},
		{cells: []string{"exit()"}, outcome: raised, contains: []string{"SystemExit"}, state: kept},
		{cells: []string{"quit(3)"}, outcome: raised, contains: []string{"SystemExit"}, state: kept},
		{cells: []string{"quit"}, contains: []string{"Use quit()"}, state: kept},
		{cells: []string{"exit"}, contains: []string{"Use exit()"}, state: kept},
		{cells: []string{"%reset -f"}, state: kept},
		{cells: []string{"exit()"}, outcome: raised, state: kept},
		{cells: []string{"x = 1"}, state: kept},
		{cells: []string{"x"}, output: "1", state: kept},
	},
	"code that closes its streams takes nothing from later cells": {
		{cells: []string{"import sys, os\nsys.stdout.close()\nprint('still here')"}, contains: []string{"still here"}},
		{cells: []string{"sys.stderr.close()\nwith sys.stdout: pass\nprint('out'); print('err', file=sys.stderr)\n_ = os.system('echo a child')"}, contains: []string{"out", "err", "a child"}, state: kept},
		{cells: []string{"!echo a shell\n%pwd"}, contains: []string{"a shell"}, state: kept},
	},
	"a read from stdin that the code catches is told all the same": {
		{cells: []string{"try:\n    input('name? ')\nexcept Exception as e:\n    print('caught')"}, outcome: raised, contains: []string{"caught", "Kernel requested stdin"}, check: stdinRequested},
		{cells: []string{"import getpass\ntry:\n    getpass.getpass()\nexcept Exception:\n    pass"}, outcome: raised, check: stdinRequested},
		{cells: []string{"1"}, output: "1", state: kept, check: func(t *testing.T, r messages.Result) { require.False(t, r.StdinRequested) }},
	},
	"magics": {
		{cells: []string{"import os\n_here = %pwd\n_here == os.getcwd()"}, output: "True"},
		{cells: []string{"!echo from a shell; exit 0"}, contains: []string{"from a shell"}},
		{cells: []string{"%%bash\necho in bash"}, contains: []string{"in bash"}},
		{cells: []string{"out = !echo a; echo b\nlist(out)"}, output: "['a', 'b']"},
	},
	"text that looks like magics is text": {
		{cells: []string{"s = \"\"\"\n!echo no\n%%bash\n%pwd\n\"\"\"\ns"}, output: `'\n!echo no\n%%bash\n%pwd\n'`},
		{cells: []string{"10\\\n%3"}, output: "1"},
	},
	"IPython's display, where code imports it": {
		{cells: []string{"from IPython.display import display, update_display, clear_output, HTML, Image\nimport base64\npng = base64.b64decode('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==')\ndisplay(Image(png))"}, check: func(t *testing.T, r messages.Result) {
			require.Len(t, r.Images, 1)
		}},
		{cells: []string{"display(HTML('<h1>a page</h1>'))"}, contains: []string{"# a page"}},
		{cells: []string{"h = display('one', display_id=True)\nh.update('two')\nprint(len(h.display_id))"}, contains: []string{"32"}},
		{cells: []string{"display({'text/plain': 'raw'}, raw=True)"}, output: "raw"},
	},
	"the whole of a long line": {
		{cells: []string{"print('x' * 1_000_000, end='')"}, check: func(t *testing.T, r messages.Result) {
			require.NotNil(t, r.Truncation)
			require.EqualValues(t, 1_000_000, r.Truncation.TotalBytes)
		}},
	},
	"threads print": {
		{cells: []string{"import threading\nt = threading.Thread(target=lambda: print('from a thread'))\nt.start(); t.join()"}, contains: []string{"from a thread"}},
	},
	"sys.stdout can be replaced": {
		{cells: []string{"import io, sys\nold, sys.stdout = sys.stdout, io.StringIO()\nprint('swallowed')\nsys.stdout = old\nprint('shown')"}, output: "shown"},
	},
	"a long output is cut, and said to be": {
		{cells: []string{"for i in range(100000): print('line', i)"}, contains: []string{"line 0", "line 99999"}, check: func(t *testing.T, r messages.Result) {
			require.NotNil(t, r.Truncation)
			require.EqualValues(t, 100000, r.Truncation.TotalLines)
			require.NotNil(t, r.Artifact)
		}},
	},
}

func TestConformance(t *testing.T) {
	for _, backend := range []string{backends.Gateway, backends.Runner} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			conform(t, plain(t, backend), backend)
		})
	}
}

// conform runs every behaviour on a host.
func conform(t *testing.T, host *coppice.Host, backend string) {
	runAll(t, host, backend, behaviours)
}

// start makes a host and proves at the end that nothing of it is left. env is
// added to its environment.
func start(t *testing.T, backend string, o coppice.Options, env ...string) *coppice.Host {
	t.Helper()
	mark := messages.NewID()
	o.Home = t.TempDir()
	host, err := coppice.Start(t.Context(), settle(t, backend, mark, o, env...))
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.True(t, host.Shutdown(ctx).Clean())
		require.Empty(t, proc.WithEnv(marker, mark))
	})
	return host
}

// settle fills in the options of a host.
func settle(t *testing.T, backend, mark string, o coppice.Options, env ...string) coppice.Options {
	t.Helper()
	o.Env = append(append(os.Environ(), marker+"="+mark, "OPENAI_API_KEY=sk-1", "PI_PYTHON_GATEWAY_TOKEN=t-1", "GITHUB_TOKEN=g-1"), env...)
	if o.Python == "" {
		o.Python = testpython.Path(t)
	}
	if o.MaxSessions == 0 {
		o.MaxSessions = 8 // more than run at once: the end of a session takes its time
	}
	o.InterruptGrace = 6 * time.Second                                                                   // others want the processors too
	o.Backend = backends.With(backend, coppice.GatewayOptions{WarmKernels: -1}, coppice.RunnerOptions{}) // nothing beside the sessions
	o.StartTimeout = 2 * time.Minute
	return o
}

func run(t *testing.T, s *coppice.Session, st step) messages.Result {
	t.Helper()
	req := coppice.Request{Timeout: st.timeout, Reset: st.reset, Mode: st.mode, Env: st.env, CallEnv: st.callEnv, Input: st.input, InputTimeout: st.idle, ResetNames: st.names}
	for _, c := range st.cells {
		req.Cells = append(req.Cells, messages.Cell{Code: c})
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if st.leave > 0 {
		defer time.AfterFunc(st.leave, cancel).Stop()
	}
	r, err := s.Execute(ctx, req)
	if _, refused := errors.AsType[*messages.NotStartedError](err); !refused { // the result says so too
		require.NoError(t, err)
	}
	return r
}

func check(t *testing.T, where string, r messages.Result, st step, backend string) {
	t.Helper()
	require.Equal(t, backend, r.Backend, where)
	want := st.outcome
	if want == "" {
		want = messages.OutcomeOK
	}
	if want != "*" {
		require.Equal(t, want, r.Outcome, "%s: %s", where, r.Text)
	}
	if st.state != "" {
		require.Equal(t, st.state, r.State, "%s: %s", where, r.Text)
	}
	if st.output != "" {
		last := ""
		for _, c := range r.Cells {
			if c.Status != messages.CellPending {
				last = c.Output
			}
		}
		require.Equal(t, st.output, strings.TrimSpace(last), where)
	}
	for _, part := range st.contains {
		require.Contains(t, r.Text, part, where)
	}
	if st.check != nil {
		st.check(t, r)
	}
}
