package workspaceapi

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/environment"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/workspace"
	"github.com/coppice-run/coppice/workspace/procs"
)

// Bounds of a proof: its cell, the end of its session, and what of the output of its program is
// read, in bytes.
const (
	proveTime = time.Minute
	proveEnd  = 10 * time.Second
	proveMost = 1 << 20
)

// errNotProven is matched when the code could not run in the workspace.
var errNotProven = errors.New("the attempts could not be made")

// prover proves isolations, one at a time: the attempts are on this process.
type prover struct{ turn chan struct{} }

func newProver() prover { return prover{make(chan struct{}, 1)} }

// prove has code in a session of its own, and the same code in a program, try to get out of a
// workspace, and returns what came of it. The error matches errNotProven, is a *workspace.EndedError, or that of ctx.
func (p prover) prove(ctx context.Context, host *coppice.Host, w *workspace.Workspace) (client.WorkspaceProof, error) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return client.WorkspaceProof{}, context.Cause(ctx)
	}
	proof := client.WorkspaceProof{Isolation: w.Info().Isolation, Network: online(host, w), Holds: true}
	escaped := func(told []byte) environment.Escaped {
		return environment.Escaped{JSON: told, Level: proof.Isolation, Network: proof.Network}
	}
	python := ""
	escapes, err := environment.TryToEscape(ctx, host.Dir(), func(ctx context.Context, code string) (environment.Escaped, error) {
		told, err := inSession(ctx, host, w, tellPython+code)
		if err == nil && len(told) > 1 && json.Unmarshal(told[0], &python) == nil {
			return escaped(told[1]), nil
		}
		return environment.Escaped{}, cmp.Or(err, fmt.Errorf("%w: the code told nothing", errNotProven))
	})
	if err != nil {
		return client.WorkspaceProof{}, err
	}
	byProgram, err := environment.TryToEscape(ctx, host.Dir(), func(ctx context.Context, code string) (environment.Escaped, error) {
		told, err := inProgram(ctx, w, python, tellBack+code)
		return escaped(told), err
	})
	if err != nil {
		return client.WorkspaceProof{}, err
	}
	escapes = worse(escapes, byProgram)
	walls := map[string]environment.Wall{}
	for _, wall := range environment.Walls() {
		walls[wall.Attempt] = wall
	}
	for _, e := range escapes {
		one := client.WorkspaceAttempt{Attempt: e.Attempt, State: client.AttemptRefused, From: walls[e.Attempt].User, Why: walls[e.Attempt].Why, Detail: e.Detail}
		if os.Geteuid() == 0 {
			one.From = walls[e.Attempt].Root
		}
		if e.Own && !e.Prevented {
			one.Why = client.OwnKernel
		}
		switch {
		case e.Prevented:
		case e.Attempt == listening && len(isolationOf(host, w).Hosts) > 0:
			one.State, one.Why = client.AttemptDocumented, "Landlock closes the ports to who binds a socket, and not to who listens without: at a port that the system chooses, which this machine alone reaches"
		case e.Promised:
			one.State, proof.Holds = client.AttemptAllowed, false
		default:
			one.State = client.AttemptDocumented
		}
		proof.Attempts = append(proof.Attempts, one)
	}
	if len(proof.Attempts) == 0 {
		return client.WorkspaceProof{}, fmt.Errorf("%w: the code told nothing", errNotProven)
	}
	return proof, nil
}

// tellPython has a session say which interpreter it is, and tellBack has a program print what a
// session would display.
const (
	tellPython = "import sys\ndisplay({'application/json': sys.executable}, raw=True)\n"
	tellBack   = "import json, sys\ndef display(data, raw): print(json.dumps(data['application/json']), flush=True)\n"
)

// inSession runs code in a session of its own, and returns what it displays.
func inSession(ctx context.Context, host *coppice.Host, w *workspace.Workspace, code string) ([]json.RawMessage, error) {
	s := host.Session("prove-"+rand.Text(), coppice.InWorkspace(w.Name()))
	defer func() {
		c, cancel := context.WithTimeout(context.WithoutCancel(ctx), proveEnd)
		defer cancel()
		_ = s.Close(c) // it ends with its workspace at the latest
	}()
	got, err := s.Execute(ctx, coppice.Request{Cells: []messages.Cell{{Code: code}}, Timeout: proveTime})
	switch {
	case w.Err() != nil:
		return nil, w.Err()
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errNotProven, err)
	case got.Outcome != messages.OutcomeOK:
		return nil, fmt.Errorf("%w: %s: %.500s", errNotProven, got.Outcome, got.Text)
	}
	return got.JSON, nil
}

// inProgram has a program of the workspace run code, and returns what it prints.
func inProgram(ctx context.Context, w *workspace.Workspace, python, code string) ([]byte, error) {
	p, err := w.Start(ctx, workspace.ProcessOptions{Args: []string{python, "-I", "-c", code}, Timeout: proveTime})
	switch {
	case w.Err() != nil:
		return nil, w.Err()
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: by a program: %w", errNotProven, err)
	}
	r, err := p.Read(0)
	if err != nil {
		return nil, fmt.Errorf("%w: by a program: %w", errNotProven, err)
	}
	defer r.Close()
	var out, errs []byte
	for {
		entries, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			c, cancel := context.WithTimeout(context.WithoutCancel(ctx), proveEnd)
			defer cancel()
			_ = p.Stop(c, "no one waited for it any more", 0) // it ends with its workspace at the latest
			return nil, err
		}
		for _, entry := range entries {
			switch e, err := entry.Event(); {
			case err != nil:
				return nil, err
			case e.Kind == procs.EventStdout:
				out = latest(out, e.Data)
			case e.Kind == procs.EventStderr:
				errs = latest(errs, e.Data)
			}
		}
	}
	if exit, _ := p.Exit(); exit.Code != 0 || exit.Reason != "" {
		return nil, cmp.Or(w.Err(), fmt.Errorf("%w: by a program: code %d %s: %.500s", errNotProven, exit.Code, exit.Reason, errs))
	}
	out = bytes.TrimSpace(out)
	return out[1+bytes.LastIndexByte(out, '\n'):], nil // before it, programs of its own may have said something
}

// latest is what was told, and more, as far as it is the latest of that.
func latest(told, more []byte) []byte {
	told = append(told, more...)
	return told[max(0, len(told)-proveMost):]
}

// worse has of each attempt what came of it in a session, but where only a program succeeded.
func worse(sessions, programs []environment.Escape) []environment.Escape {
	by := map[string]environment.Escape{}
	for _, e := range programs {
		by[e.Attempt] = e
	}
	all := slices.Clone(sessions)
	for i, s := range all {
		if p, tried := by[s.Attempt]; tried && s.Prevented && !p.Prevented {
			p.Detail = "by a program: " + p.Detail
			all[i] = p
		}
	}
	return all
}

// listening is the attempt that a part of the network leaves open, when it is that of hosts.
const listening = "listen on a port"

// isolationOf is what a workspace is kept from.
func isolationOf(host *coppice.Host, w *workspace.Workspace) kernel.Isolation {
	if i := w.Options().Isolation; !reflect.ValueOf(i).IsZero() {
		return i
	}
	return host.Options().Isolation
}

// online reports whether the isolation of a workspace leaves it the network.
func online(host *coppice.Host, w *workspace.Workspace) bool {
	i := isolationOf(host, w)
	return i.Network || i.Loopback // which may be connected to
}
