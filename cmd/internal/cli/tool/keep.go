package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/cmd/internal/toolapi"
	"github.com/coppice-run/coppice/messages"
)

// noServer is what is said where only a server could have had something to say.
const noServer = "no coppice serve runs for this folder of tools"

func (a *app) toolListCommand(f *toolFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the tools, the broken ones with what is wrong",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, dir, err := a.toolList(cmd.Context(), f)
			if err != nil {
				return err
			}
			if f.json {
				return failure(a.writeJSON(list))
			}
			if len(list) == 0 {
				a.out.lines("there are no tools in "+dir, "coppice tool new ID makes one")
				return nil
			}
			rows := [][]string{{"id", "name", "status", "validation", ""}}
			for _, s := range list {
				note, more, cut := strings.Cut(s.Problem, "; ")
				if cut && s.Validation == "fail" {
					note = fmt.Sprintf("%s (and %d more: coppice tool validate %s)", note, 1+strings.Count(more, "; "), s.ID)
				}
				if s.Pinned {
					note = strings.TrimSpace("pinned " + note)
				}
				rows = append(rows, []string{s.ID, s.Name, s.Status, s.Validation, note})
			}
			a.out.lines(render.Table(a.style(a.out), rows, true)...)
			return nil
		},
	}
}

func (a *app) toolList(ctx context.Context, f *toolFlags) (list []toolapi.Summary, dir string, err error) {
	box, err := a.toolbox(f)
	if err != nil {
		return nil, "", err
	}
	if c := a.client(ctx, f, box.Dir()); c != nil {
		defer c.Close()
		list, err = c.List(ctx)
		return list, box.Dir(), toolFailure(err)
	}
	entries, err := box.List(ctx)
	if err != nil {
		return nil, "", failure(err)
	}
	pins, err := box.Pinned()
	var state messages.ToolsState
	for _, id := range pins {
		state.Tools = append(state.Tools, messages.ToolState{ID: id, Pinned: true})
	}
	if err != nil {
		return nil, "", failure(err)
	}
	checks, err := box.Validated(entries)
	return toolapi.Summarise(entries, state, checks), box.Dir(), failure(err)
}

func (a *app) toolStateCommand(f *toolFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "state",
		Short: "Show which tools are warm",
		Long: `Show which tools are warm in the coppice serve that runs for this folder. With
--json everything that the launcher knows is printed, which a server shows in
developer mode only.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.toolState(cmd.Context(), f) },
	}
}

func (a *app) toolState(ctx context.Context, f *toolFlags) error {
	box, err := a.toolbox(f)
	if err != nil {
		return err
	}
	c := a.client(ctx, f, box.Dir())
	if c == nil {
		if f.json {
			return failure(a.writeJSON(messages.ToolsState{Tools: []messages.ToolState{}}))
		}
		a.out.lines("nothing is warm: " + noServer)
		return nil
	}
	defer c.Close()
	if f.json {
		s, err := c.State(ctx)
		if err != nil {
			return toolFailure(err)
		}
		return failure(a.writeJSON(s))
	}
	h, err := c.Health(ctx)
	if err != nil {
		return toolFailure(err)
	}
	a.out.lines(fmt.Sprintf("%s, up for %v, %s warm", c.URL(), time.Duration(h.Uptime*float64(time.Second)).Round(time.Second), render.Number(len(h.Warm), "tool")))
	rows := [][]string{{"id", "state", "pid", "port", "warm for", "used", "memory", "runs", ""}}
	for _, t := range h.Warm {
		note, memory := "", "" // the memory is looked at once in a while
		if t.RSS > 0 {
			memory = render.Bytes(t.RSS)
		}
		if t.Pinned {
			note = "pinned"
		}
		rows = append(rows, []string{
			t.ID, string(t.State), strconv.Itoa(t.PID), strconv.Itoa(t.Port), since(t.Started), since(t.LastUsed), memory, strconv.Itoa(t.Runs), note,
		})
	}
	if len(h.Warm) > 0 {
		a.out.lines(render.Table(a.style(a.out), rows, true)...)
	}
	return nil
}

func (a *app) toolLogsCommand(f *toolFlags) *cobra.Command {
	limit := 0
	cmd := &cobra.Command{
		Use:   "logs ID",
		Short: "Show the end of what a tool wrote to standard error",
		Args:  toolArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			box, err := a.toolbox(f)
			if err != nil {
				return err
			}
			if _, err := folder(cmd.Context(), box, args[0]); err != nil {
				return err
			}
			c := a.client(cmd.Context(), f, box.Dir())
			if c == nil {
				return failure(fmt.Errorf("there are no logs: %s; a run without one shows them when it fails", noServer))
			}
			defer c.Close()
			logs, err := c.Logs(cmd.Context(), args[0], limit)
			switch {
			case err != nil:
				return toolFailure(err)
			case f.json:
				return failure(a.writeJSON(logs))
			}
			a.out.lines(logs.Lines...)
			return nil
		},
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", 0, "the last so many lines (default: all that are kept)")
	return cmd
}

func (a *app) toolPinCommand(f *toolFlags, on bool) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pin ID",
		Short: "Keep a tool from making room for others",
		Long: `Keep a tool from being ended to make room for another one. It is still ended
when nobody uses it. A pin is kept in the folder of tools.`,
		Args: toolArgs,
	}
	what, said := "pin", "pinned"
	if !on {
		cmd.Use, cmd.Short, cmd.Long = "unpin ID", "Let a tool make room for others again", ""
		what, said = "unpin", "not pinned"
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		box, err := a.toolbox(f)
		if err != nil {
			return err
		}
		ctx, id := cmd.Context(), args[0]
		if c := a.client(ctx, f, box.Dir()); c != nil {
			defer c.Close()
			err = c.Do(ctx, id, what, nil)
		} else {
			err = box.Pin(ctx, id, on)
		}
		if err != nil {
			return toolFailure(err)
		}
		if f.json {
			return failure(a.writeJSON(map[string]any{"tool_id": id, "pinned": on}))
		}
		a.out.lines(id + " is " + said)
		return nil
	}
	return cmd
}

func (a *app) toolStopCommand(f *toolFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "stop ID",
		Short: "End the process of a tool; its next run starts it again",
		Args:  toolArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			box, err := a.toolbox(f)
			if err != nil {
				return err
			}
			answer := struct {
				Status     string `json:"status"`
				ToolID     string `json:"tool_id"`
				WasRunning bool   `json:"was_running"`
			}{"stopped", args[0], false}
			note := ": " + noServer
			if c := a.client(cmd.Context(), f, box.Dir()); c != nil {
				defer c.Close()
				if err := c.Do(cmd.Context(), args[0], "stop", &answer); err != nil {
					return toolFailure(err)
				}
				note = ""
			}
			switch {
			case f.json:
				return failure(a.writeJSON(answer))
			case answer.WasRunning:
				a.out.lines(args[0] + " was stopped")
			default:
				a.out.lines(args[0] + " did not run" + note)
			}
			return nil
		},
	}
}

func (a *app) toolPrewarmCommand(f *toolFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "prewarm ID",
		Short: "Start a tool before anybody asks for it",
		Long: `Start a tool in the coppice serve that runs for this folder, unless another one
would have to make room. Without a server the tool is started, to see that it
does, and ended again.`,
		Args: toolArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.prewarmTool(cmd.Context(), f, args[0]) },
	}
}

func (a *app) prewarmTool(ctx context.Context, f *toolFlags, id string) error {
	box, err := a.toolbox(f)
	if err != nil {
		return err
	}
	if _, err := box.Find(ctx, id); err != nil {
		return toolFailure(err)
	}
	if c := a.client(ctx, f, box.Dir()); c != nil {
		defer c.Close()
		var q messages.ToolQueued
		if err := c.Do(ctx, id, "prewarm", &q); err != nil {
			return toolFailure(err)
		}
		switch {
		case f.json:
			return failure(a.writeJSON(q))
		case !q.Queued:
			return failure(fmt.Errorf("%s was not started: %s", id, q.Reason))
		}
		a.out.lines(id + " is warm, or starts")
		return nil
	}
	return a.tryTool(ctx, f, id)
}

// tryTool starts a tool and ends it.
func (a *app) tryTool(ctx context.Context, f *toolFlags, id string) error {
	l, end, err := a.launcher(ctx, f)
	if err != nil {
		return err
	}
	defer end()
	waiting := a.startProgress("starting "+id, f.json)
	defer waiting.done()
	began := time.Now()
	if _, err := l.Prewarm(ctx, id); err != nil {
		return toolFailure(err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return &codeError{code: codeCancelled}
		case <-tick.C:
		}
		s, err := l.State(ctx)
		if err != nil {
			return failure(err)
		}
		i := slices.IndexFunc(s.Tools, func(t messages.ToolState) bool { return t.ID == id })
		switch {
		case i < 0:
		case s.Tools[i].Failure != nil:
			waiting.done()
			a.err.print(errorText(&s.Tools[i].Failure.Error))
			return &codeError{code: codeLost}
		case s.Tools[i].State == messages.ChildIdle:
			waiting.done()
			if f.json {
				return failure(a.writeJSON(messages.ToolQueued{Reason: noServer}))
			}
			a.out.lines(fmt.Sprintf("%s starts within %s; it does not stay warm: %s", id, render.Duration(time.Since(began)), noServer))
			return nil
		}
	}
}
