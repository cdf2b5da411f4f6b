package envd

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	"github.com/coppice-run/coppice/cmd/internal/e2b/wire/process"
	"github.com/coppice-run/coppice/workspace"
	"github.com/coppice-run/coppice/workspace/procs"
)

// meaning is an error of a process for a client.
func meaning(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, procs.ErrOver):
		return connect.NewError(connect.CodeNotFound, err)
	case errors.Is(err, procs.ErrNoInput), errors.Is(err, procs.ErrNoTerminal):
		return connect.NewError(connect.CodeFailedPrecondition, err)
	case errors.Is(err, procs.ErrSignal):
		return connect.NewError(connect.CodeInvalidArgument, err)
	default:
		return failed(err)
	}
}

// write writes what a client sends to a process. Input for a terminal goes to one alone.
func write(ctx context.Context, p *workspace.Process, in *process.ProcessInput) error {
	data := in.GetStdin()
	if _, terminal := in.GetInput().(*process.ProcessInput_Pty); terminal {
		if !p.Terminal() {
			return meaning(procs.ErrNoTerminal)
		}
		data = in.GetPty()
	}
	if len(data) == 0 {
		return nil
	}
	_, err := p.Write(ctx, data)
	return meaning(err)
}

// SendInput writes to a process.
func (s *processService) SendInput(ctx context.Context, r *connect.Request[process.SendInputRequest]) (*connect.Response[process.SendInputResponse], error) {
	p, err := s.find(r.Msg.GetProcess())
	if err != nil {
		return nil, err
	}
	if err := write(ctx, p, r.Msg.GetInput()); err != nil {
		return nil, err
	}
	return connect.NewResponse(&process.SendInputResponse{}), nil
}

// StreamInput writes to a process as the client sends.
func (s *processService) StreamInput(ctx context.Context, in *connect.ClientStream[process.StreamInputRequest]) (*connect.Response[process.StreamInputResponse], error) {
	var p *workspace.Process
	for in.Receive() {
		switch e := in.Msg().GetEvent().(type) {
		case *process.StreamInputRequest_Start:
			found, err := s.find(e.Start.GetProcess())
			if err != nil {
				return nil, err
			}
			p = found
		case *process.StreamInputRequest_Data:
			if p == nil {
				return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("the stream does not begin with the process that it is for"))
			}
			if err := write(ctx, p, e.Data.GetInput()); err != nil {
				return nil, err
			}
		}
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	return connect.NewResponse(&process.StreamInputResponse{}), nil
}

// SendSignal sends a signal to a process and its group.
func (s *processService) SendSignal(_ context.Context, r *connect.Request[process.SendSignalRequest]) (*connect.Response[process.SendSignalResponse], error) {
	p, err := s.find(r.Msg.GetProcess())
	if err != nil {
		return nil, err
	}
	name := map[process.Signal]string{process.Signal_SIGNAL_SIGTERM: "TERM", process.Signal_SIGNAL_SIGKILL: "KILL"}[r.Msg.GetSignal()]
	if err := p.Signal(name); err != nil {
		return nil, meaning(err)
	}
	return connect.NewResponse(&process.SendSignalResponse{}), nil
}

// CloseStdin ends the input of a process.
func (s *processService) CloseStdin(ctx context.Context, r *connect.Request[process.CloseStdinRequest]) (*connect.Response[process.CloseStdinResponse], error) {
	p, err := s.find(r.Msg.GetProcess())
	if err != nil {
		return nil, err
	}
	if err := p.CloseInput(ctx); err != nil {
		return nil, meaning(err)
	}
	return connect.NewResponse(&process.CloseStdinResponse{}), nil
}

// Update gives a terminal another size.
func (s *processService) Update(_ context.Context, r *connect.Request[process.UpdateRequest]) (*connect.Response[process.UpdateResponse], error) {
	p, err := s.find(r.Msg.GetProcess())
	if err != nil {
		return nil, err
	}
	if r.Msg.Pty == nil {
		return connect.NewResponse(&process.UpdateResponse{}), nil
	}
	if err := p.Resize(size(r.Msg.GetPty())); err != nil {
		return nil, meaning(err)
	}
	return connect.NewResponse(&process.UpdateResponse{}), nil
}
