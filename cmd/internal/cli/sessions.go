package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/messages"
)

// sessionsFlags are those of all commands below sessions.
type sessionsFlags struct {
	cwd  string
	json bool
}

func (a *app) sessionsCommand() *cobra.Command {
	var f sessionsFlags
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "Look after the sessions of a running coppice serve",
		Long: `Look after the sessions of the server that runs (see "coppice serve"). A session
is named as "coppice run --session" names it; --cwd says which working directory
when that is another than the server's.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return failure(cmd.Help()) },
	}
	cmd.PersistentFlags().StringVar(&f.cwd, "cwd", "", "the working directory of the session (default: that of the server)")
	cmd.PersistentFlags().BoolVar(&f.json, "json", false, "print JSON")
	cmd.AddCommand(a.sessionsListCommand(&f), a.sessionsShowCommand(&f), a.sessionsForkCommand(&f), a.sessionsLogsCommand(&f))
	for _, one := range []struct {
		name, short, done string
		do                func(*client.Client, context.Context, messages.SessionKey) error
	}{
		{"close", "End a session, its kernel, and what runs in it", "was closed", (*client.Client).CloseSession},
		{"interrupt", "Stop what runs in a session, as Ctrl-C would", "was interrupted", (*client.Client).Interrupt},
		{"reset", "End a session's kernel; its next call starts with no variables", "was reset", (*client.Client).Reset},
		{"pin", "Keep a session from being ended because it is idle or room is needed", "is pinned", func(c *client.Client, ctx context.Context, key messages.SessionKey) error {
			return c.Pin(ctx, key, true)
		}},
		{"unpin", "End what pin did", "is not pinned", func(c *client.Client, ctx context.Context, key messages.SessionKey) error {
			return c.Pin(ctx, key, false)
		}},
	} {
		cmd.AddCommand(a.sessionCommand(&f, one.name+" SESSION", one.short, func(ctx context.Context, c *client.Client, key messages.SessionKey) error {
			if err := one.do(c, ctx, key); err != nil {
				return err
			}
			if f.json {
				return a.writeJSON(map[string]any{"session": key.Session, "done": one.name})
			}
			a.out.lines(key.Session + " " + one.done)
			return nil
		}))
	}
	return cmd
}

// sessionCommand is a command about one session.
func (a *app) sessionCommand(f *sessionsFlags, use, short string, do func(context.Context, *client.Client, messages.SessionKey) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: oneSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withServer(func(c *client.Client) error {
				key, err := sessionKey(cmd.Context(), c, args[0], f.cwd)
				if err != nil {
					return err
				}
				return do(cmd.Context(), c, key)
			})
		},
	}
}

// sessionKey is the session of a name. Without a directory it is the one of that
// name that has a kernel, or else has had an execution.
func sessionKey(ctx context.Context, c *client.Client, name, cwd string) (messages.SessionKey, error) {
	key := messages.SessionKey{Session: name}
	if cwd != "" {
		var err error
		if key.Cwd, err = filepath.Abs(cwd); err != nil {
			return key, usageError{err}
		}
		return key, nil
	}
	list, err := c.Sessions(ctx)
	if err != nil {
		return key, err
	}
	var found []string
	for _, s := range list {
		if s.Session == name {
			found = append(found, s.Cwd)
		}
	}
	switch len(found) {
	case 1:
		key.Cwd = found[0]
	case 0:
		runs, err := c.Executions(ctx, key)
		if err != nil {
			return key, err
		}
		if len(runs) > 0 {
			key.Cwd = runs[0].Cwd
		}
	default:
		return key, usagef("there are %d sessions %s: say which with --cwd %s", len(found), name, strings.Join(found, ", or "))
	}
	return key, nil
}

func oneSession(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("%s wants the name of one session", cmd.Name())
	}
	return nil
}

// withServer does something with the client of the server that runs.
func (a *app) withServer(do func(*client.Client) error) error {
	c, err := client.Find(client.FindOptions{Env: a.env, Client: client.Options{Patience: 5 * time.Second}})
	if err != nil {
		return serverFailure(err)
	}
	defer c.Close()
	return serverFailure(do(c))
}

// serverFailure ends a command that a server said no to, or that found none.
func serverFailure(err error) error {
	told, isTold := errors.AsType[*client.Error](err)
	_, isCode := errors.AsType[*codeError](err)
	_, isUsage := errors.AsType[usageError](err)
	switch {
	case err == nil, isCode, isUsage:
		return err
	case errors.Is(err, client.ErrNoServer):
		return failure(fmt.Errorf("%w: coppice serve", err))
	case isTold && told.Code == "bad_request":
		return &codeError{code: codeUsage, err: err}
	default:
		return failure(err)
	}
}

func (a *app) sessionsListCommand(f *sessionsFlags) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the sessions that have a kernel", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withServer(func(c *client.Client) error {
				list, err := c.Sessions(cmd.Context())
				if err != nil {
					return err
				}
				if f.json {
					return a.writeJSON(map[string]any{"sessions": list})
				}
				if len(list) == 0 {
					a.out.lines("no session has a kernel")
					return nil
				}
				for _, s := range list {
					a.out.lines(sessionLine(s))
				}
				return nil
			})
		},
	}
}

// sessionLine is a session as one line.
func sessionLine(s client.Session) string {
	line := fmt.Sprintf("%-20s %-10s %6s", s.Session, s.State, render.Bytes(s.RSS))
	if s.Queue > 0 {
		line += fmt.Sprintf("  %d waiting", s.Queue)
	}
	if s.Pinned {
		line += "  pinned"
	}
	if s.Restarts > 0 {
		line += "  " + render.Number(s.Restarts, "restart")
	}
	return line + "  " + s.Cwd
}

func (a *app) sessionsShowCommand(f *sessionsFlags) *cobra.Command {
	return a.sessionCommand(f, "show SESSION", "Show a session and its last executions", func(ctx context.Context, c *client.Client, key messages.SessionKey) error {
		s, err := c.Session(ctx, key)
		if err != nil {
			return err
		}
		runs, err := c.Executions(ctx, messages.SessionKey{Session: s.Session, Cwd: s.Cwd})
		if err != nil {
			return err
		}
		if f.json {
			return a.writeJSON(map[string]any{"session": s, "executions": runs})
		}
		a.out.lines(sessionLine(s), fmt.Sprintf("  process %d, %.1f s of CPU, %d calls answered", s.PID, s.CPU, s.Done))
		if s.LastExit != nil {
			a.out.lines("  the kernel before ended: " + string(s.LastExit.Kind) + " " + s.LastExit.Reason)
		}
		for _, x := range runs {
			a.out.lines(executionLine(x))
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

func (a *app) sessionsForkCommand(f *sessionsFlags) *cobra.Command {
	copies := 1
	cmd := a.sessionCommand(f, "fork SESSION", "Copy a session with all that it has in memory", func(ctx context.Context, c *client.Client, key messages.SessionKey) error {
		made, err := c.Fork(ctx, key, copies, "")
		if err != nil {
			return err
		}
		if f.json {
			return a.writeJSON(map[string]any{"sessions": made})
		}
		for _, k := range made {
			a.out.lines(k.Session)
		}
		return nil
	})
	cmd.Flags().IntVarP(&copies, "copies", "n", 1, "how many copies")
	return cmd
}

func (a *app) sessionsLogsCommand(f *sessionsFlags) *cobra.Command {
	return a.sessionCommand(f, "logs SESSION", "Show what the last execution of a session printed, and follow it while it runs", func(ctx context.Context, c *client.Client, key messages.SessionKey) error {
		runs, err := c.Executions(ctx, key)
		if err != nil {
			return err
		}
		if len(runs) == 0 {
			return failure(fmt.Errorf("the server knows no execution of the session %s", key.Session))
		}
		write := a.eventWriter()
		if !f.json {
			drawing := render.NewRun(render.RunOptions{Style: a.style(a.out), Cells: make([]messages.Cell, runs[0].Cells)})
			write = func(e messages.Event) error {
				a.out.print(drawing.Event(e))
				return nil
			}
		}
		for e, err := range c.Events(ctx, runs[0].ID, 0) {
			if err != nil {
				if ctx.Err() != nil {
					return &codeError{code: codeCancelled}
				}
				return err
			}
			if err := write(e); err != nil {
				return err
			}
		}
		return nil
	})
}
