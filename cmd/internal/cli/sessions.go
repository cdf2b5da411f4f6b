package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
)

// sessionsFlags are those of all commands below sessions.
type sessionsFlags struct {
	cwd       string
	workspace string
	kernel    string
	json      bool
}

func (a *app) sessionsCommand() *cobra.Command {
	var f sessionsFlags
	cmd := console.Command{
		Use:   "sessions",
		Short: "Look after the sessions of a running coppice serve",
		Long: `Look after the sessions of the server that runs (see "coppice serve"). A session
is named as "coppice run --session" names it; --cwd says which working directory
when that is another than the server's, and --workspace which workspace it belongs to.`,
	}.Make()
	cmd.PersistentFlags().StringVar(&f.cwd, "cwd", "", "the working directory of the session (default: that of the server)")
	cmd.PersistentFlags().StringVar(&f.workspace, "workspace", "", "the workspace of the session (default: none)")
	cmd.PersistentFlags().StringVar(&f.kernel, "kernel", "", "the kernelspec of the session's kernel, where it named one (default: the only session of this name)")
	cmd.PersistentFlags().BoolVar(&f.json, "json", false, "print JSON")
	cmd.AddCommand(a.sessionsListCommand(&f), a.sessionsShowCommand(&f), a.sessionsForkCommand(&f), a.sessionsHibernateCommand(&f), a.sessionsLogsCommand(&f), a.sessionsInterruptCommand(&f),
		a.sessionsCheckpointCommand(&f), a.sessionsRewindCommand(&f), a.sessionsRestoreCommand(&f), a.sessionsCheckpointsCommand(&f))
	for _, one := range []struct {
		name, short, done string
		do                func(*client.Client, context.Context, messages.SessionKey) error
	}{
		{"close", "End a session, its kernel, and what runs in it", "was closed", (*client.Client).CloseSession},
		{"reset", "End a session's kernel; its next call starts with no variables", "was reset", (*client.Client).Reset},
		{"pin", "Keep a session from being ended because it is idle or room is needed", "is pinned", func(c *client.Client, ctx context.Context, key messages.SessionKey) error {
			return c.Pin(ctx, key, true)
		}},
		{"unpin", "End what pin did", "is not pinned", func(c *client.Client, ctx context.Context, key messages.SessionKey) error {
			return c.Pin(ctx, key, false)
		}},
	} {
		cmd.AddCommand(a.sessionCommand(&f, one.name, one.short, func(ctx context.Context, c *client.Client, key messages.SessionKey) error {
			if err := one.do(c, ctx, key); err != nil {
				return err
			}
			if f.json {
				return a.WriteJSON(map[string]any{"session": key.Session, "done": one.name})
			}
			a.Out.Lines(render.Name(key.Session) + " " + one.done)
			return nil
		}))
	}
	return cmd
}

// sessionCommand is a command about one session.
func (a *app) sessionCommand(f *sessionsFlags, name, short string, do func(context.Context, *client.Client, messages.SessionKey) error) *cobra.Command {
	return console.Command{
		Use: name + " SESSION", Short: short, Errors: console.ServerFailure,
		Args: console.Arguments{Least: 1, Most: 1, Wants: name + " wants the name of one session"},
		Run: func(ctx context.Context, args []string) error {
			return a.WithServer(func(c *client.Client) error {
				key, err := sessionKey(ctx, c, args[0], f)
				if err != nil {
					return err
				}
				return do(ctx, c, key)
			})
		},
	}.Make()
}

// sessionKey is the session of a name. Without a directory it is the one of that
// name that has a kernel or is kept on disk, or else has had an execution.
func sessionKey(ctx context.Context, c *client.Client, name string, f *sessionsFlags) (messages.SessionKey, error) {
	key := messages.SessionKey{Session: name, Workspace: f.workspace, Kernel: f.kernel}
	switch {
	case name == "":
		return key, console.ErrNameless
	case f.cwd != "" && f.workspace != "": // it is relative to the folder of the workspace
		key.Cwd = f.cwd
		return key, nil
	case f.cwd != "":
		var err error
		if key.Cwd, err = filepath.Abs(f.cwd); err != nil {
			return key, console.UsageError{Err: err}
		}
		return key, nil
	}
	list, err := c.AllSessions(ctx)
	if err != nil {
		return key, err
	}
	var found []messages.SessionKey
	var each []string
	for _, s := range list {
		if s.Session == name && s.Workspace == f.workspace && (f.kernel == "" || s.Kernel == f.kernel) {
			found = append(found, messages.SessionKey{Session: name, Cwd: s.Cwd, Workspace: f.workspace, Kernel: s.Kernel})
			said := "--cwd " + s.Cwd
			if s.Kernel != "" {
				said += " --kernel " + s.Kernel
			}
			each = append(each, said)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		runs, err := c.Executions(ctx, key)
		if err != nil {
			return key, err
		}
		if len(runs) > 0 {
			key.Cwd, key.Kernel = runs[0].Cwd, runs[0].Kernel
		}
	default:
		return key, console.Usagef("there are %d sessions %s: say which with %s", len(found), name, strings.Join(each, ", or "))
	}
	return key, nil
}

func (a *app) sessionsListCommand(f *sessionsFlags) *cobra.Command {
	return console.Command{
		Use: "list", Short: "List the sessions that have a kernel, and those that are kept on disk", Errors: console.ServerFailure,
		Run: func(ctx context.Context, _ []string) error {
			return a.WithServer(func(c *client.Client) error {
				list, err := c.AllSessions(ctx)
				if err != nil {
					return err
				}
				if f.workspace != "" {
					if _, err := c.Workspace(ctx, f.workspace); err != nil {
						return err
					}
					list = slices.DeleteFunc(list, func(s client.Session) bool { return s.Workspace != f.workspace })
				}
				if f.json {
					return a.WriteJSON(map[string]any{"sessions": list})
				}
				if len(list) == 0 {
					a.Out.Lines("no session has a kernel")
					return nil
				}
				a.Out.Lines(render.Table(a.Style(a.Out), sessionRows(list), true)...)
				return nil
			})
		},
	}.Make()
}

// sessionRows is a table of sessions. It tells of workspaces, kernelspecs and nodes of a fleet where one
// has any.
func sessionRows(list []client.Session) [][]string {
	rows := [][]string{{"session", "state", "memory", "waiting", "pinned", "restarts", "folder"}}
	for _, s := range list {
		rows = append(rows, sessionRow(s))
	}
	for _, more := range []struct {
		title string
		of    func(client.Session) string
	}{
		{"workspace", func(s client.Session) string { return s.Workspace }},
		{"kernel", func(s client.Session) string { return s.Kernel }},
		{"node", func(s client.Session) string { return s.Node }},
	} {
		if !slices.ContainsFunc(list, func(s client.Session) bool { return more.of(s) != "" }) {
			continue
		}
		rows[0] = append(rows[0], more.title)
		for i, s := range list {
			rows[i+1] = append(rows[i+1], more.of(s))
		}
	}
	return rows
}

// sessionRow is a session in a table.
func sessionRow(s client.Session) []string {
	pinned := ""
	if s.Pinned {
		pinned = "pinned"
	}
	memory := render.Bytes(s.RSS)
	if s.Kept != nil {
		memory = render.Bytes(s.Kept.Bytes) + " on disk"
	}
	return []string{render.Name(s.Session), string(s.State), memory, strconv.Itoa(s.Queue), pinned, strconv.Itoa(s.Restarts), render.Name(s.Cwd)}
}

// sessionLine is a session as one line.
func sessionLine(s client.Session) string {
	if s.Kept != nil {
		return hibernatedLine(s)
	}
	line := fmt.Sprintf("%-20s %-10s %6s", render.Name(s.Session), s.State, render.Bytes(s.RSS))
	if s.Queue > 0 {
		line += fmt.Sprintf("  %d waiting", s.Queue)
	}
	if s.Pinned {
		line += "  pinned"
	}
	if s.Restarts > 0 {
		line += "  " + render.Number(s.Restarts, "restart")
	}
	if s.Node != "" {
		line += "  at node " + s.Node
	}
	return line + "  " + render.Name(s.Cwd)
}

func (a *app) sessionsShowCommand(f *sessionsFlags) *cobra.Command {
	return a.sessionCommand(f, "show", "Show a session and its last executions", func(ctx context.Context, c *client.Client, key messages.SessionKey) error {
		s, err := c.Session(ctx, key)
		if err != nil {
			return err
		}
		runs, err := c.Executions(ctx, messages.SessionKey{Session: s.Session, Cwd: s.Cwd, Workspace: s.Workspace, Kernel: s.Kernel})
		if err != nil {
			return err
		}
		if f.json {
			return a.WriteJSON(map[string]any{"session": s, "executions": runs})
		}
		a.Out.Lines(sessionLine(s))
		if s.Kept != nil {
			a.Out.Lines(memoryLines(s.Kept.Memory)...)
			return nil
		}
		a.Out.Lines(fmt.Sprintf("  process %d, %.1f s of CPU, answered: %d (calls, checkpoints and copies)", s.PID, s.CPU, s.Done))
		if s.LastExit != nil {
			a.Out.Lines("  the kernel before ended: " + string(s.LastExit.Kind) + " " + s.LastExit.Reason)
		}
		for _, x := range runs {
			a.Out.Lines(executionLine(x))
		}
		return nil
	})
}

// executionLine is an execution as one line.
func executionLine(x client.Execution) string {
	state, took := string(x.State), time.Since(x.Started)
	if x.State == client.Ended {
		state, took = string(x.Outcome), x.Ended.Sub(x.Started)
	}
	return fmt.Sprintf("  %s  %-11s %8v  %s", x.ID, state, took.Round(time.Millisecond), x.Title)
}

func (a *app) sessionsInterruptCommand(f *sessionsFlags) *cobra.Command {
	return a.sessionCommand(f, "interrupt", "Stop what runs in a session, as Ctrl-C would", func(ctx context.Context, c *client.Client, key messages.SessionKey) error {
		// The answer to an interrupt does not say whether there was something to stop. Where it
		// cannot be known, it is taken for granted: it was asked for because something ran.
		s, err := c.Session(ctx, key)
		ran := err != nil || s.State == messages.ChildBusy || s.Queue > 0
		if err := c.Interrupt(ctx, key); err != nil {
			return err
		}
		switch {
		case f.json:
			return a.WriteJSON(map[string]any{"session": key.Session, "done": "interrupt", "ran": ran})
		case ran:
			a.Out.Lines(render.Name(key.Session) + " was interrupted")
		default:
			a.Out.Lines("nothing runs in " + render.Name(key.Session))
		}
		return nil
	})
}

func (a *app) sessionsForkCommand(f *sessionsFlags) *cobra.Command {
	copies := 1
	cmd := a.sessionCommand(f, "fork", "Copy a session with all that it has in memory", func(ctx context.Context, c *client.Client, key messages.SessionKey) error {
		made, err := c.Fork(ctx, key, copies, "")
		if err != nil {
			return err
		}
		if f.json {
			return a.WriteJSON(map[string]any{"sessions": made})
		}
		for _, k := range made {
			a.Out.Lines(render.Name(k.Session))
		}
		return nil
	})
	cmd.Flags().IntVarP(&copies, "copies", "n", 1, "how many copies")
	return cmd
}

func (a *app) sessionsLogsCommand(f *sessionsFlags) *cobra.Command {
	last := 1
	cmd := a.sessionCommand(f, "logs", "Show what the last executions of a session printed, and follow what runs", func(ctx context.Context, c *client.Client, key messages.SessionKey) error {
		if last < 1 {
			return console.Usagef("--last must be 1 or more, not %d", last)
		}
		runs, err := c.Executions(ctx, key)
		if err != nil {
			return err
		}
		if len(runs) == 0 {
			return fmt.Errorf("the server knows no execution of the session %s; coppice sessions list has the sessions that there are", key.Session)
		}
		for _, x := range slices.Backward(runs[:min(last, len(runs))]) {
			if last > 1 && !f.json {
				a.Out.Lines(strings.TrimSpace(executionLine(x)))
			}
			if err := a.executionLog(ctx, c, x, f.json); err != nil {
				return err
			}
		}
		return nil
	})
	cmd.Flags().IntVarP(&last, "last", "n", 1, "how many executions, of those that the server has kept; the newest comes last")
	return cmd
}

// executionLog writes what an execution printed, and follows it while it runs.
func (a *app) executionLog(ctx context.Context, c *client.Client, x client.Execution, asJSON bool) error {
	lines := sinks.NewEvents(a.Out)
	write := func(e messages.Event) error { return lines.Consume(ctx, e) }
	if !asJSON {
		drawing := render.NewRun(render.RunOptions{Style: a.Style(a.Out), Cells: make([]messages.Cell, x.Cells)})
		write = func(e messages.Event) error {
			a.Out.Draw(drawing.Event(e))
			return nil
		}
	}
	for e, err := range c.Events(ctx, x.ID, 0) {
		if err != nil {
			if ctx.Err() != nil {
				return &console.Exit{Code: console.Cancelled}
			}
			return err
		}
		if err := write(e); err != nil {
			return err
		}
	}
	return nil
}
