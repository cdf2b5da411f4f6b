package envd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"github.com/coppice-run/coppice/cmd/internal/e2b/wire/process"
	"github.com/coppice-run/coppice/cmd/internal/e2b/wire/process/processconnect"
	"github.com/coppice-run/coppice/workspace"
	"github.com/coppice-run/coppice/workspace/procs"
)

// processService is the service process of a sandbox.
type processService Sandbox

var _ processconnect.ProcessHandler = (*processService)(nil)

// tagLabel is the label of a process that has the tag of its client.
const tagLabel = "e2b.tag"

// size is that of a terminal.
func size(p *process.PTY) procs.Size {
	of := func(n uint32) uint16 { return uint16(min(n, math.MaxUint16)) }
	return procs.Size{Columns: of(p.GetSize().GetCols()), Rows: of(p.GetSize().GetRows())}
}

// Start starts a process and follows it. It ends when the time is up that the client
// names for the stream, and not when the client leaves.
func (s *processService) Start(ctx context.Context, r *connect.Request[process.StartRequest], out *connect.ServerStream[process.StartResponse]) error {
	m := r.Msg
	cwd := ""
	if m.GetProcess().GetCwd() != "" {
		cwd = m.GetProcess().GetCwd()
		if at, err := (*Sandbox)(s).within(cwd); err == nil {
			cwd = (*Sandbox)(s).full(at)
		}
	}
	o := workspace.ProcessOptions{
		Args: append([]string{m.GetProcess().GetCmd()}, m.GetProcess().GetArgs()...), Cwd: cwd,
		Input: m.Stdin == nil || m.GetStdin(),
		// What a login shell reads at its start is the sandbox's own, and not the user's.
		Env: map[string]string{"HOME": s.w.Folder(), "USER": self().name, "LOGNAME": self().name},
	}
	maps.Copy(o.Env, m.GetProcess().GetEnvs())
	if m.Pty != nil {
		terminal := size(m.GetPty())
		o.Terminal = &terminal
	}
	s.python(ctx).lead(&o, s.w.Env())
	if m.Tag != nil {
		o.Labels = map[string]string{tagLabel: m.GetTag()}
	}
	if at, ok := ctx.Deadline(); ok {
		o.Timeout = max(time.Until(at), time.Millisecond)
	}
	p, err := s.w.Start(ctx, o)
	if wrong, ok := errors.AsType[*procs.StartError](err); ok {
		return connect.NewError(connect.CodeInvalidArgument, wrong)
	}
	if err != nil {
		return failed(err)
	}
	return s.follow(ctx, p, 0, pingInterval(r.Header()), func(e *process.ProcessEvent) error {
		return out.Send(&process.StartResponse{Event: e})
	})
}

// Connect follows a process from now on.
func (s *processService) Connect(ctx context.Context, r *connect.Request[process.ConnectRequest], out *connect.ServerStream[process.ConnectResponse]) error {
	p, err := s.find(r.Msg.GetProcess())
	if err != nil {
		return err
	}
	return s.follow(ctx, p, p.Latest(), pingInterval(r.Header()), func(e *process.ProcessEvent) error {
		return out.Send(&process.ConnectResponse{Event: e})
	})
}

// follow sends what a process prints after an event, and its end.
func (s *processService) follow(ctx context.Context, p *workspace.Process, after uint64, every time.Duration, send func(*process.ProcessEvent) error) error {
	reader, err := p.Read(after)
	if err != nil {
		return failed(err)
	}
	defer reader.Close()
	if err := send(&process.ProcessEvent{Event: &process.ProcessEvent_Start{Start: &process.ProcessEvent_StartEvent{Pid: uint32(p.PID())}}}); err != nil { //nolint:gosec // no process id is negative
		return err
	}
	over := false
	for {
		wait, cancel := context.WithTimeout(ctx, every)
		entries, err := reader.Next(wait)
		cancel()
		switch {
		case errors.Is(err, io.EOF) && over:
			return nil
		case errors.Is(err, io.EOF): // its output went with the sandbox, before all was read
			if s.w.Err() != nil {
				withSandbox()
			}
			return failed(procs.ErrOver)
		case err != nil && ctx.Err() != nil:
			return failed(ctx.Err())
		case err != nil && wait.Err() != nil:
			if err := send(&process.ProcessEvent{Event: &process.ProcessEvent_Keepalive{Keepalive: &process.ProcessEvent_KeepAlive{}}}); err != nil {
				return err
			}
		case err != nil:
			return failed(err)
		}
		for _, entry := range entries {
			e, err := entry.Event()
			if err != nil {
				return failed(err)
			}
			if over = e.Kind == procs.EventEnd; over && s.w.Err() != nil {
				withSandbox() // it was no end of its own
			}
			if err := send(eventOf(e)); err != nil {
				return err
			}
		}
	}
}

// withSandbox breaks off the stream of a process that has ended with its sandbox. Clients ask
// then whether the sandbox is there, and tell their users that it has ended.
func withSandbox() { panic(http.ErrAbortHandler) }

// lost is what stands in the output in place of what was not kept.
const lost = "\n[the output up to here was not kept]\n"

// eventOf is an event of a process for a client.
func eventOf(e procs.Event) *process.ProcessEvent {
	data := &process.ProcessEvent_DataEvent{}
	switch e.Kind {
	case procs.EventStdout:
		data.Output = &process.ProcessEvent_DataEvent_Stdout{Stdout: e.Data}
	case procs.EventStderr:
		data.Output = &process.ProcessEvent_DataEvent_Stderr{Stderr: e.Data}
	case procs.EventTerminal:
		data.Output = &process.ProcessEvent_DataEvent_Pty{Pty: e.Data}
	case procs.EventGap:
		data.Output = &process.ProcessEvent_DataEvent_Stderr{Stderr: []byte(lost)}
	case procs.EventEnd:
		return &process.ProcessEvent{Event: &process.ProcessEvent_End{End: endOf(*e.Exit)}}
	}
	return &process.ProcessEvent{Event: &process.ProcessEvent_Data{Data: data}}
}

// endOf says how a process ended, in the words of Go's os package, which clients know.
func endOf(exit procs.Exit) *process.ProcessEvent_EndEvent {
	end := &process.ProcessEvent_EndEvent{ExitCode: int32(exit.Code), Exited: exit.Signal == "", Status: fmt.Sprintf("exit status %d", exit.Code)} //nolint:gosec // no exit code is that large
	if exit.Signal != "" {
		end.Status = "signal: " + exit.Signal
	}
	why := end.Status
	if exit.Reason != "" {
		why += " (" + exit.Reason + ")"
	}
	if exit.Code != 0 || exit.Signal != "" {
		end.Error = &why
	}
	return end
}

// find returns the process that a client means, which runs.
func (s *processService) find(want *process.ProcessSelector) (*workspace.Process, error) {
	name := fmt.Sprintf("with the id %d", want.GetPid())
	if want.GetTag() != "" {
		name = fmt.Sprintf("with the tag %.80q", want.GetTag())
	}
	for _, p := range s.w.Processes() {
		if _, over := p.Exit(); over {
			continue
		}
		byID := want.GetTag() == "" && want.GetPid() != 0 && uint32(p.PID()) == want.GetPid() //nolint:gosec // as in follow
		if byID || want.GetTag() != "" && p.Options().Labels[tagLabel] == want.GetTag() {
			return p, nil
		}
	}
	return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("no process %s runs in the sandbox", name))
}

// List returns the processes that run.
func (s *processService) List(context.Context, *connect.Request[process.ListRequest]) (*connect.Response[process.ListResponse], error) {
	list := []*process.ProcessInfo{}
	for _, p := range s.w.Processes() {
		if _, over := p.Exit(); over {
			continue
		}
		o := p.Options()
		args, env := Asked(p)
		info := &process.ProcessInfo{Pid: uint32(p.PID()), Config: &process.ProcessConfig{Cmd: args[0], Args: args[1:], Envs: env}} //nolint:gosec // as in follow
		if o.Cwd != "" {
			info.Config.Cwd = &o.Cwd
		}
		if tag, ok := o.Labels[tagLabel]; ok {
			info.Tag = &tag
		}
		list = append(list, info)
	}
	return connect.NewResponse(&process.ListResponse{Processes: list}), nil
}
