//go:build linux

package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/audit"
	"github.com/coppice-run/coppice/test/backends"
)

// functions are what the code of these tests can call. What hangs ends with over.
func functions(over <-chan struct{}) []coppice.HostFunction {
	type pair struct{ X, Y int }
	type nothing struct{}
	fails := func(name string, err error) coppice.HostFunction {
		return coppice.Function(name, "", func(context.Context, nothing) (any, error) { return nil, err })
	}
	return []coppice.HostFunction{
		coppice.Function("add", "adds", func(_ context.Context, p pair) (int, error) { return p.X + p.Y, nil }),
		{Name: "echo", Call: func(_ context.Context, args json.RawMessage) (any, error) { return args, nil }},
		{Name: "dash-ed", Call: func(context.Context, json.RawMessage) (any, error) { return "dashed", nil }},
		coppice.Function("who", "", func(ctx context.Context, _ nothing) (string, error) {
			c, ok := coppice.CallOf(ctx)
			return fmt.Sprintf("%v %s", ok, c.Session.Session), nil
		}),
		coppice.Function("say", "", func(ctx context.Context, _ nothing) (any, error) {
			c, _ := coppice.CallOf(ctx)
			c.Say("half way", map[string]int{"done": 50})
			return nil, nil
		}),
		fails("key", &messages.HostError{Type: "KeyError", Message: "no page 'x'"}),
		fails("typed", &messages.HostError{Type: "QuotaExceeded", Message: "come back tomorrow"}),
		fails("missing", fmt.Errorf("open the book: %w", fs.ErrNotExist)),
		fails("plain", errors.New("it did not work")),
		coppice.Function("boom", "", func(context.Context, nothing) (any, error) { panic("a secret") }),
		{Name: "huge", Call: func(context.Context, json.RawMessage) (any, error) { return strings.Repeat("x", 9<<20), nil }},
		{Name: "big", Call: func(context.Context, json.RawMessage) (any, error) { return strings.Repeat("x", 3<<20), nil }},
		{Name: "unsendable", Call: func(context.Context, json.RawMessage) (any, error) { return func() {}, nil }},
		{Name: "hang", Call: func(context.Context, json.RawMessage) (any, error) { <-over; return nil, nil }},
		{Name: "slow", Timeout: 100 * time.Millisecond, Call: func(context.Context, json.RawMessage) (any, error) { <-over; return nil, nil }},
		{Name: "person", Pause: true, Call: func(ctx context.Context, _ json.RawMessage) (any, error) {
			return nil, sleep(ctx, 1500*time.Millisecond)
		}},
		{Name: "machine", Call: func(ctx context.Context, _ json.RawMessage) (any, error) { return nil, sleep(ctx, 30*time.Second) }},
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// answers answers questions with a list, and then not at all.
func answers(list ...string) coppice.InputHandler {
	var n atomic.Int64
	return func(context.Context, messages.InputRequest) (string, error) {
		if i := int(n.Add(1)); i <= len(list) {
			return list[i-1], nil
		}
		return "", io.EOF
	}
}

// never lets every question wait.
func never(ctx context.Context, _ messages.InputRequest) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

// late answers after more than the active time of the call.
func late(ctx context.Context, _ messages.InputRequest) (string, error) {
	return "late", sleep(ctx, 1200*time.Millisecond)
}

// hosted are behaviours of code that reaches its host.
func hosted() map[string][]step {
	return map[string][]step{
		"a host function": {
			{cells: []string{"tool.add(X=40, Y=2)"}, output: "42"},
			{cells: []string{"tool.add({'X': 1, 'Y': 1})"}, output: "2"},
			{cells: []string{"tool['dash-ed']()"}, output: "'dashed'"},
			{cells: []string{"tool.who()"}, contains: []string{"true shared-"}},
		},
		"what code can call is seen": {
			{cells: []string{"'add' in dir(tool), 'dash-ed' in dir(tool), 'list_primitives' in dir(runtime)"}, output: "(True, True, True)"},
			{cells: []string{"help(tool)"}, contains: []string{"tool.add(x: int, y: int): adds", "tool.echo(...)"}},
			{cells: []string{"print(tool.add.__doc__)"}, output: "tool.add(x: int, y: int): adds"},
		},
		"why there is no answer": {
			{cells: []string{"input()"}, input: answers(strings.Repeat("x", 1<<20+1)), outcome: raised, contains: []string{"EOFError: there is no answer: the answer is longer than 1 MiB; put it in a file and answer with its name"}},
		},
		"values come back as they went": {
			{cells: []string{"v = {'a': [1, 2.5, None, True, 'naïve ☃ \\x00 \\n', {}], 'b': {'c': 10**30}}\ntool.echo(v) == v"}, output: "True"},
			{cells: []string{"tool.echo(t=(1, 2))"}, output: "{'t': [1, 2]}"},
			{cells: []string{"len(tool.big())"}, output: fmt.Sprint(3 << 20)},
		},
		"what JSON cannot say is told at once, with its place": {
			{cells: []string{"tool.echo(a={'b': [1, {2}]})"}, outcome: raised, contains: []string{"TypeError: tool.echo(): a['b'][1] is a set"}},
			{cells: []string{"tool.echo(a={1: 2})"}, outcome: raised, contains: []string{"TypeError: tool.echo(): a has the key 1"}},
			{cells: []string{"tool.echo(a=float('nan'))"}, outcome: raised, contains: []string{"ValueError: tool.echo(): a is nan"}},
			{cells: []string{"l = []; l.append(l)\ntool.echo(a=l)"}, outcome: raised, contains: []string{"ValueError: tool.echo(): a[0] contains itself"}},
			{cells: []string{"tool.echo(a='\\ud800')"}, outcome: raised, contains: []string{"surrogate"}},
			{cells: []string{"tool.echo(1)"}, outcome: raised, contains: []string{"TypeError: tool.echo() takes keyword arguments, or one dict"}},
			{cells: []string{"tool.echo(a='x' * (9 << 20))"}, outcome: raised, contains: []string{"ValueError", "is the most"}},
			{cells: []string{"tool._private"}, outcome: raised, contains: []string{"AttributeError"}},
			{cells: []string{"tool.add(X=1, Y=1)"}, output: "2", state: kept},
		},
		"errors of host functions have types": {
			{cells: []string{"try:\n    tool.key()\nexcept KeyError as e:\n    print(type(e).__name__, e, e.error_type)"}, output: "KeyError no page 'x' KeyError"},
			{cells: []string{"try:\n    tool.typed()\nexcept RuntimeError as e:\n    print(type(e).__name__, e, e.error_type)"}, output: "HostCallError come back tomorrow QuotaExceeded"},
			{cells: []string{"try:\n    tool.missing()\nexcept FileNotFoundError as e:\n    print(e)"}, output: "open the book: file does not exist"},
			{cells: []string{"tool.plain()"}, outcome: raised, contains: []string{"HostCallError: it did not work"}},
			{cells: []string{"tool.add(Z=1)"}, outcome: raised, contains: []string{"TypeError: add(): unknown field"}},
			{cells: []string{"tool.add(X=1)"}, outcome: raised, contains: []string{"TypeError: add(): the required argument 'y' is missing"}},
			{cells: []string{"tool.nope()"}, outcome: raised, contains: []string{"there is no host function nope; there are add,"}},
			{cells: []string{"tool.huge()"}, outcome: raised, contains: []string{"ValueError: huge returned"}},
			{cells: []string{"tool.unsendable()"}, outcome: raised, contains: []string{"TypeError: unsendable returned a value that cannot be sent"}},
		},
		"a host function that panics or hangs harms its own call alone": {
			{cells: []string{"x = 1"}},
			{cells: []string{"tool.boom()"}, outcome: raised, contains: []string{"the host function boom failed inside"}, check: func(t *testing.T, r messages.Result) {
				require.NotContains(t, r.Text, "a secret")
			}},
			{cells: []string{"tool.slow()"}, outcome: raised, contains: []string{"TimeoutError: the host function slow did not answer within 100ms"}},
			{cells: []string{"tool.hang()"}, timeout: time.Second, outcome: timedOut, state: kept},
			{cells: []string{"x + tool.add(X=1, Y=0)"}, output: "2", state: kept},
		},
		"calls from threads, at the same time": {
			{cells: []string{"from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(8) as pool:\n    got = list(pool.map(lambda i: tool.add(X=i, Y=1), range(100)))\ngot == list(range(1, 101))"}, output: "True"},
		},
		"calls from tasks, at the same time": {
			{cells: []string{"import asyncio\ngot = await asyncio.gather(*[tool.add.aio(X=i, Y=1) for i in range(50)])\ngot == list(range(1, 51))"}, output: "True"},
			{cells: []string{"try:\n    await asyncio.wait_for(tool.machine.aio(), 0.2)\nexcept asyncio.TimeoutError:\n    print('gave up')"}, output: "gave up"},
			{cells: []string{"tool.add(X=1, Y=1)"}, output: "2", state: kept},
		},
		"the host answers only while a cell runs": {
			{cells: []string{"import threading, time\nhow = []\ndef later():\n    time.sleep(0.3)\n    try: how.append(tool.add(X=1, Y=1))\n    except RuntimeError as e: how.append(e.error_type)\nt = threading.Thread(target=later); t.start()"}},
			{cells: []string{"print('between')"}},
			{cells: []string{"t.join(); how"}, contains: []string{""}, check: func(t *testing.T, r messages.Result) {
				require.Contains(t, []string{"['CellEnded']", "[2]"}, r.Cells[0].Output, "it was served by the cell that ran, or by none")
			}},
		},
		"an interrupted call leaves the session well": {
			{cells: []string{"x = 1"}},
			{cells: []string{"tool.machine()"}, timeout: time.Second, outcome: timedOut, state: kept},
			{cells: []string{"tool.add(X=x, Y=1)"}, output: "2", state: kept},
		},
		"a kernel killed in the middle of a call is lost": {
			{cells: []string{"import os, threading\nthreading.Timer(0.3, lambda: os.kill(os.getpid(), 9)).start()\ntool.machine()"}, outcome: lost, state: stateLost},
			{cells: []string{"tool.add(X=1, Y=1)"}, output: "2", state: fresh},
		},
		"a function that pauses costs no active time": {
			{cells: []string{"tool.person(); tool.person(); 'done'"}, timeout: time.Second, output: "'done'"},
			{cells: []string{"tool.person(); tool.machine()"}, timeout: time.Second, outcome: timedOut, state: kept},
		},
		"import tells that nothing needs to be": {
			{cells: []string{"import runtime"}, outcome: raised, contains: []string{"runtime is there in every cell and is not imported"}, check: func(t *testing.T, r messages.Result) {
				require.Empty(t, r.Cells[0].Error.Hint, "the message says it all, and no package is the way")
			}},
			{cells: []string{"import runtime_of_others"}, outcome: raised, contains: []string{"No module named 'runtime_of_others'"}, check: func(t *testing.T, r messages.Result) {
				require.NotContains(t, r.Text, "is there in every cell")
			}},
			{cells: []string{"tool = 5"}},
			{cells: []string{"tool"}, output: "5"},
		},

		"input is answered": {
			{cells: []string{"name = input('name? ')\nname"}, input: answers("Ada ☃"), contains: []string{"'Ada ☃'"}},
			{cells: []string{"import getpass\ngetpass.getpass('password? ')"}, input: func(_ context.Context, q messages.InputRequest) (string, error) {
				return fmt.Sprintf("%s%v %d", q.Prompt, q.Password, q.IdleTimeoutMS), nil
			}, contains: []string{"'password? true 300000'"}},
			{cells: []string{"[input(), input()]"}, input: answers("", "2"), contains: []string{"['', '2']"}},
			{cells: []string{"input()"}, input: answers(), outcome: raised, contains: []string{"EOFError"}},
			{cells: []string{"input()"}, outcome: raised, contains: []string{"interactive input is not supported"}, check: stdinRequested},
		},
		"waiting for input costs no active time": {
			{cells: []string{"a = input(); b = input(); a + b"}, input: late, timeout: time.Second, contains: []string{"'latelate'"}},
			{cells: []string{"import time\nprint(input())\nwhile True: time.sleep(0.05)"}, input: late, timeout: time.Second, outcome: timedOut, state: kept, contains: []string{"late"}},
		},
		"a question that nobody answers": {
			{cells: []string{"x = 1"}},
			{cells: []string{"input('x? ')"}, input: never, idle: 300 * time.Millisecond, outcome: raised, contains: []string{"InputTimeout: input request timed out: no answer came within 0.3 seconds"}},
			{
				cells: []string{"try:\n    input()\nexcept TimeoutError as e:\n    print('caught')\nwhile True: pass"}, input: never, idle: 300 * time.Millisecond,
				timeout: time.Second, outcome: timedOut, state: kept, contains: []string{"caught"},
			},
			{cells: []string{"x"}, output: "1", state: kept},
		},
		"a question is interrupted": {
			{cells: []string{"x = 1"}},
			{cells: []string{"input()"}, input: never, leave: 500 * time.Millisecond, outcome: messages.OutcomeCancelled, state: kept},
			{cells: []string{"x"}, output: "1", state: kept},
			{cells: []string{"input()"}, input: answers("well"), contains: []string{"'well'"}, state: kept},
		},
		"a kernel killed while it asks is lost": {
			{cells: []string{"import os, threading\nthreading.Timer(0.3, lambda: os.kill(os.getpid(), 9)).start()\ninput()"}, input: never, outcome: lost, state: stateLost},
			{cells: []string{"input()"}, input: answers("well"), contains: []string{"'well'"}, state: fresh},
		},

		"names are reset": {
			{cells: []string{"import os\nhome = os.getcwd()\nx = 1\nos.mkdir('sub'); os.chdir('sub')\nos.environ['MARK'] = '1'; os.environ.pop('HOME')\nimport builtins\nbuiltins.oct = lambda _: 99; builtins.extra = 1\ndel x, home\ny = 2"}},
			{cells: []string{
				"'y' in globals()", "import os\n(os.path.basename(os.getcwd()), 'MARK' in os.environ, 'HOME' in os.environ, oct(8), 'extra' in dir(__builtins__))", "tool.add(X=1, Y=1)", "display",
			}, names: true, state: kept, check: func(t *testing.T, r messages.Result) {
				require.Equal(t, "False", r.Cells[0].Output)
				require.NotContains(t, r.Cells[1].Output, "'sub'")
				require.Contains(t, r.Cells[1].Output, "False, True, '0o10', False)")
				require.Equal(t, "2", r.Cells[2].Output)
			}},
			{cells: []string{"import sys\n'json' in sys.modules"}, output: "True", state: kept},
		},
		"names whose finalisers hang are gone all the same": {
			{cells: []string{"import time\nclass Slow:\n    def __del__(self, sleep=time.sleep):\n        while True: sleep(.01)\nx = Slow()"}},
			{names: true, timeout: time.Second, outcome: timedOut},
			{cells: []string{"'x' in globals()"}, contains: []string{"False"}},
		},
	}
}

func stdinRequested(t *testing.T, r messages.Result) { require.True(t, r.StdinRequested) }

func TestCodeReachesItsHost(t *testing.T) {
	for _, backend := range []string{backends.Gateway, backends.Runner} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			over := make(chan struct{})
			host := start(t, backend, coppice.Options{HostCalls: coppice.HostCallOptions{Functions: functions(over)}})
			t.Cleanup(func() { close(over) }) // before the host is shut down
			runAll(t, host, backend, hosted())
		})
	}
}

// TestQuestionsAreAnsweredOnce follows the questions of a stream.
func TestQuestionsAreAnsweredOnce(t *testing.T) {
	for _, backend := range ofTheHost() {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			held(t, backend)
			log := filepath.Join(t.TempDir(), "audit.jsonl")
			host := start(t, backend, coppice.Options{InputTimeout: time.Minute, Audit: &audit.Options{Path: log}})
			s := host.Session("a", coppice.In(t.TempDir()))
			other := host.Session("b", coppice.In(t.TempDir()))
			submit := func(s *coppice.Session, id, value string) messages.InputStatus {
				status, err := s.SubmitInput(id, value)
				require.NoError(t, err)
				return status
			}
			var asked messages.InputRequest
			var result messages.Result
			for e, err := range s.Stream(t.Context(), coppice.Request{AllowStdin: true, Cells: []messages.Cell{{Code: "print(input('a? '))"}}}) {
				require.NoError(t, err)
				switch e := e.(type) {
				case messages.InputRequest:
					asked = e
					require.Equal(t, "a? ", e.Prompt)
					require.EqualValues(t, 60_000, e.IdleTimeoutMS)
					require.Equal(t, messages.InputUnknown, submit(s, "nonsense", "x"))
					require.Equal(t, messages.InputUnknown, submit(other, e.ID, "x"), "a question belongs to its session")
					for _, value := range []string{"two\nlines", "\n\n", "\xff"} {
						_, err := s.SubmitInput(e.ID, value)
						var refused *coppice.RequestError
						require.ErrorAs(t, err, &refused, "%q is no line, and the question waits on", value)
					}
					require.Equal(t, messages.InputAccepted, submit(s, e.ID, "first\n"))
					require.Equal(t, messages.InputAnswered, submit(s, e.ID, "second"))
				case messages.Final:
					result = e.Result
				}
			}
			require.Equal(t, messages.OutcomeOK, result.Outcome)
			require.Contains(t, result.Text, "first")
			require.NotContains(t, result.Text, "second")
			require.Equal(t, messages.InputAnswered, submit(s, asked.ID, "third"))

			_, err := s.SubmitInput(asked.ID, "\xff")
			require.ErrorContains(t, err, "not valid UTF-8")
			for e, err := range s.Stream(t.Context(), coppice.Request{AllowStdin: true, InputTimeout: 100 * time.Millisecond, Mode: messages.ModePerCall, Cells: []messages.Cell{{Code: "input()"}}}) {
				require.NoError(t, err)
				if q, ok := e.(messages.InputRequest); ok {
					asked = q
				}
			}
			require.Equal(t, messages.InputExpired, submit(s, asked.ID, "too late"))
			lines, err := os.ReadFile(log)
			require.NoError(t, err)
			require.Equal(t, 2, strings.Count(string(lines), "\n"))
			require.Contains(t, string(lines), `"outcome":"ok"`)
			require.NotContains(t, string(lines), "input(", "the code is a hash")
		})
	}
}

// TestTheBudgetOfACell refuses calls beyond it, and a stream tells of each call.
func TestTheBudgetOfACell(t *testing.T) {
	for _, backend := range ofTheHost() {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			held(t, backend)
			host := start(t, backend, coppice.Options{HostCalls: coppice.HostCallOptions{Functions: functions(nil), MaxCalls: 2}})
			s := host.Session("", coppice.In(t.TempDir()))
			own := coppice.Function("add", "subtracts", func(_ context.Context, p struct{ X, Y int }) (int, error) { return p.X - p.Y, nil })
			var seen []string
			req := coppice.Request{HostFunctions: []coppice.HostFunction{own}, Cells: []messages.Cell{{Code: "tool.add(X=3, Y=2)"}, {Code: "tool.say()\ntool.key()"}, {Code: "1"}}}
			for e, err := range s.Stream(t.Context(), req) {
				require.NoError(t, err)
				switch e := e.(type) {
				case messages.HostCallStep:
					text := fmt.Sprint(e.Cell, e.Name, e.Phase)
					if e.Error != nil {
						text += e.Error.Type
					}
					seen = append(seen, text)
				case messages.HostEvent:
					seen = append(seen, e.Name+string(e.Data))
				case messages.ExecuteResult:
					text, _ := e.Data.Text(messages.MIMEPlain)
					require.Equal(t, "1", text, "the call's own function takes the place of the host's")
				}
			}
			require.Equal(t, []string{"0addstarted", "0addcompleted", "1saystarted", `half way{"done":50}`, "1saycompleted", "1keystarted", "1keyerrorKeyError"}, seen)
			r := run(t, s, step{cells: []string{"tool.say()\ntool.say()", "tool.say()\ntool.say()\ntool.say()"}})
			require.Equal(t, messages.OutcomeOK, r.Cells[0].Outcome)
			require.Contains(t, r.Text, "this cell has made its 2 calls of the host")
		})
	}
}

// TestAFunctionMayUseItsSession: a call of the session that calls is queued
// behind the cell, so the function is given what it can have, an answer in time.
func TestAFunctionMayUseItsSession(t *testing.T) {
	for _, backend := range ofTheHost() {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			held(t, backend)
			var host *coppice.Host
			var key messages.SessionKey
			host = start(t, backend, coppice.Options{HostCalls: coppice.HostCallOptions{Functions: []coppice.HostFunction{
				coppice.Function("again", "", func(ctx context.Context, in struct{ Other bool }) (string, error) {
					k, within := key, time.Second
					if in.Other {
						k.Session += "-other"
						within = time.Minute
					}
					r, err := host.Session(k.Session, coppice.In(k.Cwd)).Execute(ctx, coppice.Request{Cells: []messages.Cell{{Code: "1+1"}}, Timeout: within})
					return string(r.Outcome) + " " + r.Cells[0].Output, err
				}),
			}}})
			key = messages.SessionKey{Session: "a", Cwd: t.TempDir()}
			r := run(t, host.Session(key.Session, coppice.In(key.Cwd)), step{cells: []string{"tool.again(Other=True)", "tool.again(Other=False)"}})
			require.Equal(t, "'ok 2'", r.Cells[0].Output)
			require.Equal(t, "'timeout '", r.Cells[1].Output)
		})
	}
}
