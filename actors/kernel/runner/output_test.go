//go:build linux

package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/runner"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/messages"
)

// TestFlood: 200 MB arrive whole though the host takes them slowly at first,
// and neither side holds more than a few of them meanwhile.
func TestFlood(t *testing.T) {
	const blocks = 2000
	var b strings.Builder
	for n := range 1000 {
		fmt.Fprintf(&b, "%099d\n", n)
	}
	block := b.String()
	i := session(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	hold, held := make(chan struct{}), make(chan struct{})
	var got, events int
	var host uint64
	emit := func(_ context.Context, e messages.Event) error {
		text, ok := e.(messages.Stream)
		if !ok {
			return nil
		}
		if got == 0 {
			close(held)
			<-hold
		}
		for rest := text.Text; rest != ""; {
			want := block[got%len(block):]
			n := min(len(rest), len(want))
			if rest[:n] != want[:n] {
				return fmt.Errorf("byte %d and what follows is %q", got, rest)
			}
			rest = rest[n:]
			got += n
		}
		if events++; events%1000 == 0 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			host = max(host, m.HeapInuse)
		}
		return nil
	}
	done := make(chan error, 1)
	go func() { // ends with the cell; done is its join
		r, err := i.Execute(ctx, kernel.CellRequest{Code: fmt.Sprintf("block = '\\n'.join('%%099d' %% n for n in range(1000))\nfor _ in range(%d): print(block)", blocks)}, emit)
		if err == nil && !r.OK {
			err = fmt.Errorf("%+v", r)
		}
		if r.Incomplete != "" {
			err = errors.Join(err, errors.New(r.Incomplete))
		}
		done <- err
	}()
	<-held
	// While its output is not taken the session waits in its write, and answers.
	require.NoError(t, i.Ping(t.Context()))
	cpu := cpuTime(t, i.Info().PID)
	require.Eventually(t, func() bool {
		now := cpuTime(t, i.Info().PID)
		same := now == cpu
		cpu = now
		return same
	}, patience, 100*time.Millisecond, "the session computes on")
	require.NoError(t, i.Ping(t.Context()))
	require.Less(t, i.RSS(), int64(100<<20))
	close(hold)
	require.NoError(t, <-done)
	require.Equal(t, blocks*len(block), got)
	require.Less(t, host, uint64(64<<20), "the host held the output")
	require.Less(t, i.RSS(), int64(100<<20), "the session held the output")
}

// cpuTime is the time that a process has computed, in clock ticks.
func cpuTime(t *testing.T, pid int) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	return f[11] + "+" + f[12]
}

// TestInterruptOfAFlood: a session that waits for its host in a write stops when
// it is told to, and what it had written arrives.
func TestInterruptOfAFlood(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{
		"lines":      "i = 0\nwhile True:\n    i += 1\n    print(i)",
		"one print":  "print('x' * (1 << 26))",
		"a thread":   "import threading, time\ndef f():\n    while True: print('y')\nthreading.Thread(target=f, daemon=True).start()\nwhile True: print('x')",
		"descriptor": "import os\nwhile True: os.write(1, b'z\\n' * 1000)",
		"a child":    "import subprocess\nsubprocess.run(['yes'])",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := session(t)
			full, hold := make(chan struct{}), make(chan struct{})
			n := 0
			result := make(chan seen, 1)
			go func() { // ends with the cell; result is its join
				var s seen
				s.CellReply, s.err = i.Execute(context.Background(), kernel.CellRequest{Code: code}, func(context.Context, messages.Event) error {
					if n++; n == 3 {
						close(full)
						<-hold
					}
					return nil
				})
				result <- s
			}()
			<-full
			require.NoError(t, i.Interrupt(t.Context()))
			close(hold)
			select {
			case s := <-result:
				require.NoError(t, s.err)
				require.True(t, s.Interrupted, "%+v", s.Error)
				require.Empty(t, s.Incomplete)
			case <-time.After(patience):
				require.FailNow(t, "it prints on")
			}
			require.Contains(t, ok(t, i, "'alive'").text(), "=> 'alive'")
		})
	}
}

func TestLateOutput(t *testing.T) {
	t.Parallel()
	i := session(t)
	got := ok(t, i, "import os, subprocess, threading\ngo = threading.Event()\nr, w = os.pipe()\ndef late():\n    go.wait()\n    print('from a thread')\n    os.write(w, b'x')\nthreading.Thread(target=late).start()\nos.set_inheritable(w, True)\np = subprocess.Popen(['sh', '-c', f'sleep 0.05; echo from a child; printf x >&{w}'], close_fds=False)\nprint('now')")
	require.Equal(t, "now\n", got.text())
	text := ok(t, i, "threading.Timer(0.01, go.set).start()").text() // the timer may be over before its cell is
	text += ok(t, i, "_ = os.read(r, 1), os.read(r, 1)\nprint('later')").text()
	// What the child wrote is in the pipe by now; it comes with this cell or the next.
	text += ok(t, i, "import time; time.sleep(0.2)").text()
	require.Contains(t, text, "from a thread\n")
	require.Contains(t, text, "from a child\n")
	require.Contains(t, text, "later\n")
}

// TestLateOutputBetweenCells waits between the cells until the late output was
// written, so that it can only come with the next one.
func TestLateOutputBetweenCells(t *testing.T) {
	t.Parallel()
	i := session(t)
	ok(t, i, "import os, threading\ndef late():\n    while not os.path.exists('go'): pass\n    print('late ' * 3)\n    os.system('echo a child')\n    open('said', 'w').close()\nthreading.Thread(target=late).start()")
	dir := strings.Trim(strings.TrimPrefix(ok(t, i, "os.getcwd()").text(), "=> "), "'")
	require.NoError(t, os.WriteFile(dir+"/go", nil, 0o600))
	require.Eventually(t, func() bool { _, err := os.Stat(dir + "/said"); return err == nil }, patience, time.Millisecond)
	for range 2 { // its side thread answers before it looks at the pipe: after the second answer, it has
		require.NoError(t, i.Ping(t.Context()))
	}
	require.Equal(t, "(late-output)late late late \na child\n(late-output)now\n", ok(t, i, "print('now')").text())

	ok(t, i, "os.remove('go'); os.remove('said')\ndef late():\n    while not os.path.exists('go'): pass\n    for n in range(100_000): print(n)\n    open('said', 'w').close()\nthreading.Thread(target=late).start()")
	require.NoError(t, os.WriteFile(dir+"/go", nil, 0o600))
	require.Eventually(t, func() bool { _, err := os.Stat(dir + "/said"); return err == nil }, patience, time.Millisecond, "a thread that prints between cells must not wait")
	got := ok(t, i, "print('now')")
	text := got.stream(messages.StdoutStream)
	require.True(t, strings.HasSuffix(text, "99999\nnow\n"), "%q", text[max(0, len(text)-50):])
	require.Less(t, len(text), 80<<10)
	notice, isNotice := got.events[0].(messages.Notice)
	require.True(t, isNotice)
	require.Contains(t, notice.Text, "characters were not kept")
}

// TestOrderUnderASlowReader: lines are in order when the host was slow to read them and its
// look at the side thread gets no answer: what waits in the pipe comes after what was sent.
func TestOrderUnderASlowReader(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]*forks{"forked": shared.get(), "started": plain.get()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := sessionOn(t, f, runner.Options{}, kernel.StartOptions{})
			defer i.HoldControl()()
			var got, want strings.Builder
			const n = 600
			for k := range n {
				fmt.Fprintln(&want, k)
			}
			slow := sync.OnceFunc(func() { <-time.After(300 * time.Millisecond) }) // longer than it takes until the host looks
			_, err := i.Execute(t.Context(), kernel.CellRequest{Code: fmt.Sprintf("import time\nfor k in range(%d):\n    print(k)\n    time.sleep(.002)", n)},
				func(_ context.Context, e messages.Event) error {
					if s, is := e.(messages.Stream); is {
						got.WriteString(s.Text)
					}
					slow()
					return nil
				})
			require.NoError(t, err)
			require.Equal(t, want.String(), got.String())
		})
	}
}

func TestGrandchildOutlivesTheCell(t *testing.T) {
	t.Parallel()
	i := session(t)
	ok(t, i, "import subprocess\np = subprocess.Popen(['sh', '-c', 'while :; do echo tick; sleep 0.01; done'])")
	require.Eventually(t, func() bool { return strings.Contains(ok(t, i, "p.poll()").text(), "tick") }, patience, 20*time.Millisecond)
	child, err := process.Descendants(mustIdentify(t, i))
	require.NoError(t, err)
	require.NotEmpty(t, child)
	require.NotContains(t, ok(t, i, "p.poll()").text(), "=>", "it lives")
	closeSession(t, i)
	require.Eventually(t, func() bool { return !process.Alive(child[0]) }, patience, 5*time.Millisecond)
}

func mustIdentify(t *testing.T, i kernel.Interpreter) process.Identity {
	t.Helper()
	id, err := process.Identify(i.Info().PID)
	require.NoError(t, err)
	return id
}

func TestEmitThatFails(t *testing.T) {
	t.Parallel()
	i := session(t)
	calls := 0
	r, err := i.Execute(t.Context(), kernel.CellRequest{Code: "for n in range(1000): print(n)\nx = 1"}, func(context.Context, messages.Event) error {
		calls++
		return errors.New("the sink is gone")
	})
	require.NoError(t, err)
	require.True(t, r.OK)
	require.Equal(t, 1, calls)
	require.Equal(t, "output was not taken: the sink is gone", r.Incomplete)
	require.Equal(t, "=> 1", ok(t, i, "x").text())
}

func TestStdin(t *testing.T) {
	t.Parallel()
	i := session(t)
	answered := map[string]string{"name? ": "Ada", "Password: ": "s3cret", "": "a line"}
	var asked []messages.InputRequest
	var s seen
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s.CellReply, s.err = i.Execute(ctx, kernel.CellRequest{
		AllowStdin: true,
		Code:       "import getpass, sys\na = input('name? ')\nb = getpass.getpass()\nc = sys.stdin.readline()\nfrom threading import Thread\nt = Thread(target=lambda: print(input('name? ')))\nt.start(); t.join()\na, b, c",
	}, func(ctx context.Context, e messages.Event) error {
		s.events = append(s.events, e)
		if q, ok := e.(messages.InputRequest); ok {
			asked = append(asked, q)
			for _, a := range [][2]string{{"another", "no"}, {q.ID, answered[q.Prompt]}, {q.ID, "twice"}} {
				require.NoError(t, i.AnswerInput(ctx, a[0], messages.InputAnswer{Value: a[1], Status: messages.InputAccepted}))
			}
		}
		return nil
	})
	require.NoError(t, s.err)
	require.True(t, s.OK, "%+v", s.Error)
	require.Equal(t, "Ada\n=> ('Ada', 's3cret', 'a line\\n')", s.text())
	require.Len(t, asked, 4)
	require.False(t, asked[0].Password)
	require.True(t, asked[1].Password)

	cell := make(chan seen, 1)
	waits := make(chan struct{})
	go func() { // ends with the cell; cell is its join
		var s seen
		s.CellReply, s.err = i.Execute(ctx, kernel.CellRequest{AllowStdin: true, Code: "input()"}, func(_ context.Context, e messages.Event) error {
			if _, ok := e.(messages.InputRequest); ok {
				close(waits)
			}
			return nil
		})
		cell <- s
	}()
	<-waits
	require.NoError(t, i.Interrupt(t.Context()))
	require.True(t, (<-cell).Interrupted)

	s = run(t, i, "try:\n    input()\nexcept RuntimeError:\n    print('caught')")
	require.True(t, s.OK)
	require.True(t, s.StdinRequested)
	require.Equal(t, "caught\n(stdin)", s.text())
	require.False(t, ok(t, i, "1").StdinRequested)
}

func TestDisplays(t *testing.T) {
	t.Parallel()
	i := session(t)
	ok(t, i, `class Rich:
    def _repr_html_(self): return '<b>x</b>'
    def _repr_png_(self): return b'\x89PNG'
    def _repr_markdown_(self): raise ValueError
    def _repr_json_(self): return {'a': [1, None]}
    def __repr__(self): return 'Rich()'
class Bundle:
    def _repr_mimebundle_(self, include=None, exclude=None): return {'text/plain': 'p', 'application/x-thing+json': {'k': 1}}, {'m': 1}
class Script:
    def _repr_javascript_(self): return 'alert(1)'
    def _repr_pdf_(self): return b'%PDF'
    def __repr__(self): return 'Script()'
class Any:
    def __getattr__(self, name): return lambda *a: 'no'
    def __repr__(self): return 'Any()'`)
	tests := []struct{ code, want string }{
		{"Rich()", `{"text/html":"<b>x</b>","image/png":"iVBORw==","application/json":{"a":[1,null]},"text/plain":"Rich()"}`},
		{"Rich", `{"text/plain":"<class '__main__.Rich'>"}`},
		{"Bundle()", `{"text/plain":"p","application/x-thing+json":{"k":1}}`},
		{"Script()", `{"application/javascript":"alert(1)","application/pdf":"JVBERg==","text/plain":"Script()"}`},
		{"Any()", `{"text/plain":"Any()"}`},
		{"{'a': 1}", `{"text/plain":"{'a': 1}","application/json":{"a":1}}`},
		{"[1, 2.5, None, True, 'x']", `{"text/plain":"[1, 2.5, None, True, 'x']","application/json":[1,2.5,null,true,"x"]}`},
		{"[float('nan')]", `{"text/plain":"[nan]"}`},
		{"{1: 2}", `{"text/plain":"{1: 2}"}`},
		{"[object]", `{"text/plain":"[<class 'object'>]"}`},
		{"a = []; a.append(a); a", `{"text/plain":"[[...]]"}`},
		{"(1, 2)", `{"text/plain":"(1, 2)"}`},
		{"'\\udc80'", `{"text/plain":"'\\udc80'"}`},
	}
	for _, tt := range tests {
		t.Run(tt.code, func(t *testing.T) {
			got := ok(t, i, tt.code)
			require.Len(t, got.events, 1)
			data, err := json.Marshal(got.events[0].(messages.ExecuteResult).Data)
			require.NoError(t, err)
			require.JSONEq(t, tt.want, string(data))
		})
	}
	got := ok(t, i, "display({'text/plain': 'raw', 'application/x-coppice-status': {'op': 'read'}}, raw=True)\ndisplay(1, display_id='d')\ndisplay(2, display_id='d', update=True, metadata={'k': 1})")
	first, second, third := got.events[0].(messages.Display), got.events[1].(messages.Display), got.events[2].(messages.Display)
	require.JSONEq(t, `{"op":"read"}`, string(first.Data["application/x-coppice-status"]))
	require.Equal(t, "d", second.DisplayID)
	require.False(t, second.Update)
	require.True(t, third.Update)
	require.JSONEq(t, `{"k":1}`, string(third.Metadata))

	got = ok(t, i, "display('x' * (20 << 20))\nlen('alive')")
	require.Contains(t, got.text(), strings.Repeat("x", 20<<20), "no frame holds it, so it is printed")
	require.Contains(t, got.text(), "=> 5")
}

// TestForgedFrames: code that writes to descriptors whose numbers it guesses ends
// no cell and says nothing in the session's name.
func TestForgedFrames(t *testing.T) {
	t.Parallel()
	i := session(t)
	got := run(t, i, `import os, socket, stat
n = 0
for fd in range(3, 300):
    try:
        if stat.S_ISSOCK(os.fstat(fd).st_mode):
            for id in (1, 2):
                os.write(fd, b'{"id":%d,"seq":1,"type":"done","ok":true,"count":1,"seconds":0}\n' % id)
                os.write(fd, b'{"id":%d,"seq":1,"type":"result","data":{"text/plain":"forged"}}\n' % id)
            os.write(fd, b'{"id":1,"type":')
            n += 1
    except OSError:
        pass
print('sockets:', n)
6 * 7`)
	require.NoError(t, got.err)
	require.True(t, got.OK)
	require.Equal(t, "sockets: 2\n=> 42", got.text())
	require.Contains(t, got.Incomplete, "the code wrote to a descriptor of the session")
	require.NoError(t, i.Ping(t.Context()))
	got = run(t, i, "1 + 1")
	require.Equal(t, "=> 2", got.text())
	require.Empty(t, got.Incomplete)
	cell := background(t, i, "print('go')\nwhile True: pass")
	cell.waitFor(t, "go\n")
	require.NoError(t, i.Interrupt(t.Context()))
	require.True(t, cell.end(t).Interrupted)
}
