//go:build linux

package e2b_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/e2b/wire/process"
	"github.com/coppice-run/coppice/cmd/internal/e2b/wire/process/processconnect"
)

// processes is a client of the service process.
func (b box) processes(o ...connect.ClientOption) processconnect.ProcessClient {
	return processconnect.NewProcessClient(&http.Client{Transport: known{b}}, b.s.url, o...)
}

// followed is what came of a process.
type followed struct {
	pid                 uint32
	stdout, stderr, pty string
	end                 *process.ProcessEvent_EndEvent
}

func (f *followed) add(e *process.ProcessEvent) {
	switch e := e.GetEvent().(type) {
	case *process.ProcessEvent_Start:
		f.pid = e.Start.GetPid()
	case *process.ProcessEvent_Data:
		f.stdout += string(e.Data.GetStdout())
		f.stderr += string(e.Data.GetStderr())
		f.pty += string(e.Data.GetPty())
	case *process.ProcessEvent_End:
		f.end = e.End
	}
}

// script is what clients start for a command.
func script(text string) *process.ProcessConfig {
	return &process.ProcessConfig{Cmd: "/bin/bash", Args: []string{"-l", "-c", text}}
}

func no() *bool { return new(bool) }

func yes() *bool {
	on := true
	return &on
}

func TestCommands(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for name, options := range map[string][]connect.ClientOption{"binary": nil, "JSON": {connect.WithProtoJSON()}} {
		b := s.make(`{"envVars":{"A":"of the sandbox","B":"of the sandbox"}}`)
		c := b.processes(options...)
		run := func(ctx context.Context, r *process.StartRequest) (followed, error) {
			stream, err := c.Start(ctx, connect.NewRequest(r))
			require.NoError(t, err)
			defer func() { _ = stream.Close() }()
			var f followed
			for stream.Receive() {
				f.add(stream.Msg().GetEvent())
			}
			return f, stream.Err()
		}
		cfg := script(`echo "$A|$B|$PWD|$HOME"; echo err >&2; exit 3`)
		cfg.Envs = map[string]string{"B": "of the command"}
		f, err := run(t.Context(), &process.StartRequest{Process: cfg, Stdin: no()})
		require.NoError(t, err, name)
		require.Equal(t, "of the sandbox|of the command|"+b.folder()+"|"+b.folder()+"\n", f.stdout)
		require.Equal(t, "err\n", f.stderr)
		require.EqualValues(t, 3, f.end.GetExitCode())
		require.True(t, f.end.GetExited())
		require.Equal(t, "exit status 3", f.end.GetError())
		f, err = run(t.Context(), &process.StartRequest{Process: script("true"), Stdin: no()})
		require.NoError(t, err)
		require.Nil(t, f.end.Error)

		cwd := "/home/user/none"
		cfg = script("true")
		cfg.Cwd = &cwd
		_, err = run(t.Context(), &process.StartRequest{Process: cfg})
		require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))
		_, err = run(t.Context(), &process.StartRequest{Process: &process.ProcessConfig{Cmd: "no-such-program"}})
		require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))

		// The time of the stream is that of the process.
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		f, err = run(ctx, &process.StartRequest{Process: script("sleep 600")})
		cancel()
		require.Equal(t, connect.CodeDeadlineExceeded, connect.CodeOf(err))
		w, err := s.host.Workspaces().Get(b.id)
		require.NoError(t, err)
		for _, p := range w.Processes() {
			<-p.Done()
		}
		list, err := c.List(t.Context(), connect.NewRequest(&process.ListRequest{}))
		require.NoError(t, err)
		require.Empty(t, list.Msg.GetProcesses())
	}
}

// TestAClientThatLeaves finds its process again, which has gone on.
func TestAClientThatLeaves(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := s.make(`{}`)
	c := b.processes(connect.WithProtoJSON())
	tag := "mine"
	ctx, leave := context.WithCancel(t.Context())
	stream, err := c.Start(ctx, connect.NewRequest(&process.StartRequest{Process: script(`echo first; while read x; do echo "got $x"; done; echo over`), Stdin: yes(), Tag: &tag}))
	require.NoError(t, err)
	var f followed
	for f.stdout != "first\n" && stream.Receive() {
		f.add(stream.Msg().GetEvent())
	}
	leave()
	_ = stream.Close()

	pid := &process.ProcessSelector{Selector: &process.ProcessSelector_Pid{Pid: f.pid}}
	again, err := c.Connect(t.Context(), connect.NewRequest(&process.ConnectRequest{Process: pid}))
	require.NoError(t, err)
	require.True(t, again.Receive())
	require.Equal(t, f.pid, again.Msg().GetEvent().GetStart().GetPid())
	list, err := c.List(t.Context(), connect.NewRequest(&process.ListRequest{}))
	require.NoError(t, err)
	require.Len(t, list.Msg.GetProcesses(), 1)
	require.Equal(t, tag, list.Msg.GetProcesses()[0].GetTag())

	stdin := func(text string) *process.ProcessInput {
		return &process.ProcessInput{Input: &process.ProcessInput_Stdin{Stdin: []byte(text)}}
	}
	_, err = c.SendInput(t.Context(), connect.NewRequest(&process.SendInputRequest{Process: pid, Input: stdin("one\n")}))
	require.NoError(t, err)
	input := c.StreamInput(t.Context())
	require.NoError(t, input.Send(&process.StreamInputRequest{Event: &process.StreamInputRequest_Start{Start: &process.StreamInputRequest_StartEvent{
		Process: &process.ProcessSelector{Selector: &process.ProcessSelector_Tag{Tag: tag}},
	}}}))
	for _, text := range []string{"two\n", "three\n"} {
		require.NoError(t, input.Send(&process.StreamInputRequest{Event: &process.StreamInputRequest_Data{Data: &process.StreamInputRequest_DataEvent{Input: stdin(text)}}}))
	}
	_, err = input.CloseAndReceive()
	require.NoError(t, err)
	_, err = c.SendInput(t.Context(), connect.NewRequest(&process.SendInputRequest{Process: pid, Input: &process.ProcessInput{Input: &process.ProcessInput_Pty{Pty: []byte("x")}}}))
	require.Equal(t, connect.CodeFailedPrecondition, connect.CodeOf(err), "it has no terminal")
	_, err = c.CloseStdin(t.Context(), connect.NewRequest(&process.CloseStdinRequest{Process: pid}))
	require.NoError(t, err)
	var rest followed
	for again.Receive() {
		rest.add(again.Msg().GetEvent())
	}
	require.NoError(t, again.Err())
	require.Equal(t, "got one\ngot two\ngot three\nover\n", rest.stdout, "what came before is not told again")
	require.Zero(t, rest.end.GetExitCode())
	_, err = c.Connect(t.Context(), connect.NewRequest(&process.ConnectRequest{Process: pid}))
	require.NoError(t, err)
	_, err = c.SendSignal(t.Context(), connect.NewRequest(&process.SendSignalRequest{Process: pid, Signal: process.Signal_SIGNAL_SIGKILL}))
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
}

func TestATerminal(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := s.make(`{}`)
	c := b.processes(connect.WithProtoJSON())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stream, err := c.Start(ctx, connect.NewRequest(&process.StartRequest{
		Process: &process.ProcessConfig{Cmd: "/bin/bash", Args: []string{"-i", "-l"}, Envs: map[string]string{"PS1": "$ ", "TERM": "xterm-256color"}},
		Pty:     &process.PTY{Size: &process.PTY_Size{Cols: 100, Rows: 30}},
	}))
	require.NoError(t, err)
	var f followed
	until := func(text string) {
		t.Helper()
		for !strings.Contains(f.pty, text) && stream.Receive() {
			f.add(stream.Msg().GetEvent())
		}
		require.Contains(t, f.pty, text)
	}
	require.True(t, stream.Receive())
	f.add(stream.Msg().GetEvent())
	pid := &process.ProcessSelector{Selector: &process.ProcessSelector_Pid{Pid: f.pid}}
	send := func(text string) {
		t.Helper()
		_, err := c.SendInput(t.Context(), connect.NewRequest(&process.SendInputRequest{Process: pid, Input: &process.ProcessInput{Input: &process.ProcessInput_Pty{Pty: []byte(text)}}}))
		require.NoError(t, err)
	}
	send("stty size; test -t 0 && echo a''terminal\n")
	until("30 100")
	until("aterminal")
	// At its prompt, readline sets the size that it has read before, which may be the old one.
	send("until [ \"$(stty size)\" = \"11 77\" ]; do sleep .05; done; echo re''sized\n")
	until("re''sized\r\n")
	_, err = c.Update(t.Context(), connect.NewRequest(&process.UpdateRequest{Process: pid, Pty: &process.PTY{Size: &process.PTY_Size{Cols: 77, Rows: 11}}}))
	require.NoError(t, err)
	until("resized\r\n")
	_, err = c.SendSignal(t.Context(), connect.NewRequest(&process.SendSignalRequest{Process: pid, Signal: process.Signal_SIGNAL_SIGKILL}))
	require.NoError(t, err)
	for stream.Receive() {
		f.add(stream.Msg().GetEvent())
	}
	require.NoError(t, stream.Err())
	require.False(t, f.end.GetExited())
	require.EqualValues(t, -1, f.end.GetExitCode())
	require.Contains(t, f.end.GetError(), "signal")
}

// TestTheEndOfASandboxEndsItsCommands says so in the words that clients look for.
func TestTheEndOfASandboxEndsItsCommands(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := s.make(`{}`)
	c := b.processes()
	stream, err := c.Start(t.Context(), connect.NewRequest(&process.StartRequest{Process: script("sleep 600")}))
	require.NoError(t, err)
	require.True(t, stream.Receive())
	s.control("DELETE", "/sandboxes/"+b.id, "")
	var f followed
	for stream.Receive() {
		f.add(stream.Msg().GetEvent())
	}
	require.True(t, stream.Err() != nil || f.end.GetError() != "", "it did not end well")
	_, err = c.List(t.Context(), connect.NewRequest(&process.ListRequest{}))
	require.Equal(t, connect.CodeUnavailable, connect.CodeOf(err))
}

// TestAProcessThatEndsWithItsSandbox has not ended by itself: clients ask whether the sandbox is
// there, and say that it is not.
func TestAProcessThatEndsWithItsSandbox(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := s.make(`{}`)
	stream, err := b.processes().Start(t.Context(), connect.NewRequest(&process.StartRequest{Process: script("sleep 600")}))
	require.NoError(t, err)
	require.True(t, stream.Receive(), "it has begun")
	require.Equal(t, http.StatusNoContent, s.control("DELETE", "/sandboxes/"+b.id, "").status)
	for stream.Receive() {
		require.Nil(t, stream.Msg().GetEvent().GetEnd())
	}
	require.Error(t, stream.Err(), "it breaks off")
	_ = stream.Close() // it says so again
}
