//go:build linux

package e2b_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/cmd/internal/e2b/wire/process"
	"github.com/coppice-run/coppice/test/testpython"
)

// command starts a process and waits for its end.
func (b box) command(cfg *process.ProcessConfig) followed {
	b.s.t.Helper()
	stream, err := b.processes().Start(b.s.t.Context(), connect.NewRequest(&process.StartRequest{Process: cfg, Stdin: no()}))
	require.NoError(b.s.t, err)
	defer func() { _ = stream.Close() }()
	var f followed
	for stream.Receive() {
		f.add(stream.Msg().GetEvent())
	}
	require.NoError(b.s.t, stream.Err())
	return f
}

// prefix is where the packages of the code interpreter are.
func (b box) prefix() string {
	b.s.t.Helper()
	text, _ := of(b.run(`{"code":"import sys; sys.prefix"}`), "result")[0]["text"].(string)
	require.NotEmpty(b.s.t, text)
	return text
}

// TestThePythonOfCommands is that of code: what a command installs, code imports.
func TestThePythonOfCommands(t *testing.T) {
	t.Parallel()
	const prefix = "import sys; print(sys.prefix)"
	with := func(cfg *process.ProcessConfig, name, value string) *process.ProcessConfig {
		cfg.Envs = map[string]string{name: value}
		return cfg
	}
	sh := func(text string) *process.ProcessConfig {
		return &process.ProcessConfig{Cmd: "/bin/sh", Args: []string{"-c", text}}
	}
	for level, isolation := range map[string]coppice.Isolation{"without walls": {}, "behind walls": {Level: kernel.IsolationStrongest}} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			s := serveOn(t, coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{}), Env: os.Environ(), Isolation: isolation})
			b, own := s.make(`{}`), s.make(`{"envVars":{"PATH":"/own:/usr/bin:/bin"}}`)
			is := b.prefix()
			for name, tc := range map[string]struct {
				b              box
				cfg            *process.ProcessConfig
				stdout, stderr string
			}{
				"python3":                          {b, script("python3 -c '" + prefix + "'"), is + "\n", ""},
				"python":                           {b, script("python -c '" + prefix + "'"), is + "\n", ""},
				"pip":                              {b, script("command -v pip"), is + "/bin/pip\n", ""},
				"uv looks for this":                {b, script("echo $VIRTUAL_ENV"), is + "\n", ""},
				"a shell that is no login shell":   {b, sh("python3 -c '" + prefix + "'"), is + "\n", ""},
				"a program":                        {b, &process.ProcessConfig{Cmd: "python3", Args: []string{"-c", prefix}}, is + "\n", ""},
				"the numbers of lines":             {b, script("echo $LINENO\nno-such"), "1\n", "/bin/bash: line 2: no-such: command not found\n"},
				"what is set for it only":          {b, script("env | grep -c ^COPPICE_P"), "0\n", ""},
				"a PATH of the command":            {b, with(script("echo $PATH"), "PATH", "/a b:/usr/bin"), "/a b:/usr/bin\n", ""},
				"a PATH of a program":              {b, with(sh("echo $PATH"), "PATH", "/a b:/usr/bin"), "/a b:/usr/bin\n", ""},
				"a PATH of the sandbox":            {own, script("echo $PATH"), "/own:/usr/bin:/bin\n", ""},
				"a PATH of the sandbox, a program": {own, sh("echo $PATH"), "/own:/usr/bin:/bin\n", ""},
				"a virtual environment":            {b, with(script("echo $VIRTUAL_ENV"), "VIRTUAL_ENV", "/mine"), "/mine\n", ""},
			} {
				f := tc.b.command(tc.cfg)
				require.Equal(t, tc.stdout, f.stdout, name)
				require.Equal(t, tc.stderr, f.stderr, name)
			}
		})
	}
}

// TestThePythonOfATerminal is found when the profile was read, of which nothing is lost.
func TestThePythonOfATerminal(t *testing.T) {
	t.Parallel()
	s := serve(t)
	folder := filepath.Dir(testpython.Path(t))
	for name, tc := range map[string]struct {
		profile string
		envs    map[string]string
		asks    string
		want    string
	}{
		"python":                      {asks: "command -v python", want: filepath.Join(folder, "python")},
		"a login shell":               {asks: "shopt -q login_shell && echo y''es", want: "yes"},
		"what the profile sets":       {profile: "alias mine='echo yours'", asks: "mine", want: "yours"},
		"nothing is left":             {asks: `echo "${PROMPT_COMMAND-}${COPPICE_PATH-}${COPPICE_PROMPT-}."`, want: "."},
		"a prompt of the client":      {envs: map[string]string{"PROMPT_COMMAND": "n=$((n+1)) p=$PATH"}, asks: "echo $((n>0)) ${p%%:*}", want: "1 " + folder},
		"a prompt that is added":      {profile: `PROMPT_COMMAND="${PROMPT_COMMAND:+$PROMPT_COMMAND; }n=1"`, asks: `echo "$n" ${PATH%%:*}`, want: "1 " + folder},
		"a prompt that comes before":  {profile: `PROMPT_COMMAND="n=1${PROMPT_COMMAND:+; $PROMPT_COMMAND}"`, asks: `echo "$n" ${PATH%%:*}`, want: "1 " + folder},
		"a list of prompts":           {profile: "PROMPT_COMMAND+=(n=1)", asks: `echo "$n" ${PATH%%:*}`, want: "1 " + folder},
		"a PATH of the client":        {envs: map[string]string{"PATH": "/a b:/bin"}, asks: "echo $PATH", want: "/a b:/bin"},
		"one that is set at a prompt": {asks: "PATH=/mine:$PATH; true\necho ${PATH%%:*}", want: "/mine"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := s.make(`{}`)
			require.NoError(t, os.WriteFile(filepath.Join(b.folder(), ".bash_profile"), []byte(tc.profile+"\n"), 0o600))
			c := b.processes()
			stream, err := c.Start(t.Context(), connect.NewRequest(&process.StartRequest{
				Process: &process.ProcessConfig{Cmd: "/bin/bash", Args: []string{"-i", "-l"}, Envs: tc.envs}, Pty: &process.PTY{Size: &process.PTY_Size{Cols: 200, Rows: 30}},
			}))
			require.NoError(t, err)
			defer func() { _ = stream.Close() }()
			require.True(t, stream.Receive())
			var f followed
			f.add(stream.Msg().GetEvent())
			pid := &process.ProcessSelector{Selector: &process.ProcessSelector_Pid{Pid: f.pid}}
			_, err = c.SendInput(t.Context(), connect.NewRequest(&process.SendInputRequest{
				Process: pid, Input: &process.ProcessInput{Input: &process.ProcessInput_Pty{Pty: fmt.Appendf(nil, "true\n%s\nexit 5\n", tc.asks)}},
			}))
			require.NoError(t, err)
			for stream.Receive() {
				f.add(stream.Msg().GetEvent())
			}
			require.NoError(t, stream.Err())
			require.EqualValues(t, 5, f.end.GetExitCode(), f.pty)
			require.Regexp(t, `[\r\n]`+regexp.QuoteMeta(tc.want)+`\r\n`, f.pty)
			require.NotContains(t, f.pty, "error")
		})
	}
}

// TestWhatIsListed is what the client has asked for.
func TestWhatIsListed(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := s.make(`{}`)
	c := b.processes()
	size := &process.PTY{Size: &process.PTY_Size{Cols: 80, Rows: 24}}
	for _, r := range []*process.StartRequest{
		{Process: script("read x"), Stdin: yes()},
		{Process: &process.ProcessConfig{Cmd: "/bin/bash", Args: []string{"-i", "-l"}, Envs: map[string]string{"PROMPT_COMMAND": "true"}}, Pty: size},
		{Process: &process.ProcessConfig{Cmd: "/bin/bash", Args: []string{"-i", "-l"}}, Pty: size},
		{Process: &process.ProcessConfig{Cmd: "sleep", Args: []string{"600"}}},
	} {
		stream, err := c.Start(t.Context(), connect.NewRequest(r))
		require.NoError(t, err)
		require.True(t, stream.Receive())
		list, err := c.List(t.Context(), connect.NewRequest(&process.ListRequest{}))
		require.NoError(t, err)
		require.Len(t, list.Msg.GetProcesses(), 1)
		got := list.Msg.GetProcesses()[0]
		require.Equal(t, r.GetProcess().GetCmd(), got.GetConfig().GetCmd())
		require.Equal(t, r.GetProcess().GetArgs(), got.GetConfig().GetArgs())
		require.Equal(t, r.GetProcess().GetEnvs()["PROMPT_COMMAND"], got.GetConfig().GetEnvs()["PROMPT_COMMAND"])
		require.NotContains(t, got.GetConfig().GetEnvs(), "COPPICE_PATH")
		require.NotContains(t, got.GetConfig().GetEnvs(), "COPPICE_PROMPT")
		_, err = c.SendSignal(t.Context(), connect.NewRequest(&process.SendSignalRequest{Process: &process.ProcessSelector{Selector: &process.ProcessSelector_Pid{Pid: got.GetPid()}}, Signal: process.Signal_SIGNAL_SIGKILL}))
		require.NoError(t, err)
		for stream.Receive() {
			continue
		}
	}
}

// TestAPythonElsewhere is none for commands: they have what the machine has.
func TestAPythonElsewhere(t *testing.T) {
	t.Parallel()
	s := serveOn(t, coppice.Options{Backend: coppice.Gateway(coppice.GatewayOptions{URL: "http://127.0.0.1:1"}), Env: os.Environ()})
	b := s.make(`{}`)
	f := b.command(script("echo $PATH $0 $BASH_EXECUTION_STRING"))
	require.NotContains(t, f.stdout, filepath.Dir(testpython.Path(t))+":")
	require.True(t, strings.HasSuffix(f.stdout, " /bin/bash echo $PATH $0 $BASH_EXECUTION_STRING\n"), f.stdout)
}
