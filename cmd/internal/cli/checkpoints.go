package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/messages"
)

func (a *app) sessionsCheckpointCommand(f *sessionsFlags) *cobra.Command {
	var o client.SaveCheckpoint
	cmd := a.sessionCommand(f, "checkpoint", "Keep the state of a session, in memory, or on disk with --name", func(ctx context.Context, c *client.Client, key messages.SessionKey) error {
		if o.Name != "" {
			return a.saveCheckpoint(ctx, c, key, o, f)
		}
		if o.Lossy || o.Replace {
			return console.Usagef("--lossy and --replace are for a checkpoint on disk; say how it is called with --name")
		}
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
	cmd.Long = `Keep the state of a session, with all that it has in memory. Without a name it is a copy
of the interpreter, which ends with the server: its id is printed, and "coppice sessions
rewind" goes back to it. With --name it is kept on the server's disk, where the server keeps
sessions there (serve --hibernate), until it is dropped or was there for as long as serve
--keep-checkpoints-for says. What of it is kept, changed and lost is printed; "coppice
sessions restore" restores it into this session or another one, also after the server has
ended and another one runs. The session goes on.`
	cmd.Flags().StringVar(&o.Name, "name", "", "keep it on disk, under this name (letters, digits, dots, dashes, underscores)")
	cmd.Flags().BoolVar(&o.Lossy, "lossy", false, "with --name: keep what can be kept, though something is lost")
	cmd.Flags().BoolVar(&o.Replace, "replace", false, "with --name: replace the one of that name")
	return cmd
}

// saveCheckpoint keeps a session on disk under a name.
func (a *app) saveCheckpoint(ctx context.Context, c *client.Client, key messages.SessionKey, o client.SaveCheckpoint, f *sessionsFlags) error {
	kept, err := c.SaveCheckpoint(ctx, key, o)
	if err != nil {
		return err
	}
	if f.json {
		return a.WriteJSON(kept)
	}
	a.Out.Lines(fmt.Sprintf("%s is kept as %s: %s on disk", render.Name(key.Session), o.Name, render.Bytes(kept.Bytes)))
	a.Out.Lines(memoryLines(kept.Memory)...)
	return nil
}

func (a *app) sessionsRestoreCommand(f *sessionsFlags) *cobra.Command {
	var owner string
	cmd := console.Command{
		Use: "restore SESSION NAME", Short: "Have a session go on from a checkpoint on disk, which stays", Errors: console.ServerFailure,
		Long: `Have a session go on from what "coppice sessions checkpoint --name" has kept, of this session
or another one, in this server or an earlier one; the checkpoint stays. What the session had
is gone; it need not have been there. Printed is what of the checkpoint is kept, changed and
lost. One that cannot be restored changes nothing, and the error says why. Files are not put back.`,
		Args: console.Arguments{Least: 2, Most: 2, Wants: "restore wants the name of a session and that of a checkpoint; coppice sessions checkpoints shows them"},
		Run: func(ctx context.Context, args []string) error {
			return a.WithServer(func(c *client.Client) error {
				key, err := sessionKey(ctx, c, args[0], f)
				if err != nil {
					return err
				}
				restored, err := c.RestoreCheckpoint(ctx, key, client.RestoreCheckpoint{Name: args[1], Owner: owner})
				if err != nil {
					return err
				}
				if f.json {
					return a.WriteJSON(restored)
				}
				a.Out.Lines(fmt.Sprintf("%s is restored from %s of %s", render.Name(key.Session), args[1], restored.At.Local().Format(time.DateTime)))
				a.Out.Lines(memoryLines(restored.Memory)...)
				for _, note := range restored.Notes {
					a.Out.Lines("  note     " + note)
				}
				return nil
			})
		},
	}.Make()
	cmd.Flags().StringVar(&owner, "owner", "", "for whom, when the checkpoint has owners (default: no one in particular)")
	return cmd
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
				a.Out.Lines(render.Name(key.Session) + " is as it was")
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
					return dropCheckpoint(ctx, c, drop, f)
				}
				list, err := c.Checkpoints(ctx)
				if err != nil {
					return err
				}
				saved, err := c.SavedCheckpoints(ctx)
				if err != nil {
					return err
				}
				if f.json {
					return a.WriteJSON(map[string]any{"checkpoints": list, "saved": saved})
				}
				if len(list)+len(saved) == 0 {
					a.Out.Lines("no state is kept")
					return nil
				}
				a.Out.Lines(render.Table(a.Style(a.Out), checkpointRows(list, saved), true)...)
				return nil
			})
		},
	}.Make()
	cmd.Flags().StringVar(&drop, "drop", "", "the id, or the name, of the one that is not needed any more")
	return cmd
}

// checkpointRows is a table of the checkpoints in memory, and of those on disk. It tells of
// workspaces where one has any.
func checkpointRows(list []client.Checkpoint, saved []client.SavedCheckpoint) [][]string {
	ago := func(made time.Time) string { return fmt.Sprint(time.Since(made).Round(time.Second), " ago") }
	rows := [][]string{{"checkpoint", "session", "made", "memory", "folder"}}
	places := []string{"workspace"}
	for _, k := range list {
		rows, places = append(rows, []string{k.ID, render.Name(k.Session), ago(k.Made), render.Bytes(k.Memory), render.Name(k.Cwd)}), append(places, k.Workspace)
	}
	for _, k := range saved {
		rows, places = append(rows, []string{k.Name, render.Name(k.Session), ago(k.Made), render.Bytes(k.Bytes) + " on disk" + until(k.Expires), render.Name(k.Cwd)}), append(places, k.Workspace)
	}
	if slices.ContainsFunc(places[1:], func(name string) bool { return name != "" }) {
		for i := range rows {
			rows[i] = append(rows[i], places[i])
		}
	}
	return rows
}

// until says when what is kept on disk expires; "": never.
func until(expires time.Time) string {
	if expires.IsZero() {
		return ""
	}
	return " until " + expires.Local().Format(time.DateOnly)
}

// dropCheckpoint drops the checkpoint in memory of an id, or else the one on disk of a name.
func dropCheckpoint(ctx context.Context, c *client.Client, which string, f *sessionsFlags) error {
	err := c.DropCheckpoint(ctx, which)
	if none, ok := errors.AsType[*client.Error](err); ok && none.Code == "not_found" {
		return c.DropSavedCheckpoint(ctx, messages.CheckpointKey{Name: which, Workspace: f.workspace}, "")
	}
	return err
}
