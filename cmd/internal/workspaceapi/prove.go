package workspaceapi

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/environment"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/workspace"
)

// Bounds of a proof: its cell, and the end of its session.
const (
	proveTime = time.Minute
	proveEnd  = 10 * time.Second
)

// prove has code in a session of its own try to get out of the workspace, and tells what
// came of it. There is one proof at a time: the attempts are on this process.
func (h *handler) prove(w http.ResponseWriter, r *http.Request, at place) error {
	ctx := r.Context()
	select {
	case h.proving <- struct{}{}:
		defer func() { <-h.proving }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	proof := client.WorkspaceProof{Isolation: at.w.Info().Isolation, Network: online(h.o.Host, at.w), Holds: true}
	escapes, err := environment.TryToEscape(ctx, h.o.Host.Dir(), func(ctx context.Context, code string) (environment.Escaped, error) {
		s := h.o.Host.Session("prove-"+rand.Text(), coppice.InWorkspace(at.w.Name()))
		defer func() {
			c, cancel := context.WithTimeout(context.WithoutCancel(ctx), proveEnd)
			defer cancel()
			_ = s.Close(c) // it ends with its workspace at the latest
		}()
		got, err := s.Execute(ctx, coppice.Request{Cells: []messages.Cell{{Code: code}}, Timeout: proveTime})
		switch {
		case at.w.Err() != nil:
			return environment.Escaped{}, at.w.Err()
		case err != nil && ctx.Err() != nil:
			return environment.Escaped{}, err
		case err != nil:
			return environment.Escaped{}, unfit("", "the attempts could not be made: %v", err)
		case got.Outcome != messages.OutcomeOK || len(got.JSON) != 1:
			return environment.Escaped{}, unfit("", "the attempts could not be made: %s: %.500s", got.Outcome, got.Text)
		}
		return environment.Escaped{JSON: got.JSON[0], Level: proof.Isolation, Network: proof.Network}, nil
	})
	if err != nil {
		return err
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
		return fmt.Errorf("prove the isolation of the workspace %s: the code told nothing", at.w.Name())
	}
	httpserver.JSON(w, http.StatusOK, proof)
	return nil
}

// online reports whether the isolation of a workspace leaves it the network.
func online(host *coppice.Host, w *workspace.Workspace) bool {
	i := w.Options().Isolation
	if reflect.ValueOf(i).IsZero() {
		i = host.Options().Isolation
	}
	return i.Network
}
