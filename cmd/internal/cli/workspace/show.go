package workspace

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
)

func (a *app) showCommand() *cobra.Command {
	var prove bool
	cmd := console.Command{
		Use: "show WORKSPACE", Short: "Show a workspace, its limits, its isolation, and its processes", Errors: console.ServerFailure, Args: one("show"),
		Long: `Show a workspace: its limits and what is used of them, its isolation, and its processes.

--prove has code try to get out of its isolation, in a new session of the workspace and
in a program, and lists what came of each attempt: refused in both; documented, which the
rung is known to leave open; or allowed, which it is not. The exit code is 1 when one was allowed.`,
		Run: func(ctx context.Context, args []string) error {
			return a.WithServer(func(c *client.Client) error { return a.show(ctx, c, args[0], prove) })
		},
	}.Make()
	cmd.Flags().BoolVar(&prove, "prove", false, "have code try to get out of its isolation, and list what came of it")
	return cmd
}

// show writes what is known of a workspace and, with prove, how its isolation holds.
func (a *app) show(ctx context.Context, c *client.Client, name string, prove bool) error {
	w, err := c.Workspace(ctx, name)
	if err != nil {
		return err
	}
	list, err := c.Processes(ctx, w.Name)
	if err != nil {
		return err
	}
	all := map[string]any{"workspace": w, "processes": list}
	var proof client.WorkspaceProof
	if prove {
		if proof, err = c.ProveWorkspace(ctx, w.Name); err != nil {
			return err
		}
		all["proof"] = proof
	}
	if a.json {
		if err := a.WriteJSON(all); err != nil {
			return err
		}
	} else {
		a.showWorkspace(w)
		for _, p := range list {
			a.Out.Lines(processLine(p))
		}
		a.showProof(proof)
	}
	if prove && !proof.Holds {
		return fmt.Errorf("the isolation %s of %s does not hold here: do not trust it", proof.Isolation, w.Name)
	}
	return nil
}

// showProof writes what came of the attempts to get out.
func (a *app) showProof(p client.WorkspaceProof) {
	if len(p.Attempts) == 0 {
		return
	}
	rows, refused := [][]string{{"", "attempt", "from", "seen"}}, 0
	for _, one := range p.Attempts {
		if one.State == client.AttemptRefused {
			refused++
		}
		from := one.From
		if from == "" {
			from = "no rung"
		}
		if one.Why == client.OwnKernel {
			from = "its own kernel"
		}
		rows = append(rows, []string{string(one.State), one.Attempt, from, strings.Join(strings.Fields(one.Detail), " ")})
	}
	a.Out.Lines("")
	a.Out.Lines(render.Table(a.Style(a.Out), rows, true)...)
	a.Out.Lines(fmt.Sprintf("%d of %d attempts were refused on the rung %s", refused, len(p.Attempts), p.Isolation))
}
