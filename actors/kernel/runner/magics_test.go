//go:build linux

package runner_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/runner"
	"github.com/coppice-run/coppice/messages"
)

func TestMagics(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		cells []string // all but the last must end well
		want  string   // a pattern for the last, as seen.text has it
	}{
		{"pwd", []string{"%pwd"}, `^=> '/.*'$`},
		{"pwd as a value", []string{"x = %pwd\nimport os\nx == os.getcwd()"}, `^=> True$`},
		{"cd", []string{"%cd /\n%cd -\n%cd /", "import os\nos.getcwd()"}, `^=> '/'$`},
		{"ls", []string{"open('a b', 'w').close()\n%ls"}, `^a b\n$`},
		{"env", []string{"%env COPPICE_X=1 2\n%set_env COPPICE_Y 3\n%env COPPICE_X"}, `^env: COPPICE_X=1 2\nenv: COPPICE_Y=3\n=> '1 2'$`},
		{"time", []string{"%time 6 * 7"}, `^CPU time: .* wall time: \S+ .?s\n=> 42$`},
		{"time of a cell", []string{"%%time\nx = 1\nx + 1"}, `wall time: .*\n=> 2$`},
		{"time of an await", []string{"import asyncio\n%time await asyncio.sleep(0, 5)"}, `=> 5$`},
		{"timeit", []string{"%timeit -n 10 -r 2 sum(range(10))"}, `^10 loops, best of 2: \S+ .?s per loop\n$`},
		{"timeit of a cell", []string{"%%timeit -n1 -r1 y = 2\ny * 2"}, `^1 loop, best of 1: `},
		{"who", []string{"a, b = 1, 's'\n%who\n%who str\n%whos"}, `^a\tb\nb\nName  Type  Value\na     int   1\nb     str   's'\n$`},
		{"reset", []string{"a = 1", "%reset", "%who\ndisplay(1)"}, `^There are no variables.\n<1>$`},
		{"run", []string{"%%writefile d/s.py\nimport sys\nv = sys.argv[1]\nif __name__ == '__main__': print('main', __file__)", "%run d/s.py x", "v"}, `^=> 'x'$`},
		{"writefile", []string{"%%writefile f\na\n", "%%writefile -a f\nb\n", "print(open('f').read())"}, `^a\n\nb\n\n\n$|^a\nb\n\n$`},
		{"writefile ends its last line", []string{"%%writefile f\na", "%%writefile -a f\nb", "open('f').read()"}, `^=> 'a\\nb\\n'$`},
		{"load", []string{"%%writefile f.py\nz = 9\nz", "%load f.py"}, `^z = 9\nz\n=> 9$`},
		{"bash", []string{"%%bash\nfor i in 1 2; do echo $i; done\necho \"it's\""}, `^1\n2\nit's\n$`},
		{"what bash writes to stderr", []string{"%%bash\necho e >&2"}, `^\[e\n\]$`},
		{"a shell command", []string{"!echo hi; echo 'a' \\\n  b\n_exit_code"}, `^hi\na b\n=> 0$`},
		{"a shell command with a quote", []string{"!echo \"it's\" # not python\nx = 1"}, `^it's\n$`},
		{"its exit code", []string{"!exit 3\n_exit_code"}, `^=> 3$`},
		{"its lines", []string{"x = !printf 'a\\nb\\n'; echo e >&2\nx, x.n, x.s, x.returncode"}, `^\[e\n\]=> \(\['a', 'b'\], 'a\\nb', 'a b', 0\)$`},
		{"values in a command", []string{"name = 'n'\nd = {'k': 5}\n!echo {name} $name {d['k'] + 1} ${{HOME:+x}} {{name}} $$name | cat\n!echo a | awk '{print $1}'"}, `^n n 6 x \{name\}\na\n$`},
		{"in a block", []string{"for i in range(2):\n    !echo {i}\n    if i:\n        %time None"}, `^0\n1\nCPU time`},
		{"capture", []string{"%%capture out\nimport os, sys\nprint('o')\nos.system('echo fd')\nprint('e', file=sys.stderr)\ndisplay(5)", "print('now')\nout.stdout, out.stderr, len(out.outputs)"}, `^now\n=> \('o\\nfd\\n', 'e\\n', 1\)$`},
		{"a string is no magic", []string{"s = '''\n%pwd\n!ls\n%%bash\n'''\n!echo yes\ns"}, `^yes\n=> '\\n%pwd\\n!ls\\n%%bash\\n'$`},
		{"nor is an operator", []string{"!true\nx = (7\n% 4)\ny = 7 \\\n% 4\nx, y"}, `^=> \(3, 3\)$`},
		{"nor a comment", []string{"# %pwd\n!true\n1 # !ls"}, `^=> 1$`},
		{"matplotlib", []string{"%matplotlib inline"}, `^$`},
		{"line numbers", []string{"!true \\\n  x\ntry:\n    1/0\nexcept Exception as e:\n    n = e.__traceback__.tb_lineno\nn"}, `^=> 4$`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			i := session(t)
			var got seen
			for _, code := range tt.cells {
				got = ok(t, i, code)
			}
			require.Regexp(t, tt.want, got.text())
		})
	}
}

func TestMagicsThatFail(t *testing.T) {
	t.Parallel()
	tests := []struct{ code, kind, message string }{
		{"%nonsense", "UsageError", "there is no %nonsense; there are %cd"},
		{"%%nonsense\nx", "UsageError", "there is no %%nonsense; there are %%bash"},
		{"%set_env", "UsageError", "usage: %set_env NAME=VALUE"},
		{"%env COPPICE_NOT_SET", "UsageError", "the environment has no COPPICE_NOT_SET"},
		{"%run", "UsageError", "usage: %run PATH"},
		{"%run no/such/file.py", "FileNotFoundError", "No such file"},
		{"%cd /no/such/folder", "FileNotFoundError", "No such file"},
		{"%%bash\nexit 4", "CalledProcessError", "returned non-zero exit status 4"},
		{"%%capture a b\n1", "UsageError", "usage: %%capture"},
		{"%%writefile\nx", "UsageError", "usage: %%writefile"},
		{"%time", "UsageError", "usage: %time"},
		{"%time 1/0", "ZeroDivisionError", "division by zero"},
		{"%pip no-such-command", "CalledProcessError", "returned non-zero exit status"},
		{"!ls\nx = = 1", "SyntaxError", "invalid syntax"},
		{"x = 'unclosed\n!ls", "SyntaxError", ""},
		{"%", "SyntaxError", "invalid syntax"},
		{"a %", "SyntaxError", "invalid syntax"},
	}
	i := session(t)
	for _, tt := range tests {
		t.Run(tt.code, func(t *testing.T) {
			got := run(t, i, tt.code)
			require.NoError(t, got.err)
			require.False(t, got.OK)
			require.Equal(t, tt.kind, got.Error.Name, got.Error.Message)
			require.Contains(t, got.Error.Message, tt.message)
		})
	}
}

func TestShellCommandsAreInterrupted(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"!echo go; sleep 1000; echo never", "%%bash\necho go\nsleep 1000\necho never", "x = !echo go >&2; sleep 1000", "!trap '' INT; echo go; sleep 1000", startsOneMore} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			i := session(t)
			cell := background(t, i, code)
			cell.waitFor(t, "go\n")
			require.NoError(t, i.Interrupt(t.Context()))
			got := cell.end(t)
			require.True(t, got.Interrupted, "%+v", got.Error)
			require.NotContains(t, got.text(), "never")
			require.Equal(t, "=> []", ok(t, i, leftInGroup).text())
		})
	}
}

// startsOneMore is a shell that an interrupt finds just before it runs a program: it
// ends, and the program has not been told.
const startsOneMore = `!{__import__('sys').executable} -c 'import os, signal, subprocess; signal.signal(signal.SIGINT, lambda *_: (subprocess.Popen(["sleep", "1000"]), os._exit(1))); os.write(1, b"go\n"); signal.pause()'`

func TestAnInterruptLeavesWhatRunsInTheBackground(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{
		"as the shell does what it likes": "!sh -c 'echo go; exec sleep 1000' & sleep 1000",
		"before the shell runs another":   startsLate,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := session(t)
			cell := background(t, i, code)
			cell.waitFor(t, "go\n")
			require.NoError(t, i.Interrupt(t.Context()))
			require.True(t, cell.end(t).Interrupted)
			require.Regexp(t, `^=> \['\d+'\]$`, ok(t, i, leftInGroup).text())
		})
	}
}

// startsLate is a shell with a program in the background that gets its interrupt just
// before it runs another, and heeds it when that one ends.
const startsLate = `!{__import__('sys').executable} -c 'import os, signal, subprocess; subprocess.Popen(["sleep", "1000"], preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)); signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]); os.write(1, b"go\n"); signal.sigwait([signal.SIGINT]); signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT]); subprocess.Popen(["sleep", "1000"]).wait()'`

// leftInGroup lists the living members of the session's group but itself.
const leftInGroup = `import os
def left():
    for p in filter(str.isdigit, os.listdir('/proc')):
        try:
            state, _, group, *_ = open(f'/proc/{p}/stat').read().rpartition(')')[2].split()
        except OSError:
            continue
        if int(group) == os.getpgrp() and int(p) != os.getpid() and state not in 'ZX':
            yield p
list(left())`

// TestPip installs a package from a folder, without any index, and imports it in
// the same session; then another version of it.
func TestPip(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, version := range []string{"1", "2"} {
		pkg := filepath.Join(dir, "v"+version)
		require.NoError(t, os.MkdirAll(pkg, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(pkg, "make.py"), []byte(wheelScript), 0o600))
	}
	i := sessionOn(t, shared.get(), runner.Options{}, kernel.StartOptions{
		Key: messages.SessionKey{Cwd: dir}, Env: map[string]string{"PIP_CONFIG_FILE": os.DevNull, "PIP_NO_INDEX": "1"},
	})
	ok(t, i, "%run v1/make.py 1\n%run v2/make.py 22\nimport sys\nsys.path.insert(0, 'target')")
	got := ok(t, i, "%pip install --target target --no-deps ./coppice_probe-1-py3-none-any.whl\nimport coppice_probe\ncoppice_probe.version")
	require.Contains(t, got.text(), "Successfully installed coppice")
	require.Contains(t, got.text(), "=> 1")
	got = ok(t, i, "%pip install --upgrade --target target --no-deps ./coppice_probe-22-py3-none-any.whl\nimport coppice_probe\ncoppice_probe.version")
	require.Contains(t, got.text(), "=> 22")
}

// wheelScript makes a wheel with one module.
const wheelScript = `import sys, zipfile
v = sys.argv[1]
with zipfile.ZipFile(f"coppice_probe-{v}-py3-none-any.whl", "w") as z:
    z.writestr("coppice_probe.py", f"version = {v}\n")
    d = f"coppice_probe-{v}.dist-info"
    z.writestr(d + "/METADATA", f"Metadata-Version: 2.1\nName: coppice_probe\nVersion: {v}\n")
    z.writestr(d + "/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    z.writestr(d + "/top_level.txt", "coppice_probe\n")
    z.writestr(d + "/RECORD", "")
`
