package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/messages"
)

func (a *app) sessionsCheckpointCommand(f *sessionsFlags) *cobra.Command {
	return a.sessionCommand(f, "checkpoint", "Keep the state of a session, with all that it has in memory, and print its id", func(ctx context.Context, c *client.Client, key messages.SessionKey) error {
		made, err := c.Checkpoint(ctx, key)
		if err != nil {
			return err
		}
		if f.json {
			return a.WriteJSON(made)
		}
		a.Out.Lines(made.ID)
		return nil
	})
}

func (a *app) sessionsRewindCommand(f *sessionsFlags) *cobra.Command {
	return console.Command{
		Use: "rewind SESSION CHECKPOINT", Short: "Put a session back to a state that was kept, which stays", Errors: console.ServerFailure,
		Long: `Put a session back to the state that "coppice sessions checkpoint" has kept. It can be
done again and again. What lies outside of the interpreter, such as files, is not put
back.`,
		Args: console.Arguments{Least: 2, Most: 2, Wants: "rewind wants the name of a session and the id of a checkpoint; coppice sessions checkpoints shows them"},
		Run: func(ctx context.Context, args []string) error {
			return a.WithServer(func(c *client.Client) error {
				key, err := sessionKey(ctx, c, args[0], f)
				if err != nil {
					return err
				}
				if err := c.Rewind(ctx, key, args[1]); err != nil {
					return err
				}
				if f.json {
					return a.WriteJSON(map[string]any{"session": key.Session, "done": "rewind"})
				}
				a.Out.Lines(key.Session + " is as it was")
				return nil
			})
		},
	}.Make()
}

func (a *app) sessionsCheckpointsCommand(f *sessionsFlags) *cobra.Command {
	var drop string
	cmd := console.Command{
		Use: "checkpoints", Short: "List the states of sessions that are kept, or drop one", Errors: console.ServerFailure,
		Run: func(ctx context.Context, _ []string) error {
			return a.WithServer(func(c *client.Client) error {
				if drop != "" {
					return c.DropCheckpoint(ctx, drop)
				}
				list, err := c.Checkpoints(ctx)
				if err != nil {
					return err
				}
				if f.json {
					return a.WriteJSON(map[string]any{"checkpoints": list})
				}
				if len(list) == 0 {
					a.Out.Lines("no state is kept")
					return nil
				}
				rows := [][]string{{"checkpoint", "session", "made", "memory", "folder"}}
				for _, k := range list {
					rows = append(rows, []string{k.ID, k.Session, fmt.Sprint(time.Since(k.Made).Round(time.Second), " ago"), render.Bytes(k.Memory), k.Cwd})
				}
				a.Out.Lines(render.Table(a.Style(a.Out), rows, true)...)
				return nil
			})
		},
	}.Make()
	cmd.Flags().StringVar(&drop, "drop", "", "the id of the one that is not needed any more")
	return cmd
}
