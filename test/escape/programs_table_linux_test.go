package escape_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/environment"
	"github.com/coppice-run/coppice/workspace"
)

// TestEscapesOfPrograms has a program of a workspace make the attempts of the table: what a rung is
// said to keep from sessions it keeps from programs.
func TestEscapesOfPrograms(t *testing.T) {
	all := []coppice.Isolation{{Level: kernel.IsolationBubblewrap, Users: true}}
	for _, rung := range rungs[position(kernel.IsolationLandlock):] {
		all = append(all, coppice.Isolation{Level: rung})
	}
	for _, i := range all {
		if why := lacksAny(i); why != nil {
			t.Logf("RUNG %s as uid %d: not here: %v", called(i), os.Geteuid(), why)
			continue
		}
		t.Run(called(i), func(t *testing.T) { //nolint:paralleltest // as the other tables
			h := host(t, python(t), i.Level, shared(t), func(o *coppice.Options) { o.Home, o.Isolation.Users = shared(t), i.Users })
			w, err := h.Workspace(t.Context(), "w", workspace.Options{})
			require.NoError(t, err)
			got, err := environment.TryToEscape(t.Context(), h.Dir(), func(ctx context.Context, code string) (environment.Escaped, error) {
				p, err := w.Start(ctx, workspace.ProcessOptions{Args: []string{python(t), "-c", asProgram + code}})
				require.NoError(t, err)
				said := printed(t, p)
				return environment.Escaped{JSON: []byte(said[strings.LastIndex(said, "[{"):]), Level: i.Level}, nil // behind what programs of its own said
			})
			require.NoError(t, err)
			require.Len(t, got, len(environment.Walls()))
			refused := 0
			for _, e := range got {
				if e.Promised && !e.Prevented {
					t.Errorf("%s: succeeded: %s", e.Attempt, e.Detail)
				}
				if e.Prevented {
					refused++
				}
			}
			t.Logf("RUNG %s: %d of %d attempts of a program refused", called(i), refused, len(got))
		})
	}
}
