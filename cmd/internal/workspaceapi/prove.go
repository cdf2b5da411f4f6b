package workspaceapi

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"reflect"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/environment"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/workspace"
)

// Bounds of a proof: its cell, and the end of its session.
const (
	proveTime = time.Minute
	proveEnd  = 10 * time.Second
)

// errNotProven is matched when the code could not run in the workspace.
var errNotProven = errors.New("the attempts could not be made")

// prover proves isolations, one at a time: the attempts are on this process.
type prover struct{ turn chan struct{} }

func newProver() prover { return prover{make(chan struct{}, 1)} }

// prove has code in a session of its own try to get out of a workspace, and returns what
// came of it. The error matches errNotProven, is a *workspace.EndedError, or that of ctx.
func (p prover) prove(ctx context.Context, host *coppice.Host, w *workspace.Workspace) (client.WorkspaceProof, error) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return client.WorkspaceProof{}, context.Cause(ctx)
	}
	proof := client.WorkspaceProof{Isolation: w.Info().Isolation, Network: online(host, w), Holds: true}
	escapes, err := environment.TryToEscape(ctx, host.Dir(), func(ctx context.Context, code string) (environment.Escaped, error) {
		s := host.Session("prove-"+rand.Text(), coppice.InWorkspace(w.Name()))
		defer func() {
			c, cancel := context.WithTimeout(context.WithoutCancel(ctx), proveEnd)
			defer cancel()
			_ = s.Close(c) // it ends with its workspace at the latest
		}()
		got, err := s.Execute(ctx, coppice.Request{Cells: []messages.Cell{{Code: code}}, Timeout: proveTime})
		switch {
		case w.Err() != nil:
			return environment.Escaped{}, w.Err()
		case err != nil && ctx.Err() != nil:
			return environment.Escaped{}, err
		case err != nil:
			return environment.Escaped{}, fmt.Errorf("%w: %w", errNotProven, err)
		case got.Outcome != messages.OutcomeOK || len(got.JSON) != 1:
			return environment.Escaped{}, fmt.Errorf("%w: %s: %.500s", errNotProven, got.Outcome, got.Text)
		}
		return environment.Escaped{JSON: got.JSON[0], Level: proof.Isolation, Network: proof.Network}, nil
	})
	if err != nil {
		return client.WorkspaceProof{}, err
	}
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

// online reports whether the isolation of a workspace leaves it the network.
func online(host *coppice.Host, w *workspace.Workspace) bool {
	i := w.Options().Isolation
	if reflect.ValueOf(i).IsZero() {
		i = host.Options().Isolation
	}
	return i.Network || i.Loopback // which may be connected to
}
