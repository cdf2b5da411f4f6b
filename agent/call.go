package agent

import (
	"context"
	"errors"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/internal/home"
	"github.com/coppice-run/coppice/messages"
)

// kit makes the tools of one host and serves their calls.
type kit struct {
	host *coppice.Host
	o    Options
}

// keyOf is the key of the session that a call uses, with its working directory, which
// is there.
func keyOf(c Call, name, cwd string) (messages.SessionKey, error) {
	key := c.Session.In(cwd)
	switch {
	case name != "" && !c.sessions:
		return key, &Error{Problem: `there is no argument "session"; see the tool's schema`}
	case key.Session == "":
		return key, ErrNoSession
	case name != "":
		key.Session += "/" + name
	}
	var err error
	key.Cwd, err = workingDir(key.Cwd)
	return key, err
}

// workingDir is a folder, absolute; "" is that of this process. One that is not there
// is an *[Error].
func workingDir(cwd string) (string, error) {
	dir, err := home.WorkingDir(cwd)
	if err != nil {
		return "", &Error{Argument: "cwd", Problem: err.Error()}
	}
	return dir, nil
}

// session is the session that a call uses.
func (k kit) session(c Call, name, cwd string) (*coppice.Session, error) {
	key, err := keyOf(c, name, cwd)
	if err != nil {
		return nil, err
	}
	return k.host.Session(key.Session, coppice.In(key.Cwd), coppice.InWorkspace(key.Workspace), coppice.OnKernel(key.Kernel)), nil
}

// run makes a call of a session and reports its events.
func (c Call) run(ctx context.Context, s *coppice.Session, r coppice.Request) (messages.Result, error) {
	r.Owner, r.Input = c.Owner, c.Input
	if c.OnEvent == nil {
		result, err := s.Execute(ctx, r)
		if _, refused := errors.AsType[*messages.NotStartedError](err); refused {
			err = nil // the result says so to the model
		}
		return result, err
	}
	var result messages.Result
	for e, err := range s.Stream(ctx, r) {
		if err != nil {
			return result, err
		}
		if final, ok := e.(messages.Final); ok {
			result = final.Result
			continue
		}
		c.OnEvent(e)
	}
	return result, nil
}

// resultOf is what a model gets of a result.
func resultOf(r messages.Result, err error) (Result, error) {
	if bad, ok := errors.AsType[*coppice.RequestError](err); ok {
		return Result{}, &Error{Argument: bad.Field, Problem: bad.Problem}
	}
	if err != nil {
		return Result{}, err
	}
	return Result{Text: r.Text, Images: r.Images, IsError: r.Outcome != messages.OutcomeOK, Result: &r}, nil
}
