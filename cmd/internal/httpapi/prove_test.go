package httpapi_test

import (
	"net/http"
	"os"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/environment"
	"github.com/coppice-run/coppice/messages"
)

// proves asks for the proof of each rung that this machine has: it is what the table says.
func (s *server) proves() {
	t, ctx := s.t, s.t.Context()
	rungs := []string{kernel.IsolationOff, kernel.IsolationPrivileges, kernel.IsolationLandlock, kernel.IsolationSeccomp, kernel.IsolationUser, kernel.IsolationBubblewrap, kernel.IsolationGVisor}
	for at, rung := range rungs {
		if why := environment.LacksRung(rung); why != nil || rung == kernel.IsolationUser { // whose interpreter has to be one that all users reach
			t.Logf("%s: left out: %v", rung, why)
			continue
		}
		name := "prove-" + rung
		_, err := s.CreateWorkspace(ctx, client.NewWorkspace{Name: name, Isolation: &client.Isolation{Level: rung}})
		require.NoError(t, err)
		proof, err := s.ProveWorkspace(ctx, name)
		require.NoError(t, err)
		require.Equal(t, rung, proof.Isolation)
		require.True(t, proof.Holds, "%+v", proof)
		walls := environment.Walls()
		require.Len(t, proof.Attempts, len(walls))
		for i, a := range proof.Attempts {
			from := walls[i].User
			if os.Geteuid() == 0 {
				from = walls[i].Root
			}
			require.Equal(t, walls[i].Attempt, a.Attempt)
			require.Equal(t, from, a.From, a.Attempt)
			switch n := slices.Index(rungs, from); { // below its rung an attempt may fail all the same
			case walls[i].Own && rung == kernel.IsolationGVisor:
				require.NotEqual(t, client.AttemptAllowed, a.State, "%s: %s: %s", rung, a.Attempt, a.Detail)
			case n >= 0 && n <= at:
				require.Equal(t, client.AttemptRefused, a.State, "%s: %s: %s", rung, a.Attempt, a.Detail)
			default:
				require.NotEqual(t, client.AttemptAllowed, a.State, "%s: %s: %s", rung, a.Attempt, a.Detail)
			}
		}
		sessions, err := s.Sessions(ctx)
		require.NoError(t, err)
		for _, one := range sessions {
			require.True(t, one.Workspace != name || one.State == messages.ChildStopping, "%+v: the session of the proof ends", one)
		}
		require.NoError(t, s.EndWorkspace(ctx, name))
	}
	if environment.LacksRung(kernel.IsolationSeccomp) == nil {
		for _, i := range []client.Isolation{{Hosts: []string{"a.example"}}, {Loopback: true}, {Network: true}} {
			i.Level = kernel.IsolationSeccomp
			w, err := s.CreateWorkspace(ctx, client.NewWorkspace{Name: "part", Isolation: &i})
			require.NoError(t, err)
			require.Contains(t, w.IsolationText, "; of the network: ")
			require.NotContains(t, w.IsolationText, "no sockets of the network")
			proof, err := s.ProveWorkspace(ctx, "part")
			require.NoError(t, err)
			require.True(t, proof.Holds, "%+v: %+v", i, proof)
			require.NoError(t, s.EndWorkspace(ctx, "part"))
		}
		status, answer := s.ask("POST", "/api/workspaces", `{"name":"both","isolation":{"level":"seccomp","network":true,"hosts":["a.example"]}}`)
		require.Equal(t, http.StatusUnprocessableEntity, status, answer)
		require.Contains(t, answer, "leave out Network or Hosts")
	}
	_, err := s.CreateWorkspace(ctx, client.NewWorkspace{Name: "brief", Limits: client.WorkspaceLimits{Runtime: 0.001}})
	require.NoError(t, err)
	status, answer := s.ask("POST", "/api/workspaces/brief/prove", "")
	require.Equal(t, http.StatusUnprocessableEntity, status, answer)
	require.NoError(t, s.EndWorkspace(ctx, "brief"))
}
